//! The way into namespaces. Either Stockade makes them, receives the plan inside, mounts, and becomes the forker (see
//! [`crate::confine::namespaces`]); or bwrap makes namespaces and mounts, and starts this program again inside.
//!
//! bwrap passes on descriptors, whose numbers are arguments: the control socket, the link to the supervisor, and the setup in
//! sealed memory. The program is a descriptor too, so it need not be visible inside. Either way the forker is process 1.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, SealFlag, fcntl, open};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::socket::{SockType, getsockopt, sockopt};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, dup2_stderr, execve, getppid};
use serde::{Deserialize, Serialize};

use crate::backend::namespaces::NetworkNamespace;
use crate::backend::{MadeBy, NamespacePlan};
use crate::confine::forker::forker_parent::ForkerParent;
use crate::confine::forker::serve;
use crate::confine::layers::privilege;
use crate::confine::wire::decode;
use crate::confine::wire::protocol::{SetupMessage, StartFailure, Step};
use crate::confine::wire::refusal::refuse;
use crate::confine::{namespaces, sys};

/// The hidden subcommand that makes a process the forker, inside namespaces that bwrap has made.
pub(crate) const INSIDE: &str = "__forker";
/// The forker's exit code when it was not started by a Stockade supervisor.
const NOT_A_FORKER: i32 = 125;

/// What the forker reads inside.
#[derive(Debug, Serialize, Deserialize)]
struct ForkerSetup {
    setup: SetupMessage,
    session: OsString,
}

/// Makes namespaces with this network, waits for the setup in there, mounts as it says and becomes the forker; never
/// returns.
pub(crate) fn make(control: &OwnedFd, link: OwnedFd, supervisor: Pid, session: &Path, network: NetworkNamespace) -> ! {
    let entered = namespaces::enter(network, supervisor, &[control.as_fd(), link.as_fd()]);
    // Without a supervisor nobody else reports.
    if let Err(failure) = &entered
        && failure.step == Step::ParentDeath
    {
        refuse(control, failure.clone())
    }
    // Other failures are reported after the setup has come: until then only the supervisor sends.
    let setup = serve::receive_setup(control);
    let done = entered.and_then(|namespaces| {
        let namespace_plan = planned_namespaces(&setup)?;
        match &namespace_plan.made_by {
            MadeBy::Stockade if namespace_plan.mounts.network == network => {}
            MadeBy::Stockade | MadeBy::Bwrap(_) => return Err(plan_mismatch()),
        }
        namespaces.apply(&namespace_plan.mounts, &[control.as_fd(), link.as_fd()])
    });
    match done {
        Ok(()) => serve::begin(control, link, ForkerParent::Hidden, setup, session),
        Err(failure) => refuse(control, failure),
    }
}

/// Waits for the setup and becomes bwrap, and the forker in there; never returns. Errors of bwrap go to `bwrap_stderr`.
pub(crate) fn wrap(control: &OwnedFd, link: &OwnedFd, bwrap_stderr: &OwnedFd, supervisor: Pid, session: &Path) -> ! {
    let setup = serve::receive_setup(control);
    let failure = match planned_namespaces(&setup)
        .map(|namespace_plan| (&namespace_plan.made_by, namespace_plan.mounts.bytes()))
    {
        Ok((MadeBy::Bwrap(program), arguments)) => {
            let program = program.clone();
            let session = session.as_os_str().to_owned();
            let setup = ForkerSetup { setup, session };
            let inherited = InheritedFds {
                control,
                link,
                bwrap_stderr,
            };
            match exec_bwrap(&program, &arguments, &inherited, supervisor, &setup) {
                Ok(never) => match never {},
                Err(failure) => failure,
            }
        }
        Ok((MadeBy::Stockade, _)) => plan_mismatch(),
        Err(failure) => failure,
    };
    refuse(control, failure)
}

/// The namespaces of a plan.
fn planned_namespaces(setup: &SetupMessage) -> Result<&NamespacePlan, StartFailure> {
    let namespace_plan = setup.plan.as_ref().and_then(|plan| plan.namespaces.as_ref());
    namespace_plan.ok_or_else(|| StartFailure::new(Step::Setup, Errno::EPROTO, "a plan without namespaces"))
}

fn plan_mismatch() -> StartFailure {
    StartFailure::new(
        Step::Setup,
        Errno::EPROTO,
        "a plan for other namespaces than were announced",
    )
}

/// Descriptors that bwrap inherits.
struct InheritedFds<'a> {
    control: &'a OwnedFd,
    link: &'a OwnedFd,
    bwrap_stderr: &'a OwnedFd,
}

