//! What the model says of an operation, and the declared list of what the kernel refuses beyond it.

use std::fmt;
use std::path::PathBuf;

use stockade::backend::Regime;
use stockade::policy::{AbsPath, Access, Deny, Ending, Grant, Network, Operation, Right, Scope, Target, UnixSockets};
use stockade::profile::{FileReach, Profile};

use super::left;
use super::mounted::Mounted;
use super::operations::{Attempt, Deed};
use super::tree::{Kind, Tree};

/// Why the kernel may refuse what the profile permits. Nothing else may be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// A deny holds for part of the folder: its entries are ruled one by one, and the folder itself is not.
    Frozen,
    /// Only files that match a suffix are granted, one by one: no name is made or removed.
    Suffixes,
    /// A size limit cannot be held for commands.
    SizeLimit,
    /// The kernel reads what it executes.
    ExecuteUnread,
    /// A name belongs to the folder it is in, which is not granted: a granted path itself cannot be removed.
    NameOfTheGrant,
    /// What is moved would be under more rights there than here.
    GainsByMoving,
    /// An attribute change cannot be held against a grant that is narrowed by suffixes.
    AttributesByName,
    /// What may not be read is masked: nothing can be done there.
    Masked,
    /// The way leads through what is not granted, so it is not there, or is masked.
    WayNotThere,
    /// Something is mounted right there: it cannot be moved or removed.
    MountPoint,
    /// From one mount to another there is no renaming and no linking.
    BetweenMounts,
}

impl Reason {
    /// The reasons there are under a regime.
    pub(crate) const fn declared(regime: Regime) -> &'static [Self] {
        match regime {
            Regime::None | Regime::Seatbelt => &[],
            Regime::Landlock => &[
                Self::Frozen,
                Self::Suffixes,
                Self::SizeLimit,
                Self::ExecuteUnread,
                Self::NameOfTheGrant,
                Self::GainsByMoving,
                Self::AttributesByName,
            ],
            Regime::Namespaces => &[
                Self::Frozen,
                Self::Suffixes,
                Self::SizeLimit,
                Self::ExecuteUnread,
                Self::NameOfTheGrant,
                Self::GainsByMoving,
                Self::AttributesByName,
                Self::Masked,
                Self::WayNotThere,
                Self::MountPoint,
                Self::BetweenMounts,
            ],
        }
    }

    /// What the status of some clause must say where this is met.
    pub(crate) const fn said(self) -> Option<&'static str> {
        match self {
            Self::Frozen => Some("none can be created or removed"),
            Self::Suffixes => Some("only files that match when the command starts"),
            Self::SizeLimit => Some("a size limit cannot be held"),
            Self::ExecuteUnread => Some("the kernel reads what it executes"),
            Self::Masked => Some("what may not be read is masked"),
            Self::NameOfTheGrant | Self::GainsByMoving | Self::AttributesByName | Self::WayNotThere => None,
            Self::MountPoint | Self::BetweenMounts => Some("a mount of its own"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frozen => "the folder is ruled entry by entry",
            Self::Suffixes => "suffixes: no name is made or removed",
            Self::SizeLimit => "size limit: read-only",
            Self::ExecuteUnread => "execute without read",
            Self::NameOfTheGrant => "a granted path itself is not removed",
            Self::GainsByMoving => "what is moved would gain rights",
            Self::AttributesByName => "attributes where suffixes narrow",
            Self::Masked => "masked, because it may not be read",
            Self::WayNotThere => "the way to it is not granted",
            Self::MountPoint => "a mount point is not moved or removed",
            Self::BetweenMounts => "nothing is moved from one mount to another",
        })
    }
}

