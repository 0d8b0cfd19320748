//! Closing inherited descriptors.

use std::os::fd::RawFd;

use crate::confine::sys;
use crate::confine::wire::protocol::{StartFailure, Step};

/// The descriptors of a program that starts a supervisor have lower numbers.
const MAX_LOW_FD: RawFd = 1024;

/// Closes all descriptors but the standard ones. Nothing may be owned beyond them.
pub(crate) fn close_all() -> Result<(), StartFailure> {
    sys::close_from(3).map_err(|errno| {
        // Nothing starts, but an inherited copy of the parent's end of the control socket would hide the parent's death.
        sys::close_each(3..MAX_LOW_FD);
        StartFailure::new(Step::Descriptors, errno, "close_range")
    })
}
