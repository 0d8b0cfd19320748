//! The process that reads objects, for what is in them was written by commands.
//!
//! It is forked for one set of questions and ends with the answers. Before it reads anything it confines itself: it may read
//! below the one directory of objects and nothing else, make no file and no process, and speak to nobody but through one pipe,
//! which carries two bits for each question. Were it subverted, it could say that what is there may stay: it is safe
//! Rust that reads there, and this is the most that a fault in it would be worth. Where it cannot confine itself, does not end in
//! time, or says anything but as many answers as there are questions, nothing may stay.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, pipe2};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::id::Id;
use super::objects::Objects;
use super::reach::{Answer, Query, answer};
use crate::backend::seccomp::{Instruction, Program};
use crate::confine::sys::{self, filters};

/// A last resort: the limits on what is read come first.
const DEADLINE: Duration = Duration::from_secs(20);
/// The same for CPU time.
const SECONDS: u64 = 15;
/// Most memory that it may write to.
const MEMORY: u64 = 512 * 1024 * 1024;

/// Forks the reader and returns its answers.
pub(super) fn run(objects: OwnedFd, tips: &[Id], head: Option<Id>, queries: &[Query]) -> Option<Vec<Answer>> {
    let (reading, writing) = pipe2(OFlag::O_CLOEXEC).ok()?;
    match sys::fork().ok()? {
        None => {
            // The child must never return, not even by a panic.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                answer_in_child(objects, &writing, tips, head, queries)
            }));
            sys::exit_now(i32::from(!matches!(done, Ok(Some(())))))
        }
        Some(child) => {
            drop((writing, objects));
            let reply = receive(reading, queries.len());
            // It has ended, or its reply is invalid.
            let _killed = kill(child, Signal::SIGKILL);
            let reply = reply.filter(|_| !has_failed(child))?;
            let answers = reply.iter().map(|byte| Answer {
                may_stay: byte & 1 != 0,
                is_other_in_head: byte & 2 != 0,
            });
            Some(answers.collect())
        }
    }
}

/// Reaps the child; returns whether it failed or another process killed it.
fn has_failed(child: Pid) -> bool {
    loop {
        match waitpid(child, None) {
            Err(Errno::EINTR) => {}
            Ok(WaitStatus::Exited(_, 0) | WaitStatus::Signaled(_, Signal::SIGKILL, _)) => return false,
            Ok(_) | Err(_) => return true,
        }
    }
}

/// The child's reply, if it is complete and not longer than expected.
fn receive(reading: OwnedFd, length: usize) -> Option<Vec<u8>> {
    let until = Instant::now() + DEADLINE;
    let mut reply = Vec::new();
    let mut reading = File::from(reading);
    loop {
        let left = until.checked_duration_since(Instant::now())?;
        let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).ok()?;
        match poll(&mut [PollFd::new(reading.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(_) => return None,
        }
        let mut buffer = [0; 1024];
        match reading.read(&mut buffer) {
            Ok(0) => break,
            Ok(answer_in_child) => reply.extend_from_slice(buffer.get(..answer_in_child)?),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if reply.len() > length {
            return None;
        }
    }
    (reply.len() == length).then_some(reply)
}

/// Answers the queries in the child.
fn answer_in_child(
    objects: OwnedFd,
    writing: &OwnedFd,
    tips: &[Id],
    head: Option<Id>,
    queries: &[Query],
) -> Option<()> {
    prctl::set_pdeathsig(Signal::SIGKILL).ok()?;
    sys::close_all_but(&[objects.as_fd(), writing.as_fd()]).ok()?;
    confine(&objects)?;
    let mut objects = Objects::new(objects);
    let answers = answer(&mut objects, tips, head, queries);
    let bytes = answers
        .iter()
        .map(|one| u8::from(one.may_stay) | u8::from(one.is_other_in_head) << 1);
    let bytes: Vec<u8> = bytes.collect();
    let mut out = File::from(writing.try_clone().ok()?);
    out.write_all(&bytes).ok()
}

fn confine(objects: &OwnedFd) -> Option<()> {
    for (resource, most) in [
        (Resource::RLIMIT_DATA, MEMORY),
        (Resource::RLIMIT_CPU, SECONDS),
        (Resource::RLIMIT_FSIZE, 0),
        (Resource::RLIMIT_CORE, 0),
    ] {
        setrlimit(resource, most, most).ok()?;
    }
    let answer_in_child = AccessFs::ReadFile | AccessFs::ReadDir;
    let layer = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .ok()?
        // Newer kernels hold more; the filter, which knows no call for any of it, holds it on all.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))
        .ok()?
        .handle_access(AccessNet::from_all(ABI::V5))
        .ok()?
        .scope(Scope::from_all(ABI::V6))
        .ok()?
        .create()
        .ok()?
        .set_compatibility(CompatLevel::HardRequirement)
        .add_rule(PathBeneath::new(objects, answer_in_child))
        .ok()?;
    let status = layer.restrict_self().ok()?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return None;
    }
    filters::install_filter(&filter()?).ok()
}

/// What reading files and having memory takes; anything else kills.
fn filter() -> Option<Program> {
    let plain = [
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_read,
        libc::SYS_pread64,
        libc::SYS_write,
        libc::SYS_close,
        libc::SYS_fstat,
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_lseek,
        libc::SYS_getdents64,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_exit_group,
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = plain.into_iter().map(|call| (call, Vec::new())).collect();
    let only = |argument, operator, value| {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).ok()?;
        SeccompRule::new(vec![condition]).ok()
    };
    let executable = u64::try_from(libc::PROT_EXEC).ok()?;
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![only(2, SeccompCmpOp::MaskedEq(executable), 0)?]);
    }
    let copies = u64::try_from(libc::F_DUPFD_CLOEXEC).ok()?;
    let asks = [libc::F_GETFD, libc::F_SETFD, libc::F_GETFL].map(u64::try_from);
    let mut may = vec![only(1, SeccompCmpOp::Eq, copies)?];
    for run in asks {
        may.push(only(1, SeccompCmpOp::Eq, run.ok()?)?);
    }
    rules.insert(libc::SYS_fcntl, may);
    let target = TargetArch::try_from(std::env::consts::ARCH).ok()?;
    let filter = SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, target).ok()?;
    let program = BpfProgram::try_from(filter).ok()?;
    let steps = program.into_iter().map(|step| Instruction {
        code: step.code,
        jt: step.jt,
        jf: step.jf,
        k: step.k,
    });
    Some(steps.collect())
}