/// Whether a deed is permitted by something that answers for paths. A size limit permits.
pub(crate) fn permits(says: &dyn FileReach, deed: &Deed) -> bool {
    let may = |operation, path| says.access(operation, path) != Access::Denied;
    match deed {
        Deed::Content { operations, object } => operations.iter().all(|operation| may(*operation, object)),
        Deed::List { folder } => may(Operation::List, folder),
        Deed::Entry { entry } => may(Operation::Write, entry),
        Deed::Through { entry, object } => may(Operation::Write, entry) && may(Operation::Write, object),
        Deed::Move { from, to, .. } => may(Operation::Write, from) && may(Operation::Write, to),
        Deed::Exchange { one, other } => may(Operation::Write, one) && may(Operation::Write, other),
        Deed::Attributes { object } => may(Operation::Write, object),
        Deed::Internet | Deed::UnixSocket | Deed::OwnProcess => true,
        Deed::ProcessOutside => false,
    }
}

/// The same, with what is no question of paths.
pub(crate) fn permitted(profile: &Profile, deed: &Deed) -> bool {
    let beyond_files = match deed {
        Deed::Internet => profile.network == Network::Full,
        Deed::UnixSocket => profile.unix_sockets == UnixSockets::All,
        _ => true,
    };
    beyond_files && permits(profile, deed)
}

/// One profile as it was put on.
#[derive(Debug)]
pub(crate) struct Layer<'a> {
    regime: Regime,
    pub(crate) profile: &'a Profile,
    /// What the Landlock layer has to hold of it.
    ruled: Profile,
    mounted: Option<&'a Mounted>,
}

