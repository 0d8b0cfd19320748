//! A notified call → what it attempts: which file or address, and for what.
//!
//! What is read here decides nothing: the call continues in any case, and its memory may have changed by then. What the kernel fails
//! before any permission check (an existing name, a directory opened for writing) is no attempt.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::stat::{SFlag, fstat};

use super::address::{Address, address};
use super::arguments::{Arguments, AtFlags};
use super::caller::{Caller, Proc};
use super::lookup::{Kind, Lookup, lookup};
use super::target::{EmptyPath, LastLink, Target};
use crate::backend::seccomp::tests;
use crate::confine::wire::attempted::{Attempt, FileAccess, Found, Node};

/// The longest address that is read.
const ADDRESS: u64 = 128;
/// How many interpreters of interpreters the kernel follows.
const INTERPRETERS: usize = 5;

/// The attempt of a call that the table refuses.
pub(super) fn refused(data: &libc::seccomp_data) -> Attempt {
    let number = u32::try_from(data.nr).unwrap_or(u32::MAX);
    let [first, second, third, fourth, ..] = data.args;
    // Arguments that no answer depends on may differ each time, and must not count as another attempt.
    let where_tested = |index: u8, value: u64| if tests(number, index) { value } else { 0 };
    Attempt::Call {
        number,
        arguments: [first, second, where_tested(2, third), where_tested(3, fourth)],
    }
}

/// A change of attributes that was refused.
pub(super) fn attributes(proc: &Proc, object: &OwnedFd) -> Option<Attempt> {
    let path = proc.path_of(object).ok()?;
    path.is_absolute().then(|| Attempt::File {
        access: FileAccess::Attributes,
        path: path.into(),
        found: Found::There,
    })
}

/// A change of attributes of a file that is missing or hidden.
pub(super) fn of_missing(caller: &Caller<'_>, target: &Target) -> Option<Attempt> {
    let missing = lookup(caller, target).filter(|lookup| lookup.found != Found::There);
    missing.map(|lookup| attempt(FileAccess::Attributes, lookup))
}

pub(super) fn is_exec(data: &libc::seccomp_data) -> bool {
    [libc::SYS_execve, libc::SYS_execveat].contains(&i64::from(data.nr))
}

/// The attempts of a call; more than one where it names two paths, or reads and writes.
///
/// # Errors
/// The caller is gone, or its memory cannot be read.
pub(super) fn read(caller: &Caller<'_>, data: &libc::seccomp_data) -> Result<Vec<Attempt>, Errno> {
    let args = Arguments {
        caller,
        args: data.args,
    };
    let at = |base: usize, path: usize, last| args.path(Some(base), path, last);
    let one = |access, target: Target| Ok(access_of(caller, access, &target));
    match i64::from(data.nr) {
        libc::SYS_openat => Ok(open(caller, &at(0, 1, last(args.int(2)))?, args.int(2))),
        libc::SYS_execve => Ok(execute(caller, args.path(None, 0, LastLink::Follow)?)),
        libc::SYS_execveat => {
            // The kernel checks other flags.
            let empty = if args.int(4) & libc::AT_EMPTY_PATH == 0 {
                EmptyPath::Nothing
            } else {
                EmptyPath::Base
            };
            let last = LastLink::Follow;
            Ok(execute(caller, args.path_at(0, 1, AtFlags { last, empty })?))
        }
        libc::SYS_truncate => one(FileAccess::Write, args.path(None, 0, LastLink::Follow)?),
        libc::SYS_chdir => one(FileAccess::Look, args.path(None, 0, LastLink::Follow)?),
        libc::SYS_renameat2 => {
            let (from, to) = (at(0, 1, LastLink::Keep)?, at(2, 3, LastLink::Keep)?);
            Ok(rename(caller, &from, &to, args.uint(4)))
        }
        libc::SYS_linkat => {
            let last = if args.int(4) & libc::AT_SYMLINK_FOLLOW == 0 {
                LastLink::Keep
            } else {
                LastLink::Follow
            };
            Ok(link(caller, &at(0, 1, last)?, &at(2, 3, LastLink::Keep)?))
        }
        libc::SYS_symlinkat => one(FileAccess::Make, at(1, 2, LastLink::Keep)?),
        libc::SYS_unlinkat => one(FileAccess::Remove, at(0, 1, LastLink::Keep)?),
        libc::SYS_mkdirat => one(FileAccess::Make, at(0, 1, LastLink::Keep)?),
        libc::SYS_mknodat => Ok(make(caller, &at(0, 1, LastLink::Keep)?, args.uint(2), args.uint(3))),
        libc::SYS_newfstatat => one(FileAccess::Look, at(0, 1, last_at(args.int(3)))?),
        libc::SYS_statx => one(FileAccess::Look, at(0, 1, last_at(args.int(2)))?),
        libc::SYS_faccessat | libc::SYS_faccessat2 => one(FileAccess::Look, at(0, 1, LastLink::Follow)?),
        libc::SYS_readlinkat => one(FileAccess::Look, at(0, 1, LastLink::Keep)?),
        libc::SYS_connect => args.address(1, 2, Use::Connect),
        libc::SYS_bind => args.address(1, 2, Use::Bind),
        libc::SYS_sendto if data.args[4] != 0 => args.address(4, 5, Use::Connect),
        libc::SYS_sendto => Ok(Vec::new()),
        #[cfg(target_arch = "x86_64")]
        number => older(&args, number),
        #[cfg(not(target_arch = "x86_64"))]
        libc::SYS_renameat => Ok(rename(
            caller,
            &at(0, 1, LastLink::Keep)?,
            &at(2, 3, LastLink::Keep)?,
            0,
        )),
        #[cfg(not(target_arch = "x86_64"))]
        _ => Err(Errno::EPERM),
    }
}

