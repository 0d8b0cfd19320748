//! A Landlock plan → a ruleset the kernel holds, ready to be applied.

use std::os::fd::{AsFd, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, TMPFS_MAGIC, fstatfs};
use nix::unistd::{Pid, getpid};

use crate::backend::Plan;
use crate::backend::landlock::rights::{OLDEST_ABI as FLOOR, SCOPE_ABI};
use crate::backend::landlock::{Beneath, LandlockPlan, Rule};
use crate::backend::namespaces::{OLDEST_ABI as FLOOR_INSIDE, OwnFileSystem, OwnRule};
use crate::confine::wire::protocol::{StartFailure, Step};
use crate::policy::path::display;

/// Opens every path of the plan, checks that each is the inode that was ruled, and builds the ruleset.
///
/// Hard requirement throughout: a right the kernel does not know is an error, never left out.
pub(crate) fn compile(plan: &Plan) -> Result<RulesetCreated, StartFailure> {
    let own = plan
        .namespaces
        .as_ref()
        .map_or(&[] as &[OwnRule], |namespace_plan| namespace_plan.own.as_slice());
    let floor = if plan.namespaces.is_some() { FLOOR_INSIDE } else { FLOOR };
    let plan = &plan.landlock;
    let abi = ABI::from(i32::try_from(plan.abi).unwrap_or(0));
    if plan.abi < floor {
        return Err(StartFailure::new(
            Step::Landlock,
            Errno::ENOSYS,
            format!("Landlock ABI {floor} is the floor"),
        ));
    }
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .map_err(failed)?;
    if has_scopes(plan) {
        ruleset = ruleset.scope(BitFlags::<Scope>::all()).map_err(failed)?;
    }
    if plan.handle_tcp && abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V6)).map_err(failed)?;
    }
    let mut created = ruleset.create().map_err(failed)?;
    for rule in &plan.rules {
        let fd = open_ruled(rule)?;
        created = created
            .add_rule(PathBeneath::new(fd, access(rule.access)?))
            .map_err(failed)?;
    }
    for rule in own {
        let fd = open_own(rule)?;
        created = created
            .add_rule(PathBeneath::new(fd, access(rule.access)?))
            .map_err(failed)?;
    }
    Ok(created)
}

/// Whether a layer of this plan keeps signals and abstract sockets to itself.
pub(crate) fn has_scopes(plan: &LandlockPlan) -> bool {
    plan.abi >= SCOPE_ABI
}

fn access(bits: u64) -> Result<BitFlags<AccessFs>, StartFailure> {
    BitFlags::<AccessFs>::from_bits(bits)
        .map_err(|_| StartFailure::new(Step::Landlock, Errno::EINVAL, "unknown access bits in the plan"))
}

/// A mount of the namespace itself, which has no surveyed inode: its file system type is checked.
fn open_own(rule: &OwnRule) -> Result<OwnedFd, StartFailure> {
    let at = |errno| StartFailure::new(Step::OpenRule, errno, display(&rule.path));
    let fd = open(
        rule.path.as_os_str(),
        OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
    .map_err(at)?;
    let expected = match rule.file_system {
        OwnFileSystem::Proc => PROC_SUPER_MAGIC,
        OwnFileSystem::Tmpfs => TMPFS_MAGIC,
    };
    if fstatfs(fd.as_fd()).map_err(at)?.filesystem_type() != expected {
        return Err(at(Errno::ENODEV));
    }
    Ok(fd)
}

/// A copy of the ruleset. Each process that [applies](apply) it gets a layer and scopes of its own.
pub(crate) fn duplicate(ruleset: &RulesetCreated) -> Result<RulesetCreated, StartFailure> {
    ruleset
        .try_clone()
        .map_err(|error| StartFailure::new(Step::Landlock, Errno::last(), error.to_string()))
}

/// Adds to the forker's layer the reading of files in /proc, which the layers of its commands cut down again
/// to [their own](with_own_process).
pub(crate) fn with_processes(layer: RulesetCreated) -> Result<RulesetCreated, StartFailure> {
    let at = StartFailure::at(Step::OpenRule);
    let table = open(
        "/proc",
        OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
    .map_err(&at)?;
    if fstatfs(&table).map_err(&at)?.filesystem_type() != PROC_SUPER_MAGIC {
        return Err(StartFailure::new(Step::OpenRule, Errno::ENODEV, "/proc is not procfs"));
    }
    layer
        .add_rule(PathBeneath::new(table, AccessFs::ReadFile))
        .map_err(failed)
}

/// What a command at a terminal may read of its own first process: what `top`, interpreters and
/// debuggers of themselves look at. Never `net`, `root`, `environ` or `mem`.
const OWN_PROCESS: [&str; 7] = ["stat", "status", "statm", "cmdline", "comm", "maps", "limits"];

/// Adds to a layer the reading of the calling process's own files in /proc, by inode: no other process
/// has them, and the layer of another command never names them.
pub(crate) fn with_own_process(mut layer: RulesetCreated) -> Result<RulesetCreated, StartFailure> {
    for file in own_process_files(getpid()) {
        layer = layer
            .add_rule(PathBeneath::new(file, AccessFs::ReadFile))
            .map_err(failed)?;
    }
    Ok(layer)
}

/// The files of [`with_own_process`] for the process `pid`, opened with `O_PATH`. While they are open the kernel keeps their inode
/// numbers. A missing one is left out.
pub(crate) fn own_process_files(pid: Pid) -> Vec<OwnedFd> {
    OWN_PROCESS
        .iter()
        .filter_map(|name| {
            let path = format!("/proc/{pid}/{name}");
            let fd = open(
                path.as_str(),
                OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
                Mode::empty(),
            )
            .ok()?;
            (fstatfs(&fd).ok()?.filesystem_type() == PROC_SUPER_MAGIC).then_some(fd)
        })
        .collect()
}

/// The runner's own layer: it takes nothing from the file system, and makes the runner's signals reach
/// only its own tree. `REFER` must be handled and given back, or every layer denies it.
pub(crate) fn scope_only() -> Result<RulesetCreated, StartFailure> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)
        .map_err(failed)?
        .scope(BitFlags::<Scope>::all())
        .map_err(failed)?
        .create()
        .map_err(failed)?
        .add_rule(PathBeneath::new(
            PathFd::new("/").map_err(|error| StartFailure::new(Step::Landlock, Errno::last(), error.to_string()))?,
            AccessFs::Refer,
        ))
        .map_err(failed)
}

