//! A notification → the change that it requests, reading arguments in the kernel's order.

use nix::errno::Errno;

use super::arguments::{Arguments, pair};
use super::caller::Caller;
use super::change::Change;
use super::target::{EmptyPath, LastLink, Target};

/// The architecture whose calls are understood; the command's filter lets no other through.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Calls that the libc crate does not name yet; the same number on every architecture.
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;

const XATTR_ARGS_SIZE: usize = 16;
const PAGE_SIZE: u64 = 4096;

/// What a call requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    /// Nothing: it succeeds without a check of its target.
    Nothing,
    Change {
        target: Target,
        change: Change,
    },
}

/// Reads what the notified call requests. The error is the caller's answer.
pub(super) fn decode(caller: &Caller<'_>, data: &libc::seccomp_data) -> Result<Call, Errno> {
    if data.arch != ARCHITECTURE {
        return Err(Errno::EPERM);
    }
    let args = Arguments {
        caller,
        args: data.args,
    };
    match i64::from(data.nr) {
        libc::SYS_fchmod => change_of(Target::Descriptor(args.int(0)), args.mode(1)),
        libc::SYS_fchmodat => change_of(args.path(Some(0), 1, LastLink::Follow)?, args.mode(2)),
        libc::SYS_fchmodat2 => {
            let at = args.at_flags(3)?;
            change_of(args.path_at(0, 1, at)?, args.mode(2))
        }
        libc::SYS_fchown => change_of(Target::Descriptor(args.int(0)), args.owner(1)),
        libc::SYS_fchownat => {
            let at = args.at_flags(4)?;
            change_of(args.path_at(0, 1, at)?, args.owner(2))
        }
        libc::SYS_utimensat => args.utimensat(),
        libc::SYS_setxattr => args.set_xattr(LastLink::Follow),
        libc::SYS_lsetxattr => args.set_xattr(LastLink::Keep),
        libc::SYS_fsetxattr => {
            let change = args.new_xattr(1, args.args[2], args.args[3], args.args[4])?;
            change_of(Target::Descriptor(args.int(0)), change)
        }
        libc::SYS_removexattr => args.remove_xattr(LastLink::Follow),
        libc::SYS_lremovexattr => args.remove_xattr(LastLink::Keep),
        libc::SYS_fremovexattr => {
            let name = args.xattr_name(1)?;
            change_of(Target::Descriptor(args.int(0)), Change::RemoveXattr { name })
        }
        SYS_SETXATTRAT => args.setxattrat(),
        SYS_REMOVEXATTRAT => {
            let at = args.at_flags(2)?;
            let name = args.xattr_name(3)?;
            change_of(args.xattr_path_at(at)?, Change::RemoveXattr { name })
        }
        #[cfg(target_arch = "x86_64")]
        number => args.older(number),
        #[cfg(not(target_arch = "x86_64"))]
        _ => Err(Errno::EPERM),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the end of every arm of the table")]
fn change_of(target: Target, change: Change) -> Result<Call, Errno> {
    Ok(Call::Change { target, change })
}

impl Arguments<'_> {
    /// Calls that only this architecture still has.
    #[cfg(target_arch = "x86_64")]
    fn older(&self, number: i64) -> Result<Call, Errno> {
        match number {
            libc::SYS_chmod => change_of(self.path(None, 0, LastLink::Follow)?, self.mode(1)),
            libc::SYS_chown => change_of(self.path(None, 0, LastLink::Follow)?, self.owner(1)),
            libc::SYS_lchown => change_of(self.path(None, 0, LastLink::Keep)?, self.owner(1)),
            libc::SYS_utime => self.utime(),
            libc::SYS_utimes => {
                let times = self.timevals(self.args[1])?;
                change_of(self.path(None, 0, LastLink::Follow)?, Change::Times(times))
            }
            libc::SYS_futimesat => {
                let times = self.timevals(self.args[2])?;
                change_of(
                    self.path_or_descriptor(LastLink::Follow, EmptyPath::Nothing)?,
                    Change::Times(times),
                )
            }
            _ => Err(Errno::EPERM),
        }
    }

    fn utimensat(&self) -> Result<Call, Errno> {
        let times = match self.args[2] {
            0 => NOW,
            address => self
                .two_pairs(address)?
                .map(|(tv_sec, tv_nsec)| libc::timespec { tv_sec, tv_nsec }),
        };
        if times.iter().all(|time| time.tv_nsec == libc::UTIME_OMIT) {
            return Ok(Call::Nothing);
        }
        let by_descriptor = self.args[1] == 0 && self.int(0) != libc::AT_FDCWD;
        if by_descriptor && self.int(3) != 0 {
            return Err(Errno::EINVAL);
        }
        let at = self.at_flags(3)?;
        change_of(self.path_or_descriptor(at.last, at.empty)?, Change::Times(times))
    }

    #[cfg(target_arch = "x86_64")]
    fn utime(&self) -> Result<Call, Errno> {
        let times = match self.args[1] {
            0 => NOW,
            address => {
                let (access, modification) = pair(self.caller.array(address)?);
                [access, modification].map(|tv_sec| libc::timespec { tv_sec, tv_nsec: 0 })
            }
        };
        change_of(self.path(None, 0, LastLink::Follow)?, Change::Times(times))
    }

    #[cfg(target_arch = "x86_64")]
    fn timevals(&self, address: u64) -> Result<[libc::timespec; 2], Errno> {
        if address == 0 {
            return Ok(NOW);
        }
        let pairs = self.two_pairs(address)?;
        if pairs.iter().any(|(_, micros)| !(0..1_000_000).contains(micros)) {
            return Err(Errno::EINVAL);
        }
        Ok(pairs.map(|(tv_sec, micros)| libc::timespec {
            tv_sec,
            tv_nsec: micros * 1000,
        }))
    }

    fn set_xattr(&self, last: LastLink) -> Result<Call, Errno> {
        let change = self.new_xattr(1, self.args[2], self.args[3], self.args[4])?;
        change_of(self.path(None, 0, last)?, change)
    }

    fn remove_xattr(&self, last: LastLink) -> Result<Call, Errno> {
        let name = self.xattr_name(1)?;
        change_of(self.path(None, 0, last)?, Change::RemoveXattr { name })
    }

    /// `setxattrat(base, path, at_flags, name, struct xattr_args { u64 value; u32 size, flags; }, size)`.
    fn setxattrat(&self) -> Result<Call, Errno> {
        let (address, size) = (self.args[4], self.args[5]);
        if size < XATTR_ARGS_SIZE as u64 {
            return Err(Errno::EINVAL);
        }
        if size > PAGE_SIZE {
            return Err(Errno::E2BIG);
        }
        let size = usize::try_from(size).map_err(|_| Errno::E2BIG)?;
        let bytes = self.caller.bytes(address, size)?;
        let (known, newer) = bytes.split_first_chunk::<XATTR_ARGS_SIZE>().ok_or(Errno::EINVAL)?;
        // Unknown fields cannot be judged.
        if newer.iter().any(|byte| *byte != 0) {
            return Err(Errno::E2BIG);
        }
        let (value, rest) = pair(*known);
        let rest = rest.cast_unsigned();
        let (value_size, flags) = if cfg!(target_endian = "little") {
            (rest & u64::from(u32::MAX), rest >> 32)
        } else {
            (rest >> 32, rest & u64::from(u32::MAX))
        };
        let at = self.at_flags(2)?;
        let change = self.new_xattr(3, value.cast_unsigned(), value_size, flags)?;
        change_of(self.xattr_path_at(at)?, change)
    }
}

/// Two null times.
const NOW: [libc::timespec; 2] = [libc::timespec {
    tv_sec: 0,
    tv_nsec: libc::UTIME_NOW,
}; 2];
