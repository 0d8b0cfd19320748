//! A seccomp plan on the calling thread.
//!
//! Filters bind the thread that installs them and every process it starts, and cannot be taken off.

use std::os::fd::OwnedFd;

use nix::errno::Errno;

use crate::backend::seccomp::SeccompPlan;
use crate::confine::sys::filters;

/// Why a thread does not have the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// `no_new_privs` could not be set.
    #[error("set no_new_privs")]
    NoNewPrivs(#[source] Errno),
    /// One filter was not taken; the ones before it hold.
    #[error("install filter {index}")]
    Install {
        /// Its place in the plan.
        index: usize,
        /// Why.
        source: Errno,
    },
    /// The filter with the listener was not taken.
    #[error("install the filter for attribute calls")]
    Listen(#[source] Errno),
}

/// Sets `no_new_privs` and installs every filter of the plan on the calling thread; gives the
/// listener where the plan has one.
///
/// On an error some filters may hold already: the thread must end.
pub fn install(plan: &SeccompPlan) -> Result<Option<OwnedFd>, FilterError> {
    nix::sys::prctl::set_no_new_privs().map_err(FilterError::NoNewPrivs)?;
    // Before the others, which refuse the thread a listener.
    let listener = plan.notify.as_ref().map(filters::install_notify_filter).transpose();
    let listener = listener.map_err(FilterError::Listen)?;
    for (index, program) in plan.programs.iter().enumerate() {
        filters::install_filter(program).map_err(|source| FilterError::Install { index, source })?;
    }
    Ok(listener)
}
