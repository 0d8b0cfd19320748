//! Rates the risk of a change. A command chooses what it attempts, so its names are untrusted.

use std::cell::Cell;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

use nix::unistd::Uid;
use serde::Serialize;

use super::remedy::granted;
use super::scan::{self, Found, is_private};
use super::{git, secrets};
use crate::config::amend::Change;
use crate::config::{self, Context};
use crate::confine::protect::Person;
use crate::policy::hosts::{AddressKind, kinds};
use crate::policy::path::is_escaped;
use crate::policy::{AbsPath, BasePath, Destination, HostPattern, Policy, Right, Rights, Scope};
use crate::tools::{foreign_writers, person};

/// How bad it would be, were it accepted by mistake. Ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// What anybody may read of the system, and the project itself.
    Low,
    /// It reaches what the command has nothing to do with, or what is run later.
    High,
    /// Secrets, places that hold some, and places that hold nearly everything.
    Secret,
}

impl std::fmt::Display for Risk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::High => "high",
            Self::Secret => "secret or broad",
        })
    }
}

/// A risk, and its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rating {
    /// The risk.
    pub risk: Risk,
    /// Why, the worst first.
    pub reasons: Vec<String>,
}

/// What changes are rated by.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The directory that the command is run in, where that is somebody's work and nothing larger.
    project: Option<AbsPath>,
    /// The home directories that are known.
    homes: Vec<AbsPath>,
    /// Whose git may run or obey what is written.
    person: Person,
    /// What shipped presets give.
    shipped: Vec<BasePath>,
    /// What commands of this policy write is held against protected names.
    protects: bool,
    /// How many entries of directories may still be looked at: a command can name very many.
    entries_left: Cell<usize>,
}

/// How many are looked at after one round.
const MAX_ENTRIES: usize = 400_000;

/// Directories of the system, which are no project.
const SYSTEM: &[&str] = &[
    "/boot",
    "/dev",
    "/etc",
    "/opt",
    "/proc",
    "/run",
    "/sys",
    "/usr",
    "/var/lib",
    "/var/run",
    "/var/spool",
];
/// Directories of everybody's work, which are no project themselves.
const TOPS: &[&str] = &[
    "/", "/home", "/media", "/mnt", "/srv", "/tmp", "/var", "/var/tmp", "/Users",
];

#[derive(Default)]
struct Findings(Vec<(Risk, String)>);

impl Findings {
    fn add(&mut self, risk: Risk, why: impl Into<String>) {
        self.0.push((risk, why.into()));
    }

    fn rating(mut self) -> Rating {
        self.0.sort_by_key(|(risk, _)| std::cmp::Reverse(*risk));
        let risk = self.0.first().map_or(Risk::Secret, |(risk, _)| *risk);
        let reasons = self.0.into_iter().map(|(_, why)| why).collect();
        Rating { risk, reasons }
    }
}

impl Surroundings {
    /// Those of a command that is run in this directory.
    pub fn of(directory: &AbsPath, policy: &Policy, context: &Context) -> Self {
        let variable = context
            .variables
            .get(std::ffi::OsStr::new("HOME"))
            .and_then(|home| AbsPath::new(home).ok());
        let named = context.home.iter().cloned().chain(variable);
        let homes: Vec<AbsPath> = named
            .flat_map(|home| [config::resolve_path(home.as_path()).ok(), Some(home)])
            .flatten()
            .collect();
        let shipped = config::preset_names()
            .filter_map(|name| config::preset(name, directory.as_path(), context).ok())
            // One with roots is about somebody's work, and no part of the system.
            .filter(|loaded| loaded.policy.roots.is_empty());
        let shipped = shipped
            .flat_map(|loaded| loaded.policy.base)
            .filter(|base| !base.grant.rights.has(Right::Write));
        let mut surroundings = Self {
            project: None,
            homes,
            person: person(context),
            shipped: shipped.collect(),
            protects: policy.protect.files().is_some(),
            entries_left: Cell::new(MAX_ENTRIES),
        };
        let is_project = surroundings.broad(directory).is_none()
            && !surroundings.is_no_project(directory)
            && foreign_writers::objection(directory, Uid::effective()).is_none()
            && secrets::secret_component(directory.as_path()).is_none()
            && !surroundings.shipped(directory, Scope::Tree, Rights::READ);
        if is_project {
            surroundings.project = Some(directory.clone());
        }
        surroundings
    }

