//! Rights and the operations they govern.

use std::fmt;
use std::ops::BitOr;

/// One of the three things a clause can give or take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// Reading file content and listing directories.
    Read,
    /// Changing content, names and attributes: write, create, remove, rename, chmod, utime, xattr.
    Write,
    /// `execve` of that path. Not code integrity: an interpreter can run what it can read.
    Execute,
}

impl Right {
    /// All rights, in the order reports print them.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Execute];
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
        })
    }
}

/// A set of rights.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rights(u8);

impl Rights {
    /// No right at all.
    pub const NONE: Self = Self(0);
    /// Read only.
    pub const READ: Self = Self(1);
    /// Write only.
    pub const WRITE: Self = Self(2);
    /// Execute only.
    pub const EXECUTE: Self = Self(4);
    /// Read, write and execute.
    pub const ALL: Self = Self(7);

    const fn bit(right: Right) -> u8 {
        match right {
            Right::Read => Self::READ.0,
            Right::Write => Self::WRITE.0,
            Right::Execute => Self::EXECUTE.0,
        }
    }

    /// Whether `right` is in the set.
    pub const fn has(self, right: Right) -> bool {
        self.0 & Self::bit(right) != 0
    }

    /// The set holding what both hold.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The set holding what `self` holds and `other` does not.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether every right of `other` is in the set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The rights in the set, in report order.
    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |r| self.has(*r))
    }
}

impl From<Right> for Rights {
    fn from(right: Right) -> Self {
        Self(Self::bit(right))
    }
}

impl BitOr for Rights {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        for (i, right) in self.iter().enumerate() {
            if i > 0 {
                f.write_str("+")?;
            }
            fmt::Display::fmt(&right, f)?;
        }
        Ok(())
    }
}

/// One thing a process can try on a path; finer than a right, because kernels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Reading the content of a file.
    Read,
    /// Listing a directory. Governed by the read right, but a clause may give it alone (names only).
    List,
    /// Changing a file or a directory entry at this path.
    Write,
    /// `execve` of this path.
    Execute,
}

impl Operation {
    /// All operations, in the order the order-check tries them.
    pub const ALL: [Self; 4] = [Self::Read, Self::List, Self::Write, Self::Execute];

    /// The right that governs the operation.
    pub const fn right(self) -> Right {
        match self {
            Self::Read | Self::List => Right::Read,
            Self::Write => Right::Write,
            Self::Execute => Right::Execute,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::List => "list",
            Self::Write => "write",
            Self::Execute => "execute",
        })
    }
}
