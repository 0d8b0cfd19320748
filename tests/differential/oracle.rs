//! What the model says of an operation, and the declared list of what the kernel refuses beyond it.

use std::fmt;

use stockade::backend::Regime;
use stockade::policy::{AbsPath, Access, Deny, Grant, Network, Operation, Right, Scope, Target, UnixSockets};
use stockade::profile::{FileReach, Profile};

use super::operations::Deed;
use super::tree::Kind;

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
}

impl Reason {
    /// The reasons there are under a regime.
    pub(crate) const fn declared(regime: Regime) -> &'static [Self] {
        match regime {
            Regime::None | Regime::Seatbelt | Regime::Namespaces => &[],
            Regime::Landlock => &[
                Self::Frozen,
                Self::Suffixes,
                Self::SizeLimit,
                Self::ExecuteUnread,
                Self::NameOfTheGrant,
                Self::GainsByMoving,
                Self::AttributesByName,
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
            Self::NameOfTheGrant | Self::GainsByMoving | Self::AttributesByName => None,
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

/// Why one layer refuses a deed that the profile permits, where the regime declares it.
pub(crate) fn reason(regime: Regime, layer: &Profile, deed: &Deed) -> Option<Reason> {
    let found = match deed {
        Deed::Content { operations, object } => operations.iter().find_map(|op| content(layer, *op, object)),
        Deed::List { folder } => {
            let listed = holds_everywhere_in(layer, Operation::List, folder);
            (!listed && partly_denied(layer, Operation::List, folder)).then_some(Reason::Frozen)
        }
        Deed::Entry { entry } => name(layer, entry),
        Deed::Through { entry, object } => name(layer, entry).or_else(|| content(layer, Operation::Write, object)),
        Deed::Move { from, to, kind } => name(layer, from)
            .or_else(|| name(layer, to))
            .or_else(|| gains(layer, from, to, *kind).then_some(Reason::GainsByMoving)),
        Deed::Exchange { one, other } => {
            let gained = gains(layer, one, other, Kind::File) || gains(layer, other, one, Kind::File);
            let names = name(layer, one).or_else(|| name(layer, other));
            names.or(gained.then_some(Reason::GainsByMoving))
        }
        Deed::Attributes { object } => attributes(layer, object),
        Deed::Internet | Deed::UnixSocket | Deed::OwnProcess | Deed::ProcessOutside => None,
    };
    found.filter(|reason| Reason::declared(regime).contains(reason))
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
fn name(layer: &Profile, entry: &AbsPath) -> Option<Reason> {
    let folder = entry.parent()?;
    if holds_everywhere_in(layer, Operation::Write, &folder) {
        return None;
    }
    match layer.access(Operation::Write, entry) {
        Access::UpTo(_) => return Some(Reason::SizeLimit),
        Access::Denied => return None,
        Access::Full => {}
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
        .any(|deny| deny.rights.has(Right::Write) && deny.target.covers(object));
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
            Target::Path(at) => at.is_within(folder) || folder.is_within(at),
            Target::Pattern { root, .. } => root.is_within(folder) || folder.is_within(root),
        })
}

fn takes(deny: &Deny, operation: Operation) -> bool {
    deny.rights.has(operation.right())
        && !(operation == Operation::List && deny.except.is_some())
        && (operation == Operation::Write || deny.beyond.is_none())
}