impl<'a> Layer<'a> {
    /// The layers of a command, the first of them made of mounts as well where there are any.
    pub(crate) fn all(profiles: &[&'a Profile], mounted: Option<&'a Mounted>, tree: &Tree) -> Vec<Self> {
        let mounts = std::iter::once(mounted).chain(std::iter::repeat(None));
        profiles
            .iter()
            .zip(mounts)
            .map(|(profile, mounted)| Self {
                regime: if mounted.is_some() {
                    Regime::Namespaces
                } else {
                    Regime::Landlock
                },
                profile,
                ruled: match mounted {
                    Some(_) => left::to_landlock(profile, tree),
                    None => (*profile).clone(),
                },
                mounted,
            })
            .collect()
    }

    /// Why this layer refuses what its profile permits, where the regime declares it.
    pub(crate) fn reason(&self, attempt: &Attempt) -> Option<Reason> {
        let found = self
            .mounted
            .and_then(|mounted| unseen(mounted, self.profile, attempt))
            .or_else(|| self.of_rules(&attempt.deed))
            .or_else(|| unmoved(self.mounted?, attempt));
        found.filter(|reason| Reason::declared(self.regime).contains(reason))
    }

    fn of_rules(&self, deed: &Deed) -> Option<Reason> {
        let name = |entry| name(self.profile, &self.ruled, entry);
        let gains = |from, to, kind| gains(&self.ruled, from, to, kind);
        match deed {
            Deed::Content { operations, object } => operations.iter().find_map(|op| content(self.profile, *op, object)),
            Deed::List { folder } => {
                let listed = holds_everywhere_in(&self.ruled, Operation::List, folder);
                (!listed && partly_denied(&self.ruled, Operation::List, folder)).then_some(Reason::Frozen)
            }
            Deed::Entry { entry } => name(entry),
            Deed::Through { entry, object } => name(entry).or_else(|| content(self.profile, Operation::Write, object)),
            Deed::Move { from, to, kind } => name(from)
                .or_else(|| name(to))
                .or_else(|| gains(from, to, *kind).then_some(Reason::GainsByMoving)),
            Deed::Exchange { one, other } => {
                let gained = gains(one, other, Kind::File) || gains(other, one, Kind::File);
                let names = name(one).or_else(|| name(other));
                names.or(gained.then_some(Reason::GainsByMoving))
            }
            Deed::Attributes { object } => attributes(self.profile, object),
            Deed::Internet | Deed::UnixSocket | Deed::OwnProcess | Deed::ProcessOutside => None,
        }
    }
}

/// What cannot be got at, because it is covered or because the way to it is not there.
fn unseen(mounted: &Mounted, profile: &Profile, attempt: &Attempt) -> Option<Reason> {
    let places: Vec<&AbsPath> = match &attempt.deed {
        Deed::Content { object: at, .. } | Deed::Attributes { object: at } | Deed::List { folder: at } => vec![at],
        Deed::Entry { entry } => vec![entry],
        Deed::Through { entry, object } => vec![entry, object],
        Deed::Move { from, to, .. } => vec![from, to],
        Deed::Exchange { one, other } => vec![one, other],
        Deed::Internet | Deed::UnixSocket | Deed::OwnProcess | Deed::ProcessOutside => Vec::new(),
    };
    // Where nothing is around it that is shown, what would be masked is not shown either.
    let unread = |path: &AbsPath| {
        let mut denies = profile.denies.iter().filter(|deny| deny.rights.has(Right::Read));
        denies.any(|deny| deny.covers(path))
    };
    let masked =
        |path: &AbsPath| mounted.is_masked(path.as_path()) || !mounted.is_there(path.as_path()) && unread(path);
    if places.into_iter().any(masked) {
        return Some(Reason::Masked);
    }
    let open = |path: &PathBuf| mounted.is_there(path) && !mounted.is_masked(path);
    (!attempt.way.iter().all(open)).then_some(Reason::WayNotThere)
}

/// What stays where it is, because it is a mount or would leave one.
fn unmoved(mounted: &Mounted, attempt: &Attempt) -> Option<Reason> {
    let is_point = |name: &AbsPath| mounted.is_point(name.as_path());
    match &attempt.deed {
        Deed::Entry { entry } => is_point(entry).then_some(Reason::MountPoint),
        Deed::Move { from, to, .. } | Deed::Exchange { one: from, other: to } => {
            let together = mounted.are_together(from.parent()?.as_path(), to.parent()?.as_path());
            if is_point(from) || is_point(to) {
                Some(Reason::MountPoint)
            } else {
                (!together).then_some(Reason::BetweenMounts)
            }
        }
        Deed::Content { .. }
        | Deed::List { .. }
        | Deed::Through { .. }
        | Deed::Attributes { .. }
        | Deed::Internet
        | Deed::UnixSocket
        | Deed::OwnProcess
        | Deed::ProcessOutside => None,
    }
}

fn content(layer: &Profile, operation: Operation, object: &AbsPath) -> Option<Reason> {
    match layer.access(operation, object) {
        Access::UpTo(_) => Some(Reason::SizeLimit),
        Access::Full => {
            let unread = operation == Operation::Execute && layer.access(Operation::Read, object) == Access::Denied;
            unread.then_some(Reason::ExecuteUnread)
        }
        Access::Denied => None,
    }
}

/// Making, removing and renaming is a matter of the folder that the name is in.
fn name(whole: &Profile, layer: &Profile, entry: &AbsPath) -> Option<Reason> {
    let folder = entry.parent()?;
    match whole.access(Operation::Write, entry) {
        Access::UpTo(_) => return Some(Reason::SizeLimit),
        Access::Denied => return None,
        Access::Full => {}
    }
    if holds_everywhere_in(layer, Operation::Write, &folder) {
        return None;
    }
    let around: Vec<&Grant> = giving(layer, Operation::Write, &folder).collect();
    if around.is_empty() {
        Some(Reason::NameOfTheGrant)
    } else if around.iter().all(|grant| grant.suffixes.is_some()) {
        Some(Reason::Suffixes)
    } else if partly_denied(layer, Operation::Write, &folder) {
        Some(Reason::Frozen)
    } else if around.iter().any(|grant| grant.suffixes.is_some()) {
        Some(Reason::Suffixes)
    } else if around.iter().any(|grant| grant.max_file_bytes.is_some()) {
        Some(Reason::SizeLimit)
    } else {
        None
    }
}

/// Landlock never lets a move or a link widen what may be done with an object.
fn gains(layer: &Profile, from: &AbsPath, to: &AbsPath, kind: Kind) -> bool {
    let (Some(here), Some(there)) = (from.parent(), to.parent()) else {
        return false;
    };
    let matters = |operation: &Operation| kind == Kind::Folder || kind == Kind::Empty || *operation != Operation::List;
    here != there
        && Operation::ALL.into_iter().filter(matters).any(|operation| {
            let own = match kind {
                Kind::File => layer.access(operation, from) == Access::Full,
                Kind::Folder | Kind::Empty => holds_everywhere_in(layer, operation, from),
                // A rule is never tied to a link.
                Kind::Link => false,
            };
            holds_everywhere_in(layer, operation, &there) && !own && !holds_everywhere_in(layer, operation, &here)
        })
}

fn attributes(layer: &Profile, object: &AbsPath) -> Option<Reason> {
    let plain =
        giving(layer, Operation::Write, object).any(|grant| grant.suffixes.is_none() && grant.max_file_bytes.is_none());
    let denied = layer
        .denies
        .iter()
        .any(|deny| deny.rights.has(Right::Write) && deny.covers(object));
    match layer.access(Operation::Write, object) {
        Access::UpTo(_) => Some(Reason::SizeLimit),
        Access::Full if !plain || denied => Some(Reason::AttributesByName),
        Access::Full | Access::Denied => None,
    }
}

/// Whether the operation is given to the object at the path by a rule for it alone.
pub(crate) fn is_ruled_alone(layer: &Profile, operation: Operation, path: &AbsPath) -> bool {
    let folder = path
        .parent()
        .is_some_and(|folder| holds_everywhere_in(layer, operation, &folder));
    layer.access(operation, path) == Access::Full && !folder
}

/// The grants that give some of the operation at the path.
fn giving<'a>(layer: &'a Profile, operation: Operation, path: &'a AbsPath) -> impl Iterator<Item = &'a Grant> {
    layer.grants.iter().filter(move |grant| {
        let reaches = match grant.scope {
            Scope::File => operation != Operation::List && *path == grant.path,
            Scope::Tree => path.is_within(&grant.path),
            Scope::Names => operation == Operation::List && path.is_within(&grant.path),
        };
        reaches && grant.rights.has(operation.right())
    })
}

/// Whether a plain grant gives the operation in all of the folder, so that the folder itself can be ruled.
fn holds_everywhere_in(layer: &Profile, operation: Operation, folder: &AbsPath) -> bool {
    let plain = |grant: &Grant| {
        grant.scope != Scope::File
            && (operation == Operation::List || grant.suffixes.is_none())
            && (operation != Operation::Write || grant.max_file_bytes.is_none())
    };
    giving(layer, operation, folder).any(plain)
        && !partly_denied(layer, operation, folder)
        && layer.access(operation, folder) != Access::Denied
}

/// Whether a deny takes some of the operation in the folder or below it.
fn partly_denied(layer: &Profile, operation: Operation, folder: &AbsPath) -> bool {
    layer
        .denies
        .iter()
        .filter(|deny| takes(deny, operation))
        .any(|deny| match &deny.target {
            Target::Path(at) => at.is_within(folder) || folder.is_within(at) && !ended(deny, folder),
            Target::Pattern { root, .. } => root.is_within(folder) || folder.is_within(root),
        })
}

/// Whether the deny ends at the folder or above it.
fn ended(deny: &Deny, folder: &AbsPath) -> bool {
    deny.ends
        .iter()
        .any(|end| matches!(end, Ending::Tree(at) if folder.is_within(at)))
}

fn takes(deny: &Deny, operation: Operation) -> bool {
    deny.rights.has(operation.right())
        && !(operation == Operation::List && deny.except.is_some())
        && (operation == Operation::Write || deny.beyond.is_none())
}
