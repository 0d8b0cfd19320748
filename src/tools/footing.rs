//! What this machine lets a session stand on.

use super::plan::Ground;
use crate::backend::host::Host;
use crate::backend::landlock::rights::{OLDEST_ABI, RESOLVE_UNIX_ABI};
use crate::policy::{OsSandbox, Policy};

/// How commands of a session are held.
#[derive(Debug, Clone)]
pub enum Footing {
    /// By the `landlock` regime.
    Confined(Ground),
    /// Not at all: no regime works here, and the config permits that. Holds why.
    Unconfined(String),
    /// They are refused, with this reason: the config says `os_sandbox_fallback: refuse_tools`.
    Refused(String),
}

impl Footing {
    /// What this machine can do for the policy; an error where the policy wants to fail at once.
    pub fn find(policy: &Policy) -> Result<Self, String> {
        let host = Host::quick();
        let lacks = host.landlock_lacks();
        let why = || {
            if lacks.is_empty() {
                "Landlock does not name its version".to_owned()
            } else {
                lacks.join("; ")
            }
        };
        match (host.landlock_abi, policy.os_sandbox) {
            (Some(landlock_abi), OsSandbox::FailFast | OsSandbox::RefuseTools | OsSandbox::NotRequired)
                if lacks.is_empty() =>
            {
                Ok(Self::Confined(Ground {
                    landlock_abi: landlock_abi.min(RESOLVE_UNIX_ABI),
                    deny_fallback: policy.deny_fallback,
                    residuals: policy.residuals,
                }))
            }
            (_, OsSandbox::FailFast) => Err(cannot_confine(&why())),
            (_, OsSandbox::RefuseTools) => Ok(Self::Refused(cannot_confine(&why()))),
            (_, OsSandbox::NotRequired) => Ok(Self::Unconfined(why())),
        }
    }
}

/// What is missing, what it means, how to get it: one paragraph.
fn cannot_confine(why: &str) -> String {
    format!(
        "this machine cannot confine commands, so nothing was run: {why}. Without it a command could read and write \
         everything this user can. The `landlock` regime needs a kernel with Landlock ABI {OLDEST_ABI} or newer (Linux 6.12) \
         that is enabled (`lsm=` on the kernel command line must name landlock) and seccomp filters; `stockade doctor` \
         says what is there. `require_os_sandbox: false` in the config would run commands unconfined instead."
    )
}
