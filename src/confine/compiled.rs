//! The worker's own confinement, and what each of its commands gets of it.

use std::os::fd::OwnedFd;

use landlock::RulesetCreated;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;

use super::above::Above;
use super::filter::{self, FilterError};
use super::mounts::Mounts;
use super::protocol::{SetupMessage, StartFailure, Step, WorkerFor};
use super::ruleset;
use crate::backend::Plan;
use crate::backend::seccomp::SeccompPlan;

/// A plan in the form the kernel takes.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The Landlock layer of each command, inside the worker's.
    pub(crate) layer: RulesetCreated,
    /// The plan of both.
    pub(crate) plan: Plan,
    /// `/dev/null` as it is in here, where mounts keep attributes: the host's could be given another mode.
    pub(crate) null: Option<OwnedFd>,
}

/// Enters the layer and the filters of the worker; what commands get of them.
pub(super) fn confine(outside: Above, setup: SetupMessage) -> Result<(Option<Compiled>, Option<Mounts>), StartFailure> {
    let at = |step| StartFailure::at(step);
    // The name only helps a person reading a process list.
    let _named = prctl::set_name(c"stockade-work");
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(at(Step::ParentDeath))?;
    if !outside.is_parent() {
        return Err(StartFailure::new(Step::ParentDeath, Errno::ESRCH, "the keeper is gone"));
    }
    prctl::set_child_subreaper(true).map_err(at(Step::ParentDeath))?;
    let SetupMessage { plan, worker_for } = setup;
    let Some(plan) = plan else { return Ok((None, None)) };
    let mounts = match (outside, &plan.world) {
        (Above::Keeper(_), None) => None,
        (Above::Nothing, Some(world)) => Some(Mounts::hold(world)?),
        (Above::Keeper(_), Some(_)) | (Above::Nothing, None) => {
            return Err(StartFailure::new(
                Step::Setup,
                Errno::EPROTO,
                "a plan for another place",
            ));
        }
    };
    let null = match &plan.filters.mounted {
        Some(_) => {
            let null = open("/dev/null", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty());
            Some(null.map_err(|errno| StartFailure::new(Step::Mounts, errno, "opening /dev/null"))?)
        }
        None => None,
    };
    let layer = ruleset::compile(&plan)?;
    let layer = match worker_for {
        // What the worker may not reach, a command in it may not either: its layer only keeps it apart.
        WorkerFor::Others if ruleset::has_scopes(&plan.landlock) => {
            ruleset::apply(layer, Some(&plan.landlock))?;
            ruleset::scope_only()?
        }
        WorkerFor::Others => {
            ruleset::apply(ruleset::share(&layer)?, Some(&plan.landlock))?;
            layer
        }
        // Compiled anew: a rule added to the shared ruleset would hold for every command.
        WorkerFor::Terminal => {
            ruleset::apply(ruleset::with_processes(ruleset::compile(&plan)?)?, Some(&plan.landlock))?;
            layer
        }
    };
    let filters = &plan.watched.as_ref().unwrap_or(&plan.filters).worker;
    match install(filters)? {
        None => {
            let compiled = Compiled { layer, plan, null };
            Ok((Some(compiled), mounts))
        }
        Some(_) => Err(StartFailure::new(
            Step::Seccomp,
            Errno::EINVAL,
            "the worker's plan has a listener",
        )),
    }
}

/// Installs the filters of a plan; gives the listener of attribute calls where it has one.
pub(crate) fn install(plan: &SeccompPlan) -> Result<Option<OwnedFd>, StartFailure> {
    filter::install(plan).map_err(|error| {
        let (FilterError::NoNewPrivs(errno) | FilterError::Install { source: errno, .. } | FilterError::Listen(errno)) =
            error;
        StartFailure::new(Step::Seccomp, errno, error.to_string())
    })
}
