//! Namespaces and mounts made once for nothing, to see whether they can be.
//!
//! Settings and versions do not tell: distributions let the call succeed and take the rights away after it. So all of it
//! is done, by the same code and with the same rights, in a process that was started for that.

use std::ffi::OsString;
use std::io::{Write, stdout};
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::unistd::getppid;

use super::super::protocol::{Place, StartFailure, Step};
use super::super::{stage, sys};
use crate::backend::host::PROBE_WORKED;
use crate::backend::landlock::Beneath;
use crate::backend::namespaces::{BindAccess, MountPlan, NetworkNamespace, Step as MountStep};

/// Tries it, says what came of it, and ends.
pub(crate) fn main() -> ! {
    let (said, code) = match attempt() {
        Ok(()) => (PROBE_WORKED.to_owned(), 0),
        Err(failure) => (failure.to_string(), 1),
    };
    // Whoever reads takes silence for a failure.
    let told = writeln!(stdout(), "{said}").and_then(|()| stdout().flush());
    sys::exit_now(if told.is_ok() { code } else { 1 })
}

/// Comes back as the second process in there; or with what failed.
fn attempt() -> Result<(), StartFailure> {
    let parent = getppid();
    sys::close_from(3).map_err(StartFailure::at(Step::Session))?;
    stage::prepare(Place::Namespaces(NetworkNamespace::Own))?;
    let plan = plan()?;
    super::enter(plan.network, parent, &[])?.furnish(&plan, &[])
}

/// All of the host read-only, and one of each that the regime brings along.
fn plan() -> Result<MountPlan, StartFailure> {
    let root = std::fs::metadata("/").map_err(|error| {
        let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        StartFailure::new(Step::Namespaces, errno, "the root")
    })?;
    let path = |path: &str| OsString::from(path);
    Ok(MountPlan {
        network: NetworkNamespace::Own,
        steps: vec![
            MountStep::Bind {
                path: path("/"),
                access: BindAccess::ReadOnly,
                device: root.dev(),
                inode: root.ino(),
                beneath: Beneath::Directory,
            },
            MountStep::Proc { path: path("/proc") },
            MountStep::Dev { path: path("/dev") },
            MountStep::Tmp {
                path: path("/tmp"),
                bytes: 4096,
            },
            MountStep::Freeze { path: path("/dev") },
        ],
    })
}
