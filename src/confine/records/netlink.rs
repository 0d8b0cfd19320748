//! The socket over which the kernel tells its audit records to whoever may read them.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use caps::{CapSet, Capability};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, sendto, setsockopt, socket,
    sockopt,
};
use thiserror::Error;

/// The oldest Landlock ABI that writes records (Linux 6.15).
pub const OLDEST_ABI: u32 = 7;
/// No record is larger; the kernel cuts them at less than 9,000 bytes.
pub(super) const LARGEST: usize = 16 * 1024;

/// The group of those who may read, as a mask: `AUDIT_NLGRP_READLOG`.
const READERS: u32 = 1;
/// The request for what audit is set to, and its answer: `AUDIT_GET`.
const GET: u16 = 1000;
/// An errno in the place of an answer: `NLMSG_ERROR`.
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// The bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// How long the kernel may take to answer, which it does from a thread of its own: on a busy machine that waits for its turn.
const ANSWER_MS: u16 = 5_000;
/// Room for records that come faster than they are read, as far as the machine permits.
const ROOM: usize = 4 * 1024 * 1024;
/// The PID namespace in whose numbers records speak; the kernel gives the first one this fixed number.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Why the kernel's records cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// Landlock writes none.
    #[error("this kernel's Landlock writes none (ABI {OLDEST_ABI}, Linux 6.15, is the first that does)")]
    Old,
    /// The kernel has no audit, or hides it.
    #[error("the kernel has no audit ({0})")]
    NoAudit(Errno),
    /// A capability is missing.
    #[error("reading them needs CAP_AUDIT_READ and CAP_AUDIT_CONTROL outside of every container")]
    NotPermitted,
    /// Process numbers mean something else here.
    #[error("they speak of processes by their numbers outside of this container")]
    Elsewhere,
    /// Nobody switched it on.
    #[error("kernel audit is switched off on this machine")]
    Off,
    /// Something else failed.
    #[error("the socket for them failed ({0})")]
    Socket(Errno),
}

/// What the kernel says of its audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    /// Whether it is switched on.
    pub(super) is_on: bool,
    /// How many records it has dropped so far.
    pub(super) lost: u32,
    /// How many wait to be told.
    pub(super) waiting: u32,
}

/// Whether the kernel's records could be read by this process, by doing all of it but waiting for one.
///
/// # Errors
/// They could not, and why.
pub fn readable(landlock_abi: Option<u32>) -> Result<(), Unreadable> {
    join(landlock_abi).map(|_| ())
}

/// A socket that hears the records from here on, and does not block.
pub(super) fn join(landlock_abi: Option<u32>) -> Result<OwnedFd, Unreadable> {
    if landlock_abi.is_none_or(|abi| abi < OLDEST_ABI) {
        return Err(Unreadable::Old);
    }
    // Who lacks it is not asked by trying: the machine's log would tell of the attempt.
    for capability in [Capability::CAP_AUDIT_READ, Capability::CAP_AUDIT_CONTROL] {
        match caps::has_cap(None, CapSet::Effective, capability) {
            Ok(true) => {}
            Ok(false) | Err(_) => return Err(Unreadable::NotPermitted),
        }
    }
    // Who may not read it stands in a namespace, or has no /proc to learn that from.
    match nix::fcntl::readlink("/proc/self/ns/pid") {
        Ok(namespace) if namespace == FIRST_PID_NAMESPACE => {}
        Ok(_) | Err(_) => return Err(Unreadable::Elsewhere),
    }
    let group = open(READERS)?;
    match status() {
        Ok(Status { is_on: true, .. }) => {}
        Ok(Status { is_on: false, .. }) => return Err(Unreadable::Off),
        Err(Errno::EPERM) => return Err(Unreadable::NotPermitted),
        Err(errno) => return Err(Unreadable::Socket(errno)),
    }
    // The machine's own bound holds where this is beyond it.
    let _bounded = setsockopt(&group, sockopt::RcvBuf, &ROOM);
    Ok(group)
}

fn open(groups: u32) -> Result<OwnedFd, Unreadable> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let made = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkAudit);
    let made = made.map_err(|errno| match errno {
        Errno::EPROTONOSUPPORT | Errno::EAFNOSUPPORT => Unreadable::NoAudit(errno),
        _ => Unreadable::Socket(errno),
    })?;
    bind(made.as_raw_fd(), &NetlinkAddr::new(0, groups)).map_err(|errno| match errno {
        Errno::EPERM | Errno::ECONNREFUSED => Unreadable::NotPermitted,
        _ => Unreadable::Socket(errno),
    })?;
    Ok(made)
}

/// Asks the kernel what its audit is set to, and came to. It may keep whoever asks waiting while it is behind.
pub(super) fn status() -> Result<Status, Errno> {
    let asking = open(0).map_err(|_| Errno::EIO)?;
    let mut request = Vec::with_capacity(HEADER);
    request.extend(u32::try_from(HEADER).unwrap_or(0).to_ne_bytes());
    request.extend(GET.to_ne_bytes());
    request.extend(REQUEST.to_ne_bytes());
    request.extend([0; 8]);
    sendto(asking.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut fds = [PollFd::new(asking.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::from(ANSWER_MS))?;
    let mut buffer = [0; 1024];
    let message = next(asking.as_fd(), &mut buffer)?.ok_or(Errno::EPROTO)?;
    // Of the answer (`struct audit_status`) the second word says whether it is on, the seventh what was lost, the eighth what waits.
    let word = |at: usize| {
        let bytes = message.text.get(at..)?.first_chunk::<4>()?;
        Some(i32::from_ne_bytes(*bytes))
    };
    match message.kind {
        ERROR => Err(word(0).map_or(Errno::EPROTO, |negated| Errno::from_raw(negated.wrapping_neg()))),
        GET => {
            let said = |at| word(at).map(i32::cast_unsigned).ok_or(Errno::EPROTO);
            Ok(Status {
                is_on: said(4)? != 0,
                lost: said(24)?,
                waiting: said(28)?,
            })
        }
        _ => Err(Errno::EPROTO),
    }
}

/// One message.
#[derive(Debug)]
pub(super) struct Message<'b> {
    /// Its type.
    pub(super) kind: u16,
    /// What is behind its header.
    pub(super) text: &'b [u8],
}

/// The next message; `None` for one that is not the kernel's. `EAGAIN` where there is none now, `ENOBUFS` where some
/// were lost.
pub(super) fn next<'b>(socket: BorrowedFd<'_>, buffer: &'b mut [u8]) -> Result<Option<Message<'b>>, Errno> {
    let (length, from) = recvfrom::<NetlinkAddr>(socket.as_raw_fd(), buffer)?;
    let header = buffer
        .get(..length.min(buffer.len()))
        .and_then(|all| all.split_at_checked(HEADER));
    let is_kernel = from.is_some_and(|from| from.pid() == 0);
    Ok(header.filter(|_| is_kernel).and_then(|(header, text)| {
        let kind = header.get(4..)?.first_chunk::<2>()?;
        Some(Message {
            kind: u16::from_ne_bytes(*kind),
            text,
        })
    }))
}
