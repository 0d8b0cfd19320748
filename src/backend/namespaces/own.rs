//! The regime's own mounts: /proc, /dev and /tmp. They show nothing of the host but harmless devices, so a command can harm
//! nobody there.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::plan::DEVICES;
use crate::backend::clauses::obstacles::at;
use crate::backend::landlock::Beneath;
use crate::backend::landlock::rights::{READ_DIR, READ_FILE, to_give};
use crate::backend::survey::Survey;
use crate::policy::{AbsPath, Access, Deny, Grant, Operation, Rights, Scope, Target};
use crate::profile::index::Index;
use crate::profile::{FileReach, Landmarks, Profile, Reach};

/// Where the private directory in memory is.
pub const TMP: &str = "/tmp";
/// Where processes are shown.
pub const PROC: &str = "/proc";
/// Where devices are.
pub const DEV: &str = "/dev";

/// The entries of /proc about the kernel and the whole machine, which no command needs. Covered in the regime's own /proc, unless
/// it is granted by name.
///
/// The first nine are what container runtimes cover by default (`maskedPaths` of moby; but for `kcore`, which
/// nobody opens without a capability): keystrokes can be timed by `interrupts`, and `keys` shows keyrings of the host.
/// The others only root may read, and a command of root is root: they tell how the kernel uses its memory.
/// All of it is shut off from writing by the layer.
pub const INTERNALS: [&str; 16] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/pagetypeinfo",
    "/proc/slabinfo",
    "/proc/tty/driver",
    "/proc/vmallocinfo",
];

/// Whether the path is one of [`INTERNALS`], or lies in one.
pub(super) fn is_internal(path: &AbsPath) -> bool {
    INTERNALS.iter().any(|top| lies_in(path, top))
}

/// Those of [`INTERNALS`] that this user can look into; the others need no cover.
pub(super) fn open_internals() -> impl Iterator<Item = AbsPath> {
    let opens = |path: &AbsPath| match std::fs::read_dir(path.as_path()) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => {
            std::fs::File::open(path.as_path()).is_ok_and(|file| file.metadata().is_ok_and(|meta| meta.is_file()))
        }
    };
    INTERNALS
        .iter()
        .filter_map(|path| AbsPath::new(path).ok())
        .filter(opens)
}

/// Those that exist and that the profile does not ask for.
pub(super) fn covered_internals(profile: &Profile, survey: &Survey) -> Vec<AbsPath> {
    let says = profile.prepared();
    let covers = |path: &AbsPath| survey.node(path).is_some() && says(path).get(Operation::Read) == Access::Denied;
    INTERNALS
        .iter()
        .filter_map(|path| AbsPath::new(path).ok())
        .filter(covers)
        .collect()
}

/// A Landlock rule on a mount that does not exist before the namespace does, so it has no inode to name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OwnRule {
    /// The mount point; a directory.
    pub path: OsString,
    /// The file system that must be found there (`f_type` of `statfs`).
    pub file_system: OwnFileSystem,
    /// `LANDLOCK_ACCESS_FS_*` bits.
    pub access: u64,
}

/// The file systems of the regime's own mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OwnFileSystem {
    /// `PROC_SUPER_MAGIC`.
    Proc,
    /// `TMPFS_MAGIC`.
    Tmpfs,
}

/// Whether the path lies in the regime's own /proc or /dev, which replace the host's. A host device
/// beside the harmless ones is shown where it is granted by name.
pub(super) fn in_own_mount(path: &AbsPath) -> bool {
    lies_in(path, PROC) || lies_in(path, DEV)
}

/// Whether the path lies in the regime's own /proc, or is a device in its own /dev.
pub(super) fn is_own_path(path: &AbsPath) -> bool {
    in_proc(path) || DEVICES.iter().any(|device| path.as_bytes() == device.as_bytes())
}

/// Whether the path lies in the regime's own /proc.
pub(super) fn in_proc(path: &AbsPath) -> bool {
    lies_in(path, PROC)
}

