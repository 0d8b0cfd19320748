//! Each attempt, held against what was in force.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::idle::{is_idle, is_idle_question};
use super::standing::Standing;
use super::there::{Modes, Reached, reached};
use super::{Blocked, Explained, KernelRecords, Layer, Seer, Wanted};
use crate::config::amend::Writing;
use crate::confine::attempted::{Arguments, Attempt, Attempted, Found, Want};
use crate::confine::records::Recorded;
use crate::policy::{AbsPath, Access, Network, Operation, UnixSockets};
use crate::profile::Call;
use crate::tools::inspect::backend::Readers;
use crate::tools::inspect::explain::writing;

/// The most denials that are told of.
const MOST: usize = 500;
/// How long the host is looked at, all attempts together.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is put before a name to ask about another one beside it, of which no clause speaks.
const BESIDE: &str = ".beside-";

/// A denial, not explained yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denial {
    /// Of something with a file.
    File {
        wanted: Wanted,
        path: AbsPath,
        /// The path that the clauses are asked about: another name beside it where its directory stood in the way.
        asked: AbsPath,
        by: Layer,
    },
    /// Of a socket with a path.
    Unix(AbsPath),
    /// Of an address.
    Address(SocketAddr),
    /// Of a call.
    Call { number: u32, arguments: Arguments },
    /// Of something with a name in a directory; which name is not known.
    Inside {
        wanted: Wanted,
        directory: AbsPath,
        /// The path that the clauses are asked about.
        asked: AbsPath,
    },
    /// Of something that Landlock keeps to the sandbox, whatever the clauses say.
    Scoped { wanted: Wanted, what: String },
}

/// A denial, and how often it was noted and recorded.
#[derive(Debug)]
struct Counted {
    denial: Denial,
    noted: u64,
    recorded: u64,
}

/// Denials, each once, in the order of the first time.
#[derive(Debug, Default)]
pub(super) struct Denials {
    all: Vec<Counted>,
    known: HashMap<(Wanted, Vec<u8>), usize>,
    /// Those of names, by what was wanted of them and their directory.
    within: HashMap<(Wanted, AbsPath), Vec<usize>>,
}

/// What was denied to a command that was permitted this call, and attempted this; and what the kernel recorded of that,
/// where somebody reads it.
pub(in crate::tools) async fn explained(
    standing: Arc<Standing>,
    attempted: Attempted,
    recorded: Option<Recorded>,
    call: Call,
) -> Explained {
    let Attempted { all, unseen } = attempted;
    let kernel_records = recorded.as_ref().map(|recorded| {
        if recorded.lost {
            KernelRecords::SomeLost
        } else {
            KernelRecords::Read
        }
    });
    let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
    // A file system that hangs keeps its thread, and nothing else.
    let writing = writing(&call.asked);
    let looking = tokio::task::spawn_blocking(move || standing.explain(all, recorded, writing));
    match tokio::time::timeout(PATIENCE, looking).await {
        Ok(Ok(Some(explained))) => Explained {
            unseen,
            kernel_records,
            call: Some(call),
            ..explained
        },
        Ok(Ok(None) | Err(_)) | Err(_) => Explained {
            unseen: unseen.saturating_add(count),
            kernel_records,
            call: Some(call),
            ..Explained::default()
        },
    }
}

impl Standing {
    fn explain(&self, all: Vec<(Attempt, u64)>, recorded: Option<Recorded>, writing: Writing) -> Option<Explained> {
        let is_recorded = recorded.is_some();
        let denials = self.held()?.consult(|readers| {
            let mut denials = Denials::default();
            for (attempt, times) in all {
                for denial in self.denied(readers, &attempt) {
                    denials.noted(denial, times);
                }
            }
            if let Some(recorded) = recorded {
                self.compare(readers, recorded.all, &mut denials);
            }
            denials.all
        });
        let denials = denials.ok()?;
        let more = denials.len().saturating_sub(MOST);
        let blocked = denials.into_iter().take(MOST).map(|counted| {
            let seen_by = if is_recorded { counted.seen_by() } else { Vec::new() };
            let times = counted.noted.max(counted.recorded);
            Blocked {
                seen_by,
                ..self.reasons(counted.denial, times, writing)
            }
        });
        Some(Explained {
            blocked: blocked.collect(),
            more: u64::try_from(more).unwrap_or(u64::MAX),
            ..Explained::default()
        })
    }