/// The calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
fn older(args: &Arguments<'_>, number: i64) -> Result<Vec<Attempt>, Errno> {
    let caller = args.caller;
    let path = |index, last| args.path(None, index, last);
    let one = |access, target: Target| Ok(access_of(caller, access, &target));
    match number {
        libc::SYS_open => Ok(open(caller, &path(0, last(args.int(1)))?, args.int(1))),
        libc::SYS_creat => {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
            Ok(open(caller, &path(0, LastLink::Follow)?, flags))
        }
        libc::SYS_rename => Ok(rename(caller, &path(0, LastLink::Keep)?, &path(1, LastLink::Keep)?, 0)),
        libc::SYS_renameat => {
            let at = |base, path| args.path(Some(base), path, LastLink::Keep);
            Ok(rename(caller, &at(0, 1)?, &at(2, 3)?, 0))
        }
        libc::SYS_link => Ok(link(caller, &path(0, LastLink::Keep)?, &path(1, LastLink::Keep)?)),
        libc::SYS_symlink => one(FileAccess::Make, path(1, LastLink::Keep)?),
        libc::SYS_unlink | libc::SYS_rmdir => one(FileAccess::Remove, path(0, LastLink::Keep)?),
        libc::SYS_mkdir => one(FileAccess::Make, path(0, LastLink::Keep)?),
        libc::SYS_mknod => Ok(make(caller, &path(0, LastLink::Keep)?, args.uint(1), args.uint(2))),
        libc::SYS_stat | libc::SYS_access => one(FileAccess::Look, path(0, LastLink::Follow)?),
        libc::SYS_lstat | libc::SYS_readlink => one(FileAccess::Look, path(0, LastLink::Keep)?),
        _ => Err(Errno::EPERM),
    }
}

fn attempt(access: FileAccess, lookup: Lookup) -> Attempt {
    Attempt::File {
        access,
        path: lookup.path,
        found: lookup.found,
    }
}

/// One access to a target, unless its result does not depend on permissions.
fn access_of(caller: &Caller<'_>, access: FileAccess, target: &Target) -> Vec<Attempt> {
    let is_settled =
        |lookup: &Lookup| lookup.found == Found::There && matches!(access, FileAccess::Look | FileAccess::Make);
    let lookup = lookup(caller, target).filter(|lookup| !is_settled(lookup));
    lookup.map(|lookup| attempt(access, lookup)).into_iter().collect()
}