    /// Resets the limit for the next round.
    pub(super) fn reset_limit(&self) {
        self.entries_left.set(MAX_ENTRIES);
    }

    /// The risk of a change of this policy.
    pub fn rate(&self, change: &Change, policy: &Policy) -> Rating {
        match change {
            Change::Root(root) => self.rate_path(&root.path, root.scope, root.rights, policy),
            Change::Widen(root) => self.rate_path(&root.path, root.scope, root.rights, policy),
            Change::List(path) => self.rate_path(path, Scope::Names, Rights::READ, policy),
            Change::Host(host) => rate_host(host),
        }
    }

    /// The risk of giving rights on a place beside those that this policy gives.
    pub(super) fn rate_path(&self, path: &AbsPath, scope: Scope, rights: Rights, policy: &Policy) -> Rating {
        let granted = granted(policy, path, scope);
        let (added, result) = (rights.without(granted), rights | granted);
        let mut all = Findings::default();
        if let Some(why) = self.broad(path) {
            all.add(Risk::Secret, why);
        }
        if let Some(name) = secrets::secret_component(path.as_path()) {
            all.add(
                Risk::Secret,
                format!("`{}` is a name of something secret", crate::policy::path::display(name)),
            );
        }
        if let Some(why) = foreign_writers::objection(path, Uid::effective()) {
            all.add(Risk::Secret, why);
        }
        if is_escaped(path.as_bytes()) {
            all.add(Risk::High, "its name has characters that do not show");
        }
        let project = self.project.as_ref().filter(|project| path.is_within(project));
        let below = project.and_then(|project| path.as_path().strip_prefix(project.as_path()).ok());
        if below.is_some_and(|below| !below.as_os_str().is_ascii()) {
            all.add(
                Risk::High,
                "its name has letters beyond ASCII, some of which look like others",
            );
        }
        self.content(&mut all, path, scope, added, project.is_some());
        if added.has(Right::Write) {
            match project {
                Some(project) if !self.protects => {
                    all.add(
                        Risk::High,
                        format!("inside the project {project}, and nothing there is protected (`protect: none`)"),
                    );
                }
                Some(project) => match git::objection(path, &self.person) {
                    Some(why) => all.add(Risk::High, why),
                    None => all.add(Risk::Low, format!("writing inside the project {project}")),
                },
                None => all.add(
                    Risk::High,
                    "writing outside of the project: what lies there may be run or trusted later",
                ),
            }
        }
        let together = result.has(Right::Write) && result.has(Right::Execute);
        if together && (added.has(Right::Write) || added.has(Right::Execute)) {
            all.add(Risk::High, "executing what commands can write");
        }
        if added.has(Right::Execute) {
            match (result.has(Right::Write), project) {
                (true, _) => {}
                (false, Some(_)) => all.add(Risk::Low, "executing what the project holds"),
                (false, None) if self.shipped(path, scope, Rights::READ | Rights::EXECUTE) => {
                    all.add(Risk::Low, "executing a program of the system or a toolchain");
                }
                (false, None) => all.add(
                    Risk::High,
                    "executing something that is neither the system's nor the project's",
                ),
            }
        }
        if added.has(Right::Read) {
            self.reading(&mut all, path, scope, project);
        }
        all.rating()
    }

    fn reading(&self, all: &mut Findings, path: &AbsPath, scope: Scope, project: Option<&AbsPath>) {
        if let Some(project) = project {
            all.add(Risk::Low, format!("reading inside the project {project}"));
        } else if self.shipped(path, scope, Rights::READ) {
            all.add(Risk::Low, "reading what a shipped preset gives");
        } else {
            all.add(Risk::High, "reading what is neither the system's nor the project's");
        }
    }

