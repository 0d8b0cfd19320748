//! What a plan permits, answered from its rules alone with Landlock's own semantics.
//!
//! Rights are a union up the path: a rule on a directory holds for it and for everything below, a
//! rule on anything else for that alone. A right that is not handled is permitted everywhere. An
//! operation counts as permitted when any bit of it is, so the reader errs towards "permits".

use std::cell::LazyCell;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::plan::{Beneath, LandlockPlan, Rule};
use super::rights::{FILE_RIGHTS, IOCTL_DEV, NEVER, OLDEST_ABI, RESOLVE_UNIX, WRITE_FILE, enough_for, handled};
use crate::policy::{AbsPath, Access, Identity, Network, Operation, UnixSockets, path};
use crate::profile::index::Index;
use crate::profile::order::Permission;
use crate::profile::{FileReach, Landmarks, Profile, Reach, Witness, files_within};

const PLAN: &str = "the Landlock plan";

impl FileReach for LandlockPlan {
    fn name(&self) -> &'static str {
        PLAN
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.rules
            .iter()
            .filter_map(path_of)
            .for_each(|path| landmarks.owned(path));
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let mut rules: Index<'_, &Rule> = Index::default();
        for rule in &self.rules {
            // Nobody knows where a path that is not normal leads, so it counts as leading everywhere.
            let path = rule.path.as_bytes();
            rules.insert_bytes(if path::is_normal(path) { path } else { b"/" }, rule);
        }
        let unhandled = !handled(self.abi);
        Box::new(move |path| {
            let reaches = |rule: &&&Rule| match rule.beneath {
                Beneath::Directory => true,
                Beneath::File => rule.path.as_bytes() == path.as_bytes() || !path::is_normal(rule.path.as_bytes()),
            };
            let access = rules
                .above(path)
                .filter(reaches)
                .fold(unhandled, |bits, rule| bits | rule.access);
            Reach::of(|operation| {
                if access & enough_for(operation) == 0 {
                    Access::Denied
                } else {
                    Access::Full
                }
            })
        })
    }
}

/// Holds the plan against the profile: whatever the rules permit, the profile permits.
pub fn validate(plan: &LandlockPlan, profile: &Profile) -> Result<(), Witness> {
    if plan.abi < OLDEST_ABI {
        return kernel(format!(
            "signals and abstract sockets out of the sandbox (Landlock ABI {})",
            plan.abi
        ));
    }
    if profile.network != Network::Full && !plan.handle_tcp {
        return kernel("TCP".to_owned());
    }
    check_rules(plan, profile)?;
    sockets_within(plan, profile)?;
    files_within(plan, profile)
}

fn kernel(what: String) -> Result<(), Witness> {
    Err(Witness {
        what: Permission::Kernel(what),
        wide: PLAN,
        tight: "the profile",
    })
}

/// Whether each rule is on the file it was made for, and gives no right that none may give.
pub(in crate::backend) fn check_rules(plan: &LandlockPlan, profile: &Profile) -> Result<(), Witness> {
    // Few rules, if any, need it.
    let profile_says = LazyCell::new(|| profile.prepared());
    let identities: Index<'_, &Identity> = profile.identities.iter().collect();
    for rule in &plan.rules {
        let shown = || path::display(&rule.path);
        let Some(rule_path) = path_of(rule) else {
            return kernel(format!("a rule on {}, which is not a normal absolute path", shown()));
        };
        let mut known = identities.exactly(&rule_path);
        if known.any(|id| (id.device, id.inode) != (rule.device, rule.inode)) {
            return kernel(format!("a rule on another file than the profile's {}", shown()));
        }
        let possible = match rule.beneath {
            Beneath::Directory => handled(plan.abi) & !NEVER & !IOCTL_DEV,
            Beneath::File => handled(plan.abi) & FILE_RIGHTS,
        };
        let strange = rule.access & !possible;
        if strange != 0 {
            return kernel(format!("rights {strange:#x} on {}", shown()));
        }
        if rule.access & IOCTL_DEV != 0 {
            let reach = profile_says(&rule_path);
            let full = [Operation::Read, Operation::Write].map(|operation| reach.get(operation));
            if !rule_path.as_bytes().starts_with(b"/dev/") || full != [Access::Full; 2] {
                return kernel(format!("ioctl on {}", shown()));
            }
        }
    }
    Ok(())
}

/// Pathname sockets are reached where the whole tree is writable, or everywhere, or nowhere.
pub(in crate::backend) fn sockets_within(plan: &LandlockPlan, profile: &Profile) -> Result<(), Witness> {
    let reaching = plan.rules.iter().filter(|rule| rule.access & RESOLVE_UNIX != 0);
    match profile.unix_sockets {
        UnixSockets::All => Ok(()),
        UnixSockets::WithinRoots => {
            let as_writes = reaching.map(|rule| Rule {
                access: WRITE_FILE,
                ..rule.clone()
            });
            let view = LandlockPlan {
                rules: as_writes.collect(),
                ..plan.clone()
            };
            files_within(&view, profile).map_err(|witness| Witness {
                what: Permission::Kernel(format!("a Unix socket where this is not permitted: {}", witness.what)),
                ..witness
            })
        }
        UnixSockets::None => match reaching.into_iter().next() {
            Some(_) => Err(Witness {
                what: Permission::UnixSockets(UnixSockets::WithinRoots),
                wide: PLAN,
                tight: "the profile",
            }),
            None => Ok(()),
        },
    }
}

/// The rule's path, if it is written in the one normal way.
fn path_of(rule: &Rule) -> Option<AbsPath> {
    let normal = path::is_normal(rule.path.as_bytes()).then_some(Path::new(&rule.path))?;
    AbsPath::new(normal).ok()
}
