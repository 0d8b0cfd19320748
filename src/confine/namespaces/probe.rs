//! Making namespaces and mounts once, to see whether it works.
//!
//! Settings and versions do not show it: some distributions let the call succeed and remove the rights afterwards. So all of it is
//! done, by the same code and with the same rights, in a process of its own.

use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::io::{IoSliceMut, Write, stderr, stdout};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::waitpid;
use nix::unistd::{execve, getppid, pause};

use super::super::sys;
use crate::backend::host::{Probe, Probed};
use crate::backend::landlock::Beneath;
use crate::backend::namespaces::{BindAccess, MountPlan, NetworkNamespace, Step as MountStep};
use crate::confine::layers::{descriptors, privilege};
use crate::confine::wire::protocol::{ForkerLocation, StartFailure, Step};

/// Tries it, prints the result, and exits. With arguments it becomes that program, with the rights that bwrap gets.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ! {
    let program: Vec<OsString> = arguments.collect();
    if !program.is_empty() {
        let Err(failure) = become_bwrap(program);
        let _written = writeln!(stderr(), "{failure}");
        sys::exit_now(1)
    }
    let mut probed = Probed {
        close_range: Probe::Untried,
        memory: Probe::Untried,
        namespaces: Probe::Untried,
    };
    // No output counts as a failure.
    let code = match attempt(&mut probed) {
        Ok(()) => 0,
        Err(failure) => {
            probed.namespaces = Probe::Fails(failure.to_string());
            1
        }
    };
    let written = serde_json::to_string(&probed)
        .map_err(std::io::Error::from)
        .and_then(|json| writeln!(stdout(), "{json}"))
        .and_then(|()| stdout().flush());
    sys::exit_now(if written.is_ok() { code } else { 1 })
}

/// Returns in process 1, or with the failure.
fn attempt(probed: &mut Probed) -> Result<(), StartFailure> {
    let parent = getppid();
    let closed = descriptors::close_all();
    probed.close_range = closed.as_ref().map(drop).map_err(ToString::to_string).into();
    closed?;
    privilege::prepare(ForkerLocation::Namespaces(NetworkNamespace::Own))?;
    probed.memory = read_memory().map_err(|errno| errno.desc().to_owned()).into();
    let plan = plan()?;
    super::enter(plan.network, parent, &[])?.apply(&plan, &[])?;
    probed.namespaces = Probe::Works;
    Ok(())
}

/// Reads the memory of a process started for it.
fn read_memory() -> Result<(), Errno> {
    // At the same address in both.
    static SAMPLE: [u8; 4] = *b"read";
    let Some(child) = sys::fork()? else {
        // It ends with its parent, whatever becomes of that.
        if prctl::set_pdeathsig(Signal::SIGKILL).is_err() {
            sys::exit_now(1)
        }
        loop {
            pause();
        }
    };
    let mut bytes = [0; SAMPLE.len()];
    let remote = [RemoteIoVec {
        base: SAMPLE.as_ptr().addr(),
        len: SAMPLE.len(),
    }];
    let read = process_vm_readv(child, &mut [IoSliceMut::new(&mut bytes)], &remote);
    kill(child, Signal::SIGKILL)?;
    waitpid(child, None)?;
    match read {
        Ok(length) if length == SAMPLE.len() && bytes == SAMPLE => Ok(()),
        Ok(_) => Err(Errno::EFAULT),
        Err(errno) => Err(errno),
    }
}

fn become_bwrap(program: Vec<OsString>) -> Result<Infallible, StartFailure> {
    descriptors::close_all()?;
    privilege::prepare(ForkerLocation::Bwrap)?;
    let argv: Vec<CString> = program
        .into_iter()
        .map(|argument| CString::new(argument.into_vec()))
        .collect::<Result<_, _>>()
        .map_err(|_| StartFailure::new(Step::Argument, Errno::EINVAL, ""))?;
    let at = StartFailure::at(Step::Namespaces);
    let path = argv.first().ok_or(Errno::EINVAL).map_err(&at)?;
    execve(path, &argv, &[] as &[CString]).map_err(at)
}

/// The whole host read-only, and one mount of each other kind.
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