    /// What is found there.
    fn content(&self, all: &mut Findings, path: &AbsPath, scope: Scope, added: Rights, in_project: bool) {
        let Ok(about) = std::fs::symlink_metadata(path) else {
            all.add(Risk::Secret, "it cannot be looked at");
            return;
        };
        let of_project = |project: &AbsPath| {
            let top = std::fs::symlink_metadata(project);
            top.is_ok_and(|top| scan::is_of_one_mount((project.as_path(), &top), (path.as_path(), &about)))
        };
        if in_project && !self.project.as_ref().is_some_and(of_project) {
            all.add(
                Risk::High,
                "it is another file system than the project's, or mounted from elsewhere",
            );
        }
        match scope {
            Scope::File => {
                if added.has(Right::Read) && is_private(&about) {
                    all.add(Risk::Secret, "it may be read by its owner alone");
                }
                if about.nlink() > 1 {
                    all.add(Risk::High, "it has another name elsewhere (a hard link)");
                }
            }
            // What a preset gives is known; what it only names is not looked into.
            Scope::Tree if !self.shipped(path, scope, added) => {
                let Found {
                    secret,
                    outward,
                    incomplete,
                } = scan::scan(path, &self.entries_left);
                if let Some(why) = secret.filter(|_| added.has(Right::Read)) {
                    all.add(Risk::Secret, why);
                }
                if let Some(why) = outward {
                    all.add(Risk::High, why);
                }
                if let Some(why) = incomplete {
                    all.add(
                        if added.has(Right::Read) {
                            Risk::Secret
                        } else {
                            Risk::High
                        },
                        why,
                    );
                }
            }
            Scope::Tree | Scope::Names => {}
        }
    }

    /// Why a place holds too much, if it does.
    fn broad(&self, path: &AbsPath) -> Option<String> {
        let home = self.homes.iter().find(|home| home.is_within(path))?;
        Some(format!("it holds the home directory {home}"))
    }

    /// Whether a directory is the machine's, or one of which something is run or obeyed without anybody asking: settings, startup files
    /// and programs of a user.
    fn is_no_project(&self, path: &AbsPath) -> bool {
        let real = |text: &&str| config::resolve_path(std::path::Path::new(*text)).ok();
        let starts_things = |home: &AbsPath| {
            let below = path.as_path().strip_prefix(home.as_path()).ok();
            let first = below.and_then(|below| below.components().next());
            first.is_some_and(|first| {
                let name = first.as_os_str().as_bytes();
                name.starts_with(b".") || name == b"bin" || name == b"Library"
            })
        };
        TOPS.iter().filter_map(real).any(|top| *path == top)
            || SYSTEM.iter().filter_map(real).any(|top| path.is_within(&top))
            || self.homes.iter().any(starts_things)
    }

    /// Whether some shipped preset gives this.
    fn shipped(&self, path: &AbsPath, scope: Scope, rights: Rights) -> bool {
        let covers = |base: &&BasePath| match (base.grant.scope, scope) {
            (Scope::File, Scope::File) => *path == base.grant.path,
            (Scope::Tree, _) | (Scope::Names, Scope::Names) => path.is_within(&base.grant.path),
            (Scope::File, Scope::Tree | Scope::Names) | (Scope::Names, Scope::File | Scope::Tree) => false,
        };
        self.shipped
            .iter()
            .filter(covers)
            .any(|base| base.grant.rights.contains(rights))
    }
}

fn rate_host(host: &Destination) -> Rating {
    let special = match &host.hosts {
        HostPattern::Net(net) => kinds(*net).into_iter().find_map(|kind| match kind {
            AddressKind::Special(name) | AddressKind::Unusable(name) => Some(format!(
                "an address that is not of the internet ({name}): services there trust who reaches them"
            )),
            AddressKind::Public => None,
        }),
        HostPattern::Name(_) | HostPattern::PublicNet(_) => None,
        HostPattern::Every | HostPattern::Below(_) => Some("many hosts at once".to_owned()),
    };
    let (risk, why) = match special {
        Some(why) => (Risk::Secret, why),
        None => (Risk::High, "whatever a command reads, it can send there".to_owned()),
    };
    Rating {
        risk,
        reasons: vec![why],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_told_to_be_many_hosts_and_no_address() {
        let rating = |text| rate_host(&Destination::parse(text).unwrap());
        for text in ["*:443", "*.example.org:443"] {
            let Rating { risk, reasons } = rating(text);
            assert_eq!((risk, reasons), (Risk::Secret, vec!["many hosts at once".to_owned()]));
        }
        let Rating { risk, reasons } = rating("169.254.169.254:80");
        assert!(
            risk == Risk::Secret && reasons[0].contains("not of the internet"),
            "{reasons:?}"
        );
        assert_eq!(rating("example.org:443").risk, Risk::High);
    }
}
