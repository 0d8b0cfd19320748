//! The thread that waits in a call, seen through `/proc` and its memory.

use std::ffi::CString;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat};
use nix::sys::stat::{Mode, fstatat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::{Pid, getpid, read};

use super::error::BrokerError;
use crate::confine::sys;
use crate::confine::sys::attributes::Listener;

/// No page is smaller, so a read that stays within such a block is readable whole or not at all.
const PAGE: usize = 4096;
/// `BINPRM_BUF_SIZE`.
const BEGINNING: usize = 256;

/// `/proc`, held open.
#[derive(Debug)]
pub(super) struct Proc(OwnedFd);

impl Proc {
    pub(super) fn open() -> Result<Self, BrokerError> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let proc = open("/proc", flags, Mode::empty()).map_err(BrokerError::OpenProc)?;
        let kind = fstatfs(&proc).map_err(BrokerError::InspectProc)?;
        if kind.filesystem_type() != PROC_SUPER_MAGIC {
            return Err(BrokerError::NotProc);
        }
        let me = readlinkat(&proc, "self").map_err(BrokerError::InspectProc)?;
        if me.to_str() != Some(getpid().to_string().as_str()) {
            return Err(BrokerError::ForeignProc);
        }
        Ok(Self(proc))
    }

    /// The path of an object the broker holds, as the kernel knows it now.
    pub(super) fn path_of(&self, object: &OwnedFd) -> Result<PathBuf, Errno> {
        readlinkat(&self.0, own_link(object).as_str()).map(PathBuf::from)
    }
}

/// Where `/proc` has a descriptor of the broker's.
fn own_link(object: &OwnedFd) -> String {
    format!("self/fd/{}", object.as_raw_fd())
}

/// How a descriptor was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DescriptorKind {
    /// For reading or writing: descriptor calls act on it.
    Open,
    /// With `O_PATH`: it only names a file.
    PathOnly,
}

/// The thread that waits. After each read it is checked that it still waits: only then was it that thread that was read, and not a
/// later one with the same id.
#[derive(Debug)]
pub(super) struct Caller<'b> {
    listener: &'b Listener,
    proc: &'b Proc,
    id: u64,
    tid: Pid,
}

impl<'b> Caller<'b> {
    /// The caller of `notification`; `EPERM` when it cannot be seen from here.
    pub(super) fn new(
        listener: &'b Listener,
        proc: &'b Proc,
        notification: &libc::seccomp_notif,
    ) -> Result<Self, Errno> {
        let tid = i32::try_from(notification.pid).map_err(|_| Errno::EPERM)?;
        if tid <= 0 {
            return Err(Errno::EPERM);
        }
        Ok(Self {
            listener,
            proc,
            id: notification.id,
            tid: Pid::from_raw(tid),
        })
    }

    /// The string at `address`, if its NUL comes within `limit` bytes; `too_long` when it does not.
    pub(super) fn string(&self, address: u64, limit: usize, too_long: Errno) -> Result<CString, Errno> {
        let mut bytes = Vec::new();
        while bytes.len() < limit {
            let at = offset(address, bytes.len())?;
            let piece = (PAGE - at % PAGE).min(limit - bytes.len());
            let start = bytes.len();
            bytes.resize(start + piece, 0);
            self.fill(at, &mut bytes[start..])?;
            if let Some(end) = bytes[start..].iter().position(|byte| *byte == 0) {
                bytes.truncate(start + end);
                return CString::new(bytes).map_err(|_| Errno::EFAULT);
            }
        }
        Err(too_long)
    }

