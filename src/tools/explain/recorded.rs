//! What the kernel recorded, held against what was noted and against the plan.
//!
//! A record of something that was noted confirms it. Another one is a denial that nobody noted, if it is one by the plan as
//! well. What comes or goes by its
//! directory the kernel tells of without its name; so it confirms what was noted there only if it tells of it as often.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::symlink_metadata;
use std::os::unix::ffi::OsStrExt;

use super::Wanted;
use super::denials::{Denial, Denials};
use super::idle::is_idle;
use super::judge::{Fate, beside_any, file};
use super::standing::Standing;
use super::there::{Modes, Reached};
use crate::confine::attempted::Found;
use crate::confine::records::{Blocker, Object, Refusal};
use crate::policy::AbsPath;
use crate::policy::path::display;
use crate::tools::inspect::backend::Readers;

/// What is said of a process. Its name and number the command may not know.
const OUTSIDE: &str = "a process outside of the command";

/// What one record says, for each thing that was lacking.
enum Fact {
    /// This was denied.
    Of(Denial),
    /// So was this, and it is not told where nobody noted it.
    InPassing(Denial),
    /// Something of a name in a directory was denied.
    In(Wanted, AbsPath),
    /// It says too little.
    Nothing,
}

impl Standing {
    /// Takes in what the kernel recorded.
    pub(super) fn compare(&self, readers: &Readers<'_>, recorded: Vec<(Refusal, u64)>, denials: &mut Denials) {
        let mut inside: Vec<((Wanted, AbsPath), u64)> = Vec::new();
        let mut known: HashMap<(Wanted, AbsPath), usize> = HashMap::new();
        for (refusal, times) in recorded {
            for blocker in refusal.blockers {
                match self.fact(readers, blocker, &refusal.object) {
                    Fact::Of(denial) => denials.recorded(denial, times),
                    Fact::InPassing(denial) => denials.confirmed(&denial, times),
                    Fact::In(wanted, directory) => {
                        let key = (wanted, directory);
                        let at = *known.entry(key.clone()).or_insert(inside.len());
                        match inside.get_mut(at) {
                            Some((_, so_far)) => *so_far = so_far.saturating_add(times),
                            None => inside.push((key, times)),
                        }
                    }
                    Fact::Nothing => {}
                }
            }
        }
        for ((wanted, directory), times) in inside {
            if denials.recorded_in(wanted, &directory, times) || wanted == Wanted::Link {
                // A move between places that grant different rights is refused for that alone, and programs copy then.
                continue;
            }
            if let Some(asked) = beside_any(&directory)
                && let Some(Denial::File { wanted, asked, .. }) = by_plan(readers, wanted, &asked)
            {
                denials.recorded(
                    Denial::Inside {
                        wanted,
                        directory,
                        asked,
                    },
                    times,
                );
            }
        }
    }

    fn fact(&self, readers: &Readers<'_>, blocker: Blocker, object: &Object) -> Fact {
        let path = || match object {
            Object::Path(path) => AbsPath::new(path).ok().filter(|path| !is_idle(path, Fate::Succeeded)),
            Object::Deleted(_) | Object::Address(_) | Object::Process(_) | Object::Unnamed => None,
        };
        let exactly = |wanted| {
            let path = path()?;
            // By a name that leads to a directory nothing but a move could lack these.
            let is_other = wanted != Wanted::List
                && !self.is_in_namespaces()
                && symlink_metadata(path.as_path()).is_ok_and(|about| about.is_dir());
            by_plan(readers, wanted, &path).filter(|_| !is_other)
        };
        let within = |wanted| path().map_or(Fact::Nothing, |path| Fact::In(wanted, path));
        let scoped = |wanted, what: String| Some(Denial::Scoped { wanted, what });
        let denial = match blocker {
            Blocker::Execute => exactly(Wanted::Execute),
            Blocker::Write => exactly(Wanted::Write),
            Blocker::Read => exactly(Wanted::Read),
            Blocker::List => exactly(Wanted::List),
            Blocker::Remove => return within(Wanted::Remove),
            Blocker::Make => return within(Wanted::Make),
            Blocker::Refer => return within(Wanted::Link),
            Blocker::Ioctl => path().and_then(|path| scoped(Wanted::Control, display(path.as_path().as_os_str()))),
            Blocker::UnixSocket => path()
                .filter(|path| self.denies_socket(readers, path))
                .map(Denial::Unix),
            Blocker::AbstractSocket => match object {
                Object::Path(name) => scoped(Wanted::Connect, abstract_name(name)),
                Object::Deleted(_) | Object::Address(_) | Object::Process(_) | Object::Unnamed => None,
            },
            Blocker::ConnectTcp => match object {
                Object::Address(address) if self.denies_address(*address) => Some(Denial::Address(*address)),
                Object::Address(address) => scoped(Wanted::Connect, address.to_string()),
                Object::Path(_) | Object::Deleted(_) | Object::Process(_) | Object::Unnamed => None,
            },
            Blocker::BindTcp => match object {
                Object::Address(address) => scoped(Wanted::Bind, address.to_string()),
                Object::Path(_) | Object::Deleted(_) | Object::Process(_) | Object::Unnamed => None,
            },
            Blocker::Signal => scoped(Wanted::Signal, OUTSIDE.to_owned()),
            Blocker::Trace => scoped(Wanted::Trace, OUTSIDE.to_owned()),
            // The filters refuse it before it comes to that.
            Blocker::Mount => None,
        };
        match denial {
            None => Fact::Nothing,
            Some(denial) => match &denial {
                // What a name leads to in there the host does not know.
                Denial::File { path, .. } if is_of_a_process(path) || self.is_in_namespaces() => {
                    Fact::InPassing(denial)
                }
                _ => Fact::Of(denial),
            },
        }
    }
}

/// The denial that the plan knows of, if it knows of one.
fn by_plan(readers: &Readers<'_>, wanted: Wanted, path: &AbsPath) -> Option<Denial> {
    let reached = Reached {
        wanted,
        path: path.as_path().to_owned(),
        found: Found::There,
        modes: Modes::Permit,
    };
    file(readers, &reached, path)
}

/// Whether it is what `/proc` says of a process: programs look at their own, and do without.
fn is_of_a_process(path: &AbsPath) -> bool {
    let below = path.as_path().strip_prefix("/proc").ok();
    let first = below.and_then(|below| below.components().next());
    first.is_some_and(|first| first.as_os_str().as_bytes().iter().all(u8::is_ascii_digit))
}

/// A name in the abstract namespace, as people write it.
fn abstract_name(name: &OsStr) -> String {
    let name = name.as_bytes();
    format!(
        "@{}",
        display(OsStr::from_bytes(name.strip_prefix(b"\0").unwrap_or(name)))
    )
}