fn lies_in(path: &AbsPath, top: &str) -> bool {
    let rest = path.as_bytes().strip_prefix(top.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// What the regime's own mounts permit beyond a profile.
#[derive(Debug, Clone)]
pub(super) struct OwnMounts<'a> {
    profile: &'a Profile,
    tmp: Tmp,
    top: AbsPath,
    /// The grants below the private directory.
    grants_below: Index<'a, &'a Grant>,
    denies: Index<'a, &'a Deny>,
}

impl<'a> OwnMounts<'a> {
    /// The mounts around a profile.
    pub(super) fn new(profile: &'a Profile, tmp: Tmp) -> Self {
        let top = AbsPath::new(TMP).unwrap_or_else(|_| AbsPath::root());
        let below = profile.grants.iter().filter(|grant| grant.path.is_below(&top));
        Self {
            grants_below: below.map(|grant| (&grant.path, grant)).collect(),
            denies: profile.denies.iter().map(|deny| (at(deny), deny)).collect(),
            profile,
            tmp,
            top,
        }
    }

    /// What may be done at the path because it lies in a mount of the regime's own.
    ///
    /// In /proc everything is read but the internals. In a private /tmp everything is permitted where no grant below it
    /// speaks: one for a single file says nothing of a listing, since there is none to be had. A deny that could hold
    /// at the path is left to hold.
    fn gives(&self, operation: Operation, path: &AbsPath) -> bool {
        let grants_below = |grant: &Grant| match grant.scope {
            Scope::File => operation != Operation::List && *path == grant.path,
            Scope::Tree | Scope::Names => true,
        };
        let gives = if is_internal(path) {
            return false;
        } else if in_proc(path) {
            Rights::READ
        } else if self.tmp == Tmp::Private
            && path.is_within(&self.top)
            && !self.grants_below.above(path).any(|grant| grants_below(grant))
        {
            Rights::ALL
        } else {
            return false;
        };
        gives.has(operation.right()) && !self.denies.above(path).any(|deny| deny.covers(path))
    }

    /// The Landlock rules on these mounts. A rule also holds below mounts inside, so there is none where a clause permits
    /// less.
    pub(super) fn rules(&self, left: &[Deny]) -> Vec<OwnRule> {
        let mut rules = Vec::new();
        let near = |deny: &Deny, top: &AbsPath| at(deny).is_within(top) || top.is_within(at(deny));
        let rule = |path: &AbsPath, file_system, access| OwnRule {
            path: path.as_path().as_os_str().to_owned(),
            file_system,
            access,
        };
        if let Ok(proc) = AbsPath::new(PROC)
            && !self.profile.denies.iter().any(|deny| near(deny, &proc))
        {
            rules.push(rule(&proc, OwnFileSystem::Proc, READ_FILE | READ_DIR));
        }
        if let Ok(top) = AbsPath::new(TMP)
            && self.tmp == Tmp::Private
            && !left.iter().any(|deny| near(deny, &top))
            && self
                .profile
                .denies
                .iter()
                .all(|deny| !near(deny, &top) || self.is_inside(deny, &top))
            && self
                .profile
                .grants
                .iter()
                .all(|grant| !grant.path.is_below(&top) || as_wide(grant))
        {
            let all = Operation::ALL
                .into_iter()
                .fold(0, |bits, op| bits | to_give(op, Beneath::Directory));
            rules.push(rule(&top, OwnFileSystem::Tmpfs, all));
        }
        rules
    }

    /// Whether the deny holds in a granted tree below `top` and nowhere else.
    fn is_inside(&self, deny: &Deny, top: &AbsPath) -> bool {
        let holds = |grant: &&&Grant| grant.scope == Scope::Tree && grant.path.is_below(top);
        self.grants_below.above(at(deny)).any(|grant| holds(&grant))
    }
}

/// Whether the private directory is there, or the host's is granted in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tmp {
    Private,
    Granted,
}

/// Whether nothing is lost when everything may be read and executed where the grant holds: writing is
/// what mounts hold themselves.
fn as_wide(grant: &Grant) -> bool {
    let all = Rights::READ | Rights::EXECUTE;
    grant.scope != Scope::Names && grant.suffixes.is_none() && grant.rights.and(all) == all
}

/// A profile with the regime's own mounts: what both walls together must not exceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProfileWithOwnMounts<'a> {
    pub(super) profile: &'a Profile,
    pub(super) tmp: Tmp,
}

impl FileReach for ProfileWithOwnMounts<'_> {
    fn name(&self) -> &'static str {
        "the profile"
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.profile.landmarks(landmarks);
        for top in [TMP, PROC, DEV] {
            if let Ok(top) = AbsPath::new(top) {
                landmarks.owned(top);
            }
        }
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let says = self.profile.prepared();
        let own = OwnMounts::new(self.profile, self.tmp);
        Box::new(move |path| {
            let reach = says(path);
            Reach::of(|operation| match reach.get(operation) {
                Access::Denied | Access::UpTo(_) if own.gives(operation, path) => Access::Full,
                given @ (Access::Denied | Access::UpTo(_) | Access::Full) => given,
            })
        })
    }
}

/// The path a deny of one path names.
pub(super) fn literal(deny: &Deny) -> Option<&AbsPath> {
    match &deny.target {
        Target::Path(path) => Some(path),
        Target::Pattern { .. } => None,
    }
}