/// The creation of a node, by its mode and device number.
fn make(caller: &Caller<'_>, target: &Target, mode: u32, device: u32) -> Vec<Attempt> {
    let node = match SFlag::from_bits_truncate(mode) & SFlag::S_IFMT {
        SFlag::S_IFCHR if device == 0 => Some(Node::Whiteout),
        SFlag::S_IFCHR | SFlag::S_IFBLK => Some(Node::Device),
        _ => None,
    };
    let of = |attempt| match (attempt, node) {
        (Attempt::File { path, found, .. }, Some(node)) => Attempt::Node { node, path, found },
        (other, _) => other,
    };
    access_of(caller, FileAccess::Make, target)
        .into_iter()
        .map(of)
        .collect()
}

fn open(caller: &Caller<'_>, target: &Target, flags: i32) -> Vec<Attempt> {
    let has = |flag: i32| flags & flag == flag;
    if has(libc::O_PATH) {
        return access_of(caller, FileAccess::Look, target);
    }
    let Some(lookup) = lookup(caller, target) else {
        return Vec::new();
    };
    let (reads, writes) = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => (true, has(libc::O_TRUNC)),
        libc::O_WRONLY => (false, true),
        _ => (true, true),
    };
    let content: &[FileAccess] = match (reads, writes) {
        (true, true) => &[FileAccess::Read, FileAccess::Write],
        (_, true) => &[FileAccess::Write],
        (_, false) => &[FileAccess::Read],
    };
    let is_new = has(libc::O_CREAT) && !has(libc::O_TMPFILE);
    let accesses: &[FileAccess] = match (lookup.found, lookup.kind) {
        (Found::There, _) if is_new && has(libc::O_EXCL) => &[],
        (Found::There, Kind::Directory) if has(libc::O_TMPFILE) => &[FileAccess::Write],
        (Found::There, Kind::Directory) if writes || is_new => &[],
        (Found::There, Kind::Directory) => &[FileAccess::List],
        (Found::There, Kind::Link) => &[],
        (Found::There, Kind::File | Kind::Other) if has(libc::O_DIRECTORY) => &[],
        // No file is made with a slash behind its name.
        (Found::Absent | Found::Nothing, _) if is_new && lookup.path.as_bytes().ends_with(b"/") => &[],
        (Found::Absent | Found::Nothing, _) if is_new => &[FileAccess::Make],
        (Found::There | Found::Absent | Found::Nothing, _) => content,
    };
    let attempt = |access: &FileAccess| Attempt::File {
        access: *access,
        path: lookup.path.clone(),
        found: lookup.found,
    };
    accesses.iter().map(attempt).collect()
}

/// A program, and the interpreters that its first line and theirs name.
fn execute(caller: &Caller<'_>, target: Target) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    let mut next = Some(target);
    while let Some(target) = next.take().filter(|_| attempts.len() <= INTERPRETERS) {
        let Some(mut lookup) = lookup(caller, &target).filter(|lookup| lookup.kind != Kind::Directory) else {
            break;
        };
        let file = lookup.object.take().filter(|_| lookup.kind == Kind::File);
        attempts.push(attempt(FileAccess::Execute, lookup));
        let beginning = file.and_then(|file| caller.beginning(&file).ok());
        next = beginning
            .and_then(|bytes| interpreter(&bytes))
            .map(|path| Target::Path {
                base: libc::AT_FDCWD,
                path,
                last: LastLink::Follow,
                empty: EmptyPath::Nothing,
            });
    }
    attempts
}

/// The interpreter that a script names in its first line.
fn interpreter(beginning: &[u8]) -> Option<CString> {
    let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | 0);
    let path = line.split(is_blank).find(|argument| !argument.is_empty())?;
    CString::new(path).ok()
}

