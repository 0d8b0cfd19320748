//! The forker's own confinement, and what each of its commands gets of it.

use std::os::fd::OwnedFd;

use landlock::RulesetCreated;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;

use crate::backend::Plan;
use crate::backend::seccomp::SeccompPlan;
use crate::confine::forker::forker_parent::ForkerParent;
use crate::confine::forker::mounts::Mounts;
use crate::confine::layers::filter::{self, FilterError};
use crate::confine::layers::ruleset;
use crate::confine::wire::protocol::{ForkerFor, SetupMessage, StartFailure, Step};

/// A plan in the form the kernel takes.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The Landlock layer of each command, inside the forker's.
    pub(crate) layer: RulesetCreated,
    /// The plan of both.
    pub(crate) plan: Plan,
    /// `/dev/null` of the namespace, where mounts enforce attributes: a command could change the mode of the host's.
    pub(crate) null: Option<OwnedFd>,
}

/// Confines the forker; returns what its commands need.
pub(crate) fn confine(
    parent: ForkerParent,
    setup: SetupMessage,
) -> Result<(Option<Compiled>, Option<Mounts>), StartFailure> {
    let at = |step| StartFailure::at(step);
    // The name only helps a person reading a process list.
    let _named = prctl::set_name(c"stockade-fork");
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(at(Step::ParentDeath))?;
    if !parent.is_parent() {
        return Err(StartFailure::new(
            Step::ParentDeath,
            Errno::ESRCH,
            "the supervisor is gone",
        ));
    }
    prctl::set_child_subreaper(true).map_err(at(Step::ParentDeath))?;
    let SetupMessage { plan, forker_for } = setup;
    let Some(plan) = plan else { return Ok((None, None)) };
    let mounts = match (parent, &plan.namespaces) {
        (ForkerParent::Supervisor(_), None) => None,
        (ForkerParent::Hidden, Some(namespace_plan)) => Some(Mounts::verify(namespace_plan)?),
        (ForkerParent::Supervisor(_), Some(_)) | (ForkerParent::Hidden, None) => {
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
    let layer = match forker_for {
        // The forker's layer restricts its commands too; theirs only adds scopes.
        ForkerFor::Others if ruleset::has_scopes(&plan.landlock) => {
            ruleset::apply(layer, Some(&plan.landlock))?;
            ruleset::scope_only()?
        }
        ForkerFor::Others => {
            ruleset::apply(ruleset::duplicate(&layer)?, Some(&plan.landlock))?;
            layer
        }
        // Compiled again: a rule added to the shared ruleset would apply to every command.
        ForkerFor::Terminal => {
            ruleset::apply(ruleset::with_processes(ruleset::compile(&plan)?)?, Some(&plan.landlock))?;
            layer
        }
    };
    let filters = &plan.watched.as_ref().unwrap_or(&plan.filters).forker;
    match install(filters)? {
        None => {
            let compiled = Compiled { layer, plan, null };
            Ok((Some(compiled), mounts))
        }
        Some(_) => Err(StartFailure::new(
            Step::Seccomp,
            Errno::EINVAL,
            "the forker's plan has a listener",
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