/// The oldest Landlock ABI that writes what it refuses into the machine's log (Linux 6.15), and can be told not to.
const LOGGING_ABI: u32 = 7;

/// Applies a compiled ruleset to this single-threaded process, for good. The plan is that of the session, where there is one.
pub(crate) fn apply(ruleset: RulesetCreated, plan: Option<&LandlockPlan>) -> Result<(), StartFailure> {
    let ruleset = if plan.is_some_and(|plan| plan.abi >= LOGGING_ABI) {
        // The self-test tries what must fail, at each start.
        ruleset.log_same_exec(false).map_err(failed)?
    } else {
        ruleset
    };
    let RestrictionStatus {
        ruleset, no_new_privs, ..
    } = ruleset.restrict_self().map_err(failed)?;
    match ruleset {
        RulesetStatus::FullyEnforced if no_new_privs => Ok(()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            Err(StartFailure::new(
                Step::Landlock,
                Errno::ENOTSUP,
                "the kernel did not enforce all of the layer",
            ))
        }
    }
}

fn open_ruled(rule: &Rule) -> Result<OwnedFd, StartFailure> {
    let at = |errno| StartFailure::new(Step::OpenRule, errno, display(&rule.path));
    let fd = open(
        rule.path.as_os_str(),
        OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
    .map_err(at)?;
    let stat = fstat(fd.as_fd()).map_err(at)?;
    // Files of procfs get new inode numbers when the kernel drops them from its cache; they cannot be replaced.
    let renumbered = || Ok(fstatfs(fd.as_fd()).map_err(at)?.filesystem_type() == PROC_SUPER_MAGIC);
    if stat.st_dev != rule.device || (stat.st_ino != rule.inode && !renumbered()?) {
        return Err(StartFailure::new(
            Step::OpenRule,
            Errno::ESTALE,
            format!("{} was replaced since the config was read", display(&rule.path)),
        ));
    }
    let is_directory = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
    match (rule.beneath, is_directory) {
        (Beneath::Directory, true) | (Beneath::File, false) => Ok(fd),
        (Beneath::Directory, false) => Err(at(Errno::ENOTDIR)),
        (Beneath::File, true) => Err(at(Errno::EISDIR)),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the argument of map_err")]
fn failed(error: landlock::RulesetError) -> StartFailure {
    use std::error::Error as _;
    let mut source = error.source();
    let mut errno = Errno::ENOTSUP;
    while let Some(cause) = source {
        if let Some(raw) = cause
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::raw_os_error)
        {
            errno = Errno::from_raw(raw);
        }
        source = cause.source();
    }
    let detail = match errno {
        Errno::E2BIG => "this process is already inside 16 Landlock layers; start Stockade outside of them".to_owned(),
        _ => error.to_string(),
    };
    StartFailure::new(Step::Landlock, errno, detail)
}