fn rename(caller: &Caller<'_>, from: &Target, to: &Target, flags: u32) -> Vec<Attempt> {
    let Some(from) = lookup(caller, from) else {
        return Vec::new();
    };
    if flags & libc::RENAME_EXCHANGE != 0 {
        // One of them may be hidden here, so it is not known whether both exist.
        let pair = |to: Lookup| Attempt::Exchange([from, to].map(|lookup| (lookup.path, lookup.found)));
        return lookup(caller, to).map(pair).into_iter().collect();
    }
    if from.found != Found::There {
        return vec![attempt(FileAccess::Remove, from)];
    }
    let to = lookup(caller, to);
    let is_there = to.as_ref().is_some_and(|to| to.found == Found::There);
    if flags & libc::RENAME_NOREPLACE != 0 && is_there {
        return Vec::new();
    }
    let to = to.map(|to| attempt(FileAccess::Make, to));
    [attempt(FileAccess::Remove, from)].into_iter().chain(to).collect()
}

/// A second name in another directory is as much as moving it there.
fn link(caller: &Caller<'_>, old: &Target, new: &Target) -> Vec<Attempt> {
    let new = lookup(caller, new).filter(|new| new.found != Found::There);
    let Some(old) = lookup(caller, old) else {
        return new.map(|new| attempt(FileAccess::Make, new)).into_iter().collect();
    };
    if old.found != Found::There {
        return vec![attempt(FileAccess::Look, old)];
    }
    let Some(new) = new else {
        return Vec::new();
    };
    let moves = Path::new(&old.path).parent() != Path::new(&new.path).parent();
    let old = moves.then(|| attempt(FileAccess::Link, old));
    old.into_iter().chain([attempt(FileAccess::Make, new)]).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Connect,
    Bind,
}

impl Arguments<'_> {
    /// The address in these arguments, if it is of a kind that leads anywhere, and there is a socket to lead there.
    fn address(&self, at: usize, length: usize, what: Use) -> Result<Vec<Attempt>, Errno> {
        let (object, _) = self.caller.descriptor(self.int(0))?;
        let kind = SFlag::from_bits_truncate(fstat(&object)?.st_mode) & SFlag::S_IFMT;
        if kind != SFlag::S_IFSOCK {
            return Err(Errno::ENOTSOCK);
        }
        let length = u64::from(self.uint(length)).min(ADDRESS);
        let bytes = self
            .caller
            .bytes(self.args[at], usize::try_from(length).map_err(|_| Errno::EFAULT)?)?;
        Ok(match (address(&bytes), what) {
            (Some(Address::Ip(address)), Use::Connect) => vec![Attempt::Reach(address)],
            (Some(Address::Ip(_)), Use::Bind) | (None, _) => Vec::new(),
            (Some(Address::Unix(path)), what) => {
                let (access, last) = match what {
                    Use::Connect => (FileAccess::Connect, LastLink::Follow),
                    Use::Bind => (FileAccess::Make, LastLink::Keep),
                };
                let (base, empty) = (libc::AT_FDCWD, EmptyPath::Nothing);
                let target = Target::Path {
                    base,
                    path,
                    last,
                    empty,
                };
                access_of(self.caller, access, &target)
            }
        })
    }
}

/// What the flags of an open mean for a link at the end.
const fn last(flags: i32) -> LastLink {
    let kept = flags & libc::O_NOFOLLOW != 0 || flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL;
    if kept { LastLink::Keep } else { LastLink::Follow }
}

/// What the flags of `stat` calls mean for a link at the end.
const fn last_at(flags: i32) -> LastLink {
    if flags & libc::AT_SYMLINK_NOFOLLOW == 0 {
        LastLink::Follow
    } else {
        LastLink::Keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_of_a_script_is_the_first_argument_of_its_first_line() {
        let rows: [(&[u8], Option<&std::ffi::CStr>); 8] = [
            (b"#!/bin/sh\necho", Some(c"/bin/sh")),
            (b"#! \t/bin/env -S x\n", Some(c"/bin/env")),
            (b"#!/bin/\xff", Some(c"/bin/\xff")),
            (b"#!/bin/sh\0x", Some(c"/bin/sh")),
            (b"#!\n/bin/sh", None),
            (b"#!", None),
            (b"\x7fELF", None),
            (b" #!/bin/sh", None),
        ];
        for (beginning, path) in rows {
            assert_eq!(interpreter(beginning).as_deref(), path, "{}", beginning.escape_ascii());
        }
    }
}
