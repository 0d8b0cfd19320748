//! The last report of a process that cannot continue.

use std::os::fd::OwnedFd;

use crate::confine::sys;
use crate::confine::wire::protocol::{Reply, StartFailure};
use crate::confine::wire::send;

/// Reports to the parent why nothing can start, and exits.
pub(crate) fn refuse(control: &OwnedFd, failure: StartFailure) -> ! {
    send_refusal(control, failure);
    sys::exit_now(1)
}

/// Reports to the parent why nothing can start.
pub(crate) fn send_refusal(control: &OwnedFd, failure: StartFailure) {
    // The parent reads end-of-file if even this cannot be sent, which is a refusal as well.
    let _sent = send(control, &Reply::Refused(failure), &[]);
}
