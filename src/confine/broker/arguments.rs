//! The arguments of one notified call, read as the kernel would read them.

use std::ffi::CString;

use nix::errno::Errno;
use nix::unistd::{Gid, Uid};

use super::caller::Caller;
use super::change::Change;
use super::target::{EmptyPath, LastLink, Target};

const PATH_MAX: usize = 4096;
const XATTR_NAME_ROOM: usize = 256;
const XATTR_SIZE_MAX: u64 = 65536;

/// `AT_SYMLINK_NOFOLLOW` and `AT_EMPTY_PATH`.
#[derive(Clone, Copy)]
pub(super) struct AtFlags {
    pub(super) last: LastLink,
    pub(super) empty: EmptyPath,
}

/// The arguments of one call. An `int` is the low half of its register.
pub(super) struct Arguments<'c> {
    pub(super) caller: &'c Caller<'c>,
    pub(super) args: [u64; 6],
}

impl Arguments<'_> {
    #[expect(clippy::cast_possible_truncation, reason = "the kernel takes the low half, too")]
    pub(super) fn uint(&self, index: usize) -> u32 {
        self.args[index] as u32
    }

    pub(super) fn int(&self, index: usize) -> i32 {
        self.uint(index).cast_signed()
    }

    pub(super) fn mode(&self, index: usize) -> Change {
        Change::Mode(self.uint(index) & 0o7777)
    }

    pub(super) fn owner(&self, index: usize) -> Change {
        let id = |index| Some(self.uint(index)).filter(|id| *id != u32::MAX);
        Change::Owner {
            user: id(index).map(Uid::from_raw),
            group: id(index + 1).map(Gid::from_raw),
        }
    }

    pub(super) fn at_flags(&self, index: usize) -> Result<AtFlags, Errno> {
        let flags = self.int(index);
        if flags & !(libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH) != 0 {
            return Err(Errno::EINVAL);
        }
        let last = if flags & libc::AT_SYMLINK_NOFOLLOW == 0 {
            LastLink::Follow
        } else {
            LastLink::Keep
        };
        let empty = if flags & libc::AT_EMPTY_PATH == 0 {
            EmptyPath::Nothing
        } else {
            EmptyPath::Base
        };
        Ok(AtFlags { last, empty })
    }

    pub(super) fn text(&self, index: usize) -> Result<CString, Errno> {
        self.caller.string(self.args[index], PATH_MAX, Errno::ENAMETOOLONG)
    }

    /// A path relative to the descriptor in argument `base`, or to the working directory.
    pub(super) fn path(&self, base: Option<usize>, path: usize, last: LastLink) -> Result<Target, Errno> {
        Ok(Target::Path {
            base: base.map_or(libc::AT_FDCWD, |index| self.int(index)),
            path: self.text(path)?,
            last,
            empty: EmptyPath::Nothing,
        })
    }

    pub(super) fn path_at(&self, base: usize, path: usize, at: AtFlags) -> Result<Target, Errno> {
        Ok(Target::Path {
            base: self.int(base),
            path: self.text(path)?,
            last: at.last,
            empty: at.empty,
        })
    }

    /// For the xattr calls an empty path means the open file, and a null one is empty.
    pub(super) fn xattr_path_at(&self, at: AtFlags) -> Result<Target, Errno> {
        let base = self.int(0);
        let path = match at.empty {
            EmptyPath::Base if self.args[1] == 0 => CString::default(),
            EmptyPath::Base | EmptyPath::Nothing => self.text(1)?,
        };
        Ok(match at.empty {
            EmptyPath::Base if path.is_empty() && base >= 0 => Target::Descriptor(base),
            EmptyPath::Base | EmptyPath::Nothing => Target::Path {
                base,
                path,
                last: at.last,
                empty: at.empty,
            },
        })
    }

    /// For the utime calls a null path with a descriptor means the open file.
    pub(super) fn path_or_descriptor(&self, last: LastLink, empty: EmptyPath) -> Result<Target, Errno> {
        if self.args[1] == 0 && self.int(0) != libc::AT_FDCWD {
            Ok(Target::Descriptor(self.int(0)))
        } else {
            self.path_at(0, 1, AtFlags { last, empty })
        }
    }

    pub(super) fn two_pairs(&self, address: u64) -> Result<[(i64, i64); 2], Errno> {
        let bytes: [u8; 32] = self.caller.array(address)?;
        let (first, second) = bytes.split_at(16);
        let half = |half: &[u8]| half.try_into().map(pair).map_err(|_| Errno::EFAULT);
        Ok([half(first)?, half(second)?])
    }

    pub(super) fn xattr_name(&self, index: usize) -> Result<CString, Errno> {
        let name = self.caller.string(self.args[index], XATTR_NAME_ROOM, Errno::ERANGE)?;
        if name.is_empty() { Err(Errno::ERANGE) } else { Ok(name) }
    }

    pub(super) fn new_xattr(&self, name: usize, value: u64, size: u64, flags: u64) -> Result<Change, Errno> {
        #[expect(clippy::cast_possible_truncation, reason = "the kernel takes the low half, too")]
        let flags = (flags as u32).cast_signed();
        if flags & !(libc::XATTR_CREATE | libc::XATTR_REPLACE) != 0 {
            return Err(Errno::EINVAL);
        }
        let name = self.xattr_name(name)?;
        if size > XATTR_SIZE_MAX {
            return Err(Errno::E2BIG);
        }
        let size = usize::try_from(size).map_err(|_| Errno::E2BIG)?;
        let value = if size == 0 {
            Vec::new()
        } else {
            self.caller.bytes(value, size)?
        };
        Ok(Change::SetXattr { name, value, flags })
    }
}

/// Two 64-bit words in the order of the machine.
pub(super) fn pair(bytes: [u8; 16]) -> (i64, i64) {
    let word = |range: std::ops::Range<usize>| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[range]);
        i64::from_ne_bytes(word)
    };
    (word(0..8), word(8..16))
}
