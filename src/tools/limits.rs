//! Who holds a command to its limits, and what it is told of them.

use std::time::Duration;

use super::enforcement::Enforcement;
use crate::backend::host::{DelegatedGroup, LimitEnforcement, TreeLimit};
use crate::confine::CommandLimits;
use crate::confine::wire::protocol::Counting;
use crate::policy::Limits;
use crate::profile::Profile;

/// Who holds a command of this profile to what its tree may use.
pub(super) fn counting(enforcement: &Enforcement, profile: &Profile) -> Counting {
    let is_bounded = profile.limits.processes.is_some() || profile.limits.memory.is_some();
    // No config lets a command write to control groups: one that stays where it is put stays bounded.
    let has_group = || DelegatedGroup::find().is_ok();
    match enforcement {
        Enforcement::Confined(_) if is_bounded && has_group() => Counting::Group,
        Enforcement::Confined(options) => match TreeLimit::processes_without_group(options.mechanism.regime()).hold {
            LimitEnforcement::Exact => Counting::Namespace,
            LimitEnforcement::Sampled => Counting::Sampled,
        },
        Enforcement::Unconfined(_) | Enforcement::Refused(_) => Counting::Sampled,
    }
}

pub(super) fn command_limits(limits: &Limits, timeout: Option<Duration>, counting: Counting) -> CommandLimits {
    let timeout = match (limits.timeout, timeout) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    CommandLimits {
        timeout_ms: timeout.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
        memory: limits.memory,
        processes: limits.processes,
        counting,
        open_files: limits.open_files,
        file_size: limits.file_size,
    }
}
