//! What this machine lets a session stand on.

use super::plan::{Ground, Walls};
use crate::backend::host::Host;
use crate::backend::landlock::rights::{OLDEST_ABI, RESOLVE_UNIX_ABI};
use crate::policy::{BackendChoice, OsSandbox, Policy};

/// How commands of a session are held.
#[derive(Debug, Clone)]
pub enum Footing {
    /// By Landlock and seccomp, in namespaces or without.
    Confined(Ground),
    /// Not at all: no regime works here, and the config permits that. Holds why.
    Unconfined(String),
    /// They are refused, with this reason: the config says `os_sandbox_fallback: refuse_tools`.
    Refused(String),
}

impl Footing {
    /// What this machine can do for the policy; an error where the policy wants to fail at once.
    pub fn find(policy: &Policy) -> Result<Self, String> {
        let host = match policy.backend {
            BackendChoice::Auto | BackendChoice::Landlock => Host::quick(),
            BackendChoice::Bwrap => Host::with_bwrap(),
        };
        Self::on(&host, policy)
    }

    /// The same of a machine that was looked at.
    pub fn on(host: &Host, policy: &Policy) -> Result<Self, String> {
        let (lacks, walls) = match policy.backend {
            // The strongest that works at its own cost only: namespaces must be asked for.
            BackendChoice::Auto | BackendChoice::Landlock => (host.landlock_lacks(), Some(Walls::Landlock)),
            BackendChoice::Bwrap => (host.namespaces_lacks(), host.bwrap.map(Walls::Namespaces)),
        };
        if let (Some(walls), Some(landlock_abi), true) = (walls, host.landlock_abi, lacks.is_empty()) {
            return Ok(Self::Confined(Ground {
                walls,
                landlock_abi: landlock_abi.min(RESOLVE_UNIX_ABI),
                deny_fallback: policy.deny_fallback,
                residuals: policy.residuals,
            }));
        }
        let why = if lacks.is_empty() {
            "Landlock does not name its version".to_owned()
        } else {
            lacks.join("; ")
        };
        match (policy.os_sandbox, policy.backend) {
            (OsSandbox::RefuseTools, _) => Ok(Self::Refused(cannot_confine(&why, policy.backend))),
            // Another regime may well work: that one was not asked for is no reason to run without any.
            (OsSandbox::FailFast, _) | (OsSandbox::NotRequired, BackendChoice::Bwrap) => {
                Err(cannot_confine(&why, policy.backend))
            }
            (OsSandbox::NotRequired, BackendChoice::Auto | BackendChoice::Landlock) => Ok(Self::Unconfined(why)),
        }
    }
}

/// What is missing, what it means, how to get it: one paragraph.
fn cannot_confine(why: &str, asked: BackendChoice) -> String {
    if asked == BackendChoice::Bwrap {
        return format!(
            "this machine cannot confine commands in the `namespaces` regime, which was asked for, so nothing was run: \
             {why}. `stockade doctor` says what is there; `--backend landlock` (or `sandbox.backend: landlock`) does \
             without bwrap and namespaces."
        );
    }
    format!(
        "this machine cannot confine commands, so nothing was run: {why}. Without it a command could read and write \
         everything this user can. The `landlock` regime needs a kernel with Landlock ABI {OLDEST_ABI} or newer (Linux 6.12) \
         that is enabled (`lsm=` on the kernel command line must name landlock) and seccomp filters; `stockade doctor` \
         says what is there. `require_os_sandbox: false` in the config would run commands unconfined instead."
    )
}
