//! Landlock and seccomp, tried on a thread that ends with the trial.

use std::fs;
use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::unistd::{Pid, getpgid, getppid, getsid};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use super::trial;

/// What the trial showed.
#[derive(Debug)]
pub(super) struct KernelProbe {
    /// The ABI the kernel names.
    pub(super) abi: Option<u32>,
    /// Whether a layer holds.
    pub(super) landlock: Result<(), String>,
    /// Whether a filter holds.
    pub(super) seccomp: Result<(), String>,
    /// Whether a path can be opened without following links.
    pub(super) openat2: Result<(), String>,
}

/// What this kernel does. It is tried on a thread of its own: a layer and a filter bind the calling thread, and for good.
pub(super) fn probe() -> KernelProbe {
    trial::outcome("probe", try_all).unwrap_or_else(|why| KernelProbe {
        abi: None,
        landlock: Err(why.clone()),
        seccomp: Err(why.clone()),
        openat2: Err(why),
    })
}

fn try_all() -> KernelProbe {
    // Before a layer forbids it.
    let openat2 = try_openat2();
    let (abi, landlock) = match try_landlock() {
        Ok(abi) => (Some(abi), Ok(())),
        Err((abi, why)) => (abi, Err(why)),
    };
    KernelProbe {
        abi,
        landlock,
        seccomp: try_seccomp(),
        openat2,
    }
}

/// Opens the root as everything that an agent names is opened.
fn try_openat2() -> Result<(), String> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(AT_FDCWD, "/", how)
        .map(drop)
        .map_err(|errno| format!("openat2: {}", errno.desc()))
}

/// Puts on a layer that permits nothing, as strict as the kernel knows, and tries what it forbids.
fn try_landlock() -> Result<u32, (Option<u32>, String)> {
    // The first layer tells which ABI there is: a best effort says so even where there is none.
    let status = first_layer().map_err(|error| (None, format!("put on a layer: {error}")))?;
    let (known, number) = match status {
        LandlockStatus::NotImplemented => {
            let why = "the kernel has no Landlock, or a filter of the surrounding container hides it";
            return Err((None, why.to_owned()));
        }
        LandlockStatus::NotEnabled => {
            return Err((
                None,
                "the kernel has Landlock, but it was not enabled at boot".to_owned(),
            ));
        }
        LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        } => {
            let number = kernel_abi.unwrap_or(effective_abi as i32);
            (effective_abi, u32::try_from(number).unwrap_or(0))
        }
    };
    let fails = |why: String| (Some(number), why);
    let enforced = full_layer(known).map_err(|error| fails(format!("put on a layer of ABI {number}: {error}")))?;
    if !enforced {
        return Err(fails("the kernel did not enforce the whole layer".to_owned()));
    }
    forbidden_open().map_err(fails)?;
    if known >= ABI::V6 {
        forbidden_signal().map_err(fails)?;
    }
    Ok(number)
}

/// A layer of the oldest rights.
fn first_layer() -> Result<LandlockStatus, RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    Ok(ruleset
        .handle_access(AccessFs::from_all(ABI::V1))?
        .create()?
        .restrict_self()?
        .landlock)
}

/// A layer of every right and scope of an ABI; whether it is enforced in full.
fn full_layer(abi: ABI) -> Result<bool, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    let mut ruleset = ruleset.create()?;
    if abi >= ABI::V7 {
        // What is only tried is nothing for the machine's log.
        ruleset = ruleset.log_same_exec(false)?;
    }
    let status = ruleset.restrict_self()?;
    Ok(status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs)
}

/// Tries to list a directory that no rule grants.
fn forbidden_open() -> Result<(), String> {
    match fs::read_dir("/") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(format!("a forbidden open failed for another reason: {error}")),
        Ok(_) => Err("a forbidden open succeeded".to_owned()),
    }
}

/// Tries to signal (with nothing) a process outside the layer.
fn forbidden_signal() -> Result<(), String> {
    let parent = getppid();
    if parent == Pid::from_raw(0) {
        // The first process of a container has no parent that it could name.
        return Ok(());
    }
    match nix::sys::signal::kill(parent, None) {
        Err(Errno::EPERM | Errno::ESRCH) => Ok(()),
        Err(error) => Err(format!("a forbidden signal failed for another reason: {error}")),
        Ok(()) => Err("a forbidden signal was delivered".to_owned()),
    }
}

/// Installs a filter that refuses one harmless call, and makes that call and its neighbour.
fn try_seccomp() -> Result<(), String> {
    // No kernel fails getsid with this of its own.
    const MARK: Errno = Errno::EDOM;
    let mark = u32::try_from(MARK as i32).unwrap_or(0);
    let target = std::env::consts::ARCH
        .try_into()
        .map_err(|error| format!("build a filter: {error}"))?;
    let rules = [(libc::SYS_getsid, Vec::new())].into_iter().collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(mark), target);
    let program = filter
        .and_then(BpfProgram::try_from)
        .map_err(|error| format!("build a filter: {error}"))?;
    seccompiler::apply_filter(&program).map_err(|error| format!("install a filter: {error}"))?;
    match (getsid(None), getpgid(None)) {
        (Err(MARK), Ok(_)) => Ok(()),
        (Err(MARK), Err(error)) => Err(format!("a call beside the refused one failed: {error}")),
        (Err(error), _) => Err(format!("a refused call failed for another reason: {error}")),
        (Ok(_), _) => Err("a refused call succeeded".to_owned()),
    }
}