    /// What was denied of an attempt.
    fn denied(&self, readers: &Readers<'_>, attempt: &Attempt) -> Vec<Denial> {
        let one = match attempt {
            Attempt::File { want, path, found } => {
                reached(path, *found, *want).and_then(|reached| self.of_what_is_there(readers, &reached))
            }
            Attempt::Exchange(pair) => {
                let sides = pair.each_ref().map(|(path, found)| reached(path, *found, Want::Remove));
                let [Some(one), Some(other)] = sides else {
                    // Without both there is nothing to exchange, whoever asks.
                    return Vec::new();
                };
                let sides = [one, other].into_iter();
                return sides.filter_map(|side| self.of_what_is_there(readers, &side)).collect();
            }
            Attempt::Reach(address) => self.denies_address(*address).then_some(Denial::Address(*address)),
            Attempt::Call { number, arguments } => {
                let (number, arguments) = (*number, *arguments);
                (!is_idle_question(number, arguments)).then_some(Denial::Call { number, arguments })
            }
        };
        one.into_iter().collect()
    }

    fn of_what_is_there(&self, readers: &Readers<'_>, reached: &Reached) -> Option<Denial> {
        let path = AbsPath::new(&reached.path).ok()?;
        match reached.wanted {
            _ if is_idle(&path) => None,
            Wanted::Connect => self.denies_socket(readers, &path).then_some(Denial::Unix(path)),
            _ => file(readers, reached, &path),
        }
    }

    pub(super) fn denies_socket(&self, readers: &Readers<'_>, path: &AbsPath) -> bool {
        let denies = |operation| (readers.plan)(path).get(operation) == Access::Denied;
        match self.profile.unix_sockets {
            // Who makes no socket connects none; that is told of the socket.
            UnixSockets::None => false,
            UnixSockets::WithinRoots => denies(Operation::Write),
            UnixSockets::All => self.is_in_namespaces() && Operation::ALL.into_iter().all(denies),
        }
    }

    pub(super) fn denies_address(&self, address: SocketAddr) -> bool {
        let is_own = match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.is_loopback() || ip.is_unspecified(),
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unspecified(),
        };
        match &self.profile.network {
            Network::Full => false,
            // In there the loopback is the command's own.
            Network::Off | Network::Hosts(_) => !is_own,
        }
    }
}

impl Denial {
    /// What two denials have in common that are told as one.
    fn key(&self) -> (Wanted, Vec<u8>) {
        match self {
            Self::File { wanted, path, .. } => (*wanted, path.as_bytes().to_vec()),
            Self::Unix(path) => (Wanted::Connect, path.as_bytes().to_vec()),
            Self::Address(address) => (Wanted::Connect, address.to_string().into_bytes()),
            Self::Call { number, arguments } => (Wanted::Call, format!("{number} {arguments:?}").into_bytes()),
            // No path ends like that, so it is told from what was noted.
            Self::Inside { wanted, directory, .. } => (*wanted, [directory.as_bytes(), b"/"].concat()),
            Self::Scoped { wanted, what } => (*wanted, what.clone().into_bytes()),
        }
    }
}

impl Counted {
    /// Takes in how often the kernel says that Landlock denied it.
    const fn confirm(&mut self, times: u64) {
        self.recorded = times;
        if let Denial::File { by, .. } = &mut self.denial {
            *by = Layer::Landlock;
        }
    }

    fn seen_by(&self) -> Vec<Seer> {
        let notification = (self.noted > 0).then_some(Seer::Notification);
        let audit = (self.recorded > 0).then_some(Seer::Audit);
        [notification, audit].into_iter().flatten().collect()
    }
}

impl Denials {
    fn counted(&mut self, denial: Denial) -> Option<&mut Counted> {
        let at = *self.known.entry(denial.key()).or_insert(self.all.len());
        if at == self.all.len() {
            if let Denial::File { wanted, path, .. } = &denial
                && by_directory(*wanted)
                && let Some(directory) = path.parent()
            {
                self.within.entry((*wanted, directory)).or_default().push(at);
            }
            self.all.push(Counted {
                denial,
                noted: 0,
                recorded: 0,
            });
        }
        self.all.get_mut(at)
    }

    fn noted(&mut self, denial: Denial, times: u64) {
        if let Some(counted) = self.counted(denial) {
            counted.noted = counted.noted.saturating_add(times);
        }
    }

    /// Takes in what the kernel says was denied.
    pub(super) fn recorded(&mut self, denial: Denial, times: u64) {
        if let Some(counted) = self.counted(denial) {
            counted.confirm(counted.recorded.saturating_add(times));
        }
    }