fn exec_bwrap(
    program: &OsStr,
    mounts: &[u8],
    inherited: &InheritedFds<'_>,
    supervisor: Pid,
    setup: &ForkerSetup,
) -> Result<std::convert::Infallible, StartFailure> {
    let InheritedFds {
        control,
        link,
        bwrap_stderr,
    } = inherited;
    let at = StartFailure::at(Step::Namespaces);
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(&at)?;
    if getppid() != supervisor {
        return Err(StartFailure::new(
            Step::ParentDeath,
            Errno::ESRCH,
            "the supervisor is gone",
        ));
    }
    let packed =
        postcard::to_stdvec(setup).map_err(|error| StartFailure::new(Step::Setup, Errno::EINVAL, error.to_string()))?;
    let setup = sealed(&packed)?;
    let arguments = sealed(mounts)?;
    let itself = open("/proc/self/exe", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).map_err(&at)?;
    let inherited = [control, link, &setup, &arguments, &itself];
    for fd in inherited {
        fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty())).map_err(&at)?;
    }
    dup2_stderr(bwrap_stderr).map_err(&at)?;
    let [control, link, setup, arguments, itself] = inherited.map(AsRawFd::as_raw_fd);
    let argv = [
        "bwrap".to_owned(),
        "--args".to_owned(),
        arguments.to_string(),
        "--die-with-parent".to_owned(),
        "--as-pid-1".to_owned(),
        "--".to_owned(),
        format!("/proc/self/fd/{itself}"),
        INSIDE.to_owned(),
        control.to_string(),
        link.to_string(),
        setup.to_string(),
    ];
    let nul = |_| StartFailure::new(Step::Argument, Errno::EINVAL, "");
    let argv = argv
        .map(CString::new)
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(nul)?;
    let path = CString::new(program.as_bytes()).map_err(nul)?;
    execve(&path, &argv, &[] as &[CString])
        .map_err(|errno| StartFailure::new(Step::Namespaces, errno, crate::policy::path::display(program)))
}

/// Sealed memory with these bytes, at offset 0.
fn sealed(bytes: &[u8]) -> Result<OwnedFd, StartFailure> {
    let at = StartFailure::at(Step::Namespaces);
    let failed = |error: std::io::Error| {
        StartFailure::new(Step::Namespaces, Errno::from_raw(error.raw_os_error().unwrap_or(0)), "")
    };
    let memory = memfd_create(c"stockade", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).map_err(&at)?;
    let mut memory = File::from(memory);
    memory.write_all(bytes).map_err(failed)?;
    memory.rewind().map_err(failed)?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
    fcntl(&memory, FcntlArg::F_ADD_SEALS(seals)).map_err(&at)?;
    Ok(memory.into())
}

/// Becomes the forker inside namespaces; never returns. The arguments are numbers of inherited descriptors.
pub(crate) fn inside(arguments: impl Iterator<Item = OsString>) -> ! {
    let ids: Vec<RawFd> = arguments.filter_map(|word| word.to_str()?.parse().ok()).collect();
    let Ok(ids) = <[RawFd; 3]>::try_from(ids) else {
        sys::exit_now(NOT_A_FORKER)
    };
    let Ok([control, link, setup]) = sys::inherit(ids) else {
        sys::exit_now(NOT_A_FORKER)
    };
    match getsockopt(&control, sockopt::SockType) {
        Ok(SockType::Stream) => {}
        Ok(_) | Err(_) => sys::exit_now(NOT_A_FORKER),
    }
    match reset_process().and_then(|()| read_setup(setup)) {
        Ok(ForkerSetup { setup, session }) => {
            serve::begin(&control, link, ForkerParent::Hidden, setup, Path::new(&session))
        }
        Err(failure) => refuse(&control, failure),
    }
}

/// Repeats what the supervisor did for itself, which the new program has lost.
fn reset_process() -> Result<(), StartFailure> {
    let at = StartFailure::at(Step::Session);
    prctl::set_dumpable(false).map_err(&at)?;
    sys::reset_signals().map_err(&at)?;
    sys::ignore_termination().map_err(&at)?;
    // Standard output is /dev/null; the pipe for errors of bwrap must not stay open here.
    dup2_stderr(std::io::stdout()).map_err(&at)?;
    privilege::drop_all()?;
    prctl::set_no_new_privs().map_err(StartFailure::at(Step::NoNewPrivileges))
}

fn read_setup(setup: OwnedFd) -> Result<ForkerSetup, StartFailure> {
    let failed = |error: std::io::Error| StartFailure::new(Step::Setup, Errno::EPROTO, error.to_string());
    let mut bytes = Vec::new();
    File::from(setup).read_to_end(&mut bytes).map_err(failed)?;
    decode(&bytes).map_err(failed)
}