    /// The `N` bytes at `address`.
    pub(super) fn array<const N: usize>(&self, address: u64) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        self.fill(offset(address, 0)?, &mut bytes)?;
        Ok(bytes)
    }

    /// The `length` bytes at `address`; the caller of this function bounds `length`.
    pub(super) fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        self.fill(offset(address, 0)?, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads exactly `buffer.len()` bytes: less is a fault, as it is for the kernel.
    fn fill(&self, address: usize, buffer: &mut [u8]) -> Result<(), Errno> {
        let length = buffer.len();
        let remote = [RemoteIoVec {
            base: address,
            len: length,
        }];
        let read = process_vm_readv(self.tid, &mut [IoSliceMut::new(buffer)], &remote);
        self.check()?;
        match read {
            Ok(read) if read == length => Ok(()),
            Ok(_) | Err(Errno::EFAULT) => Err(Errno::EFAULT),
            // Not dumpable, or too little memory here: it cannot be judged.
            Err(_) => Err(Errno::EPERM),
        }
    }

    /// The caller's working directory.
    pub(super) fn directory(&self) -> Result<OwnedFd, Errno> {
        let opened = self.open("cwd");
        self.check()?;
        opened.map_err(|_| Errno::EPERM)
    }

    /// The object behind descriptor `number` of the caller, and how it is held there; `EBADF` when it
    /// is not open.
    pub(super) fn descriptor(&self, number: i32) -> Result<(OwnedFd, DescriptorKind), Errno> {
        if number < 0 {
            return Err(Errno::EBADF);
        }
        let entry = format!("fd/{number}");
        let link = fstatat(&self.proc.0, self.entry(&entry).as_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        let opened = self.open(&entry);
        self.check()?;
        let absent_or_unreadable = |errno| match errno {
            Errno::ENOENT => Errno::EBADF,
            _ => Errno::EPERM,
        };
        let link = link.map_err(absent_or_unreadable)?;
        let object = opened.map_err(absent_or_unreadable)?;
        // The link's own permission bits say how the file was opened. One opened for neither reading
        // nor writing (access mode 3) counts as a place, too: stricter, and nobody does it.
        let kind = if link.st_mode & 0o600 == 0 {
            DescriptorKind::PathOnly
        } else {
            DescriptorKind::Open
        };
        Ok((object, kind))
    }

    /// The path of an object that the broker holds, as the kernel knows it now.
    pub(super) fn path_of(&self, object: &OwnedFd) -> Result<PathBuf, Errno> {
        self.proc.path_of(object)
    }

    /// The first bytes of a regular file that the broker holds, as many as the kernel looks at for an interpreter.
    pub(super) fn beginning(&self, file: &OwnedFd) -> Result<Vec<u8>, Errno> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let file = openat(&self.proc.0, own_link(file).as_str(), flags, Mode::empty())?;
        let mut bytes = vec![0; BEGINNING];
        let length = read(&file, &mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    }

    /// An object that the broker holds, opened.
    pub(super) fn open_again(&self, object: &OwnedFd, how: OFlag) -> Result<OwnedFd, Errno> {
        let flags = how | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        openat(&self.proc.0, own_link(object).as_str(), flags, Mode::empty())
    }

    /// Whether process `pid` is the caller's own.
    pub(super) fn is_of(&self, pid: i32) -> bool {
        let entry = format!("{pid}/task/{}", self.tid);
        fstatat(&self.proc.0, entry.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW).is_ok() && self.check().is_ok()
    }

    /// Whether the number is that of the thread or of its process. As long as it waits, neither is given to another.
    pub(super) fn is(&self, number: i32) -> bool {
        // Every thread of a process has a directory like that of the process; but only a process is opened.
        let is_process = || sys::open_pidfd(Pid::from_raw(number)).is_ok() && self.is_of(number);
        (self.is_thread(number) || is_process()) && self.check().is_ok()
    }

    /// Whether thread `tid` is the caller.
    pub(super) fn is_thread(&self, tid: i32) -> bool {
        self.tid.as_raw() == tid
    }

    fn entry(&self, name: &str) -> String {
        format!("{}/{name}", self.tid)
    }

    fn open(&self, entry: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
        openat(&self.proc.0, self.entry(entry).as_str(), flags, Mode::empty())
    }

    /// `EPERM` when the caller is gone; nobody receives it.
    fn check(&self) -> Result<(), Errno> {
        if self.listener.waits(self.id) {
            Ok(())
        } else {
            Err(Errno::EPERM)
        }
    }
}

/// An address in the caller's memory; one that wraps around is none.
fn offset(address: u64, offset: usize) -> Result<usize, Errno> {
    usize::try_from(address)
        .ok()
        .and_then(|address| address.checked_add(offset))
        .ok_or(Errno::EFAULT)
}