    /// Takes in what the kernel says was denied, if it was noted.
    pub(super) fn confirmed(&mut self, denial: &Denial, times: u64) {
        let at = self.known.get(&denial.key());
        if let Some(counted) = at.and_then(|at| self.all.get_mut(*at)) {
            counted.confirm(counted.recorded.saturating_add(times));
        }
    }

    /// Takes in that the kernel denied something of names in this directory; whether that was noted.
    pub(super) fn recorded_in(&mut self, wanted: Wanted, directory: &AbsPath, times: u64) -> bool {
        // Who gives something another directory makes a name there, or removes one.
        let alike: &[Wanted] = match wanted {
            Wanted::Link => &[Wanted::Make, Wanted::Remove, Wanted::Link],
            _ => &[wanted],
        };
        let meant: Vec<usize> = alike
            .iter()
            .filter_map(|wanted| self.within.get(&(*wanted, directory.clone())))
            .flatten()
            .copied()
            .collect();
        let noted = meant
            .iter()
            .filter_map(|at| self.all.get(*at))
            .fold(0u64, |sum, counted| sum.saturating_add(counted.noted));
        if times >= noted {
            for at in &meant {
                if let Some(counted) = self.all.get_mut(*at) {
                    counted.confirm(counted.recorded.max(counted.noted));
                }
            }
        }
        !meant.is_empty()
    }
}

/// Whether it hangs on the directory of a name.
pub(super) const fn by_directory(wanted: Wanted) -> bool {
    matches!(wanted, Wanted::Make | Wanted::Remove | Wanted::Link)
}

/// The operation of a profile that something comes to; none for what no right is about.
pub(in crate::tools) const fn operation(wanted: Wanted) -> Option<Operation> {
    match wanted {
        Wanted::Read => Some(Operation::Read),
        Wanted::List => Some(Operation::List),
        Wanted::Write | Wanted::Make | Wanted::Remove | Wanted::Link | Wanted::Attributes => Some(Operation::Write),
        Wanted::Execute => Some(Operation::Execute),
        Wanted::Look
        | Wanted::Connect
        | Wanted::Bind
        | Wanted::Socket
        | Wanted::Call
        | Wanted::Signal
        | Wanted::Trace
        | Wanted::Control => None,
    }
}

/// The name at which a plan denies something: that one, or another beside it.
pub(in crate::tools) fn denied_at(readers: &Readers<'_>, wanted: Wanted, path: &AbsPath) -> Option<AbsPath> {
    let operation = operation(wanted)?;
    // A name comes and goes by its directory.
    let beside = by_directory(wanted).then(|| beside(path)).flatten();
    let mut places = [Some(path.clone()), beside].into_iter().flatten();
    places.find(|asked| (readers.plan)(asked).get(operation) == Access::Denied)
}

pub(super) fn file(readers: &Readers<'_>, reached: &Reached, path: &AbsPath) -> Option<Denial> {
    let (wanted, found) = (reached.wanted, reached.found);
    let wall = |asked: &AbsPath| {
        let mounts = readers.mounts.as_ref().zip(operation(wanted));
        let by_mounts = mounts.is_some_and(|(mounts, operation)| mounts(asked).get(operation) == Access::Denied);
        if by_mounts { Layer::Mounts } else { Layer::Landlock }
    };
    let by_name = |path: &AbsPath| denied_at(readers, wanted, path).map(|asked| (wall(&asked), asked));
    let refusal = match found {
        Found::There if wanted == Wanted::Attributes => Some((Layer::Broker, path.clone())),
        Found::There => by_name(path),
        Found::Nothing if (readers.hides)(path) => Some((Layer::Mounts, path.clone())),
        Found::Absent | Found::Nothing if wanted == Wanted::Make => by_name(path),
        Found::Absent if (readers.hides)(path) => Some((Layer::Mounts, path.clone())),
        // It came to be after the command had missed it.
        Found::Absent | Found::Nothing => return None,
    };
    let lacking = || match reached.modes {
        Modes::Refuse => Some((Layer::Capabilities, path.clone())),
        Modes::Permit => None,
    };
    refusal.or_else(lacking).map(|(by, asked)| Denial::File {
        wanted,
        path: path.clone(),
        asked,
        by,
    })
}

/// A name in a directory of which no clause speaks.
pub(super) fn beside_any(directory: &AbsPath) -> Option<AbsPath> {
    directory.child(BESIDE)
}

/// Another name in the same directory that ends in the same way.
fn beside(path: &AbsPath) -> Option<AbsPath> {
    let mut name = std::ffi::OsString::from(BESIDE);
    name.push(path.name()?);
    path.parent()?.child(name)
}
