//! A system call as a filter sees it, and the answers a filter can give.

use std::fmt;

/// Where the architecture stands in `struct seccomp_data`; what follows is of the single call.
pub(super) const ARCH_OFFSET: u32 = 4;
/// `sizeof(struct seccomp_data)`.
pub(super) const DATA_SIZE: u32 = 64;

/// One system call, as `struct seccomp_data` shows it to a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// `AUDIT_ARCH_*`.
    pub arch: u32,
    /// The number.
    pub nr: u32,
    /// The arguments.
    pub args: [u64; 6],
}

impl Call {
    /// The low 32 bits of an argument; 0 for one that does not exist.
    pub fn low(&self, arg: u8) -> u32 {
        self.args.get(usize::from(arg)).map_or(0, |value| low_half(*value))
    }

    /// The word at a byte offset of `struct seccomp_data`; the instruction pointer reads as 0.
    pub(super) fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.nr,
            ARCH_OFFSET => self.arch,
            16..DATA_SIZE => {
                let value = usize::try_from((offset - 16) / 8)
                    .ok()
                    .and_then(|index| self.args.get(index));
                let value = value.copied().unwrap_or(0);
                // Little-endian, as every architecture of the table is: the low half comes first.
                if offset.is_multiple_of(8) {
                    low_half(value)
                } else {
                    low_half(value >> 32)
                }
            }
            _ => 0,
        }
    }
}

/// The low 32 bits.
fn low_half(value: u64) -> u32 {
    u32::try_from(value & 0xFFFF_FFFF).unwrap_or(0)
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {} of architecture {:#x} with", self.nr, self.arch)?;
        self.args.iter().try_for_each(|arg| write!(f, " {arg:#x}"))
    }
}

/// A filter's answer. Ordered as the kernel orders them: stricter is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The call proceeds.
    Allow,
    /// The call proceeds and is logged.
    Log,
    /// A tracer decides.
    Trace,
    /// The listener decides.
    Notify,
    /// The call fails with this number.
    Errno(u16),
    /// The caller gets `SIGSYS`.
    Trap,
    /// The thread dies.
    KillThread,
    /// The process dies.
    KillProcess,
}

impl Verdict {
    /// The answer a return value means; `None` for one the kernel has no name for.
    pub fn from_return(value: u32) -> Option<Self> {
        Some(match value & 0xFFFF_0000 {
            0x8000_0000 => Self::KillProcess,
            0x0000_0000 => Self::KillThread,
            0x0003_0000 => Self::Trap,
            0x0005_0000 => Self::Errno(u16::try_from(value & 0xFFFF).unwrap_or(0)),
            0x7FC0_0000 => Self::Notify,
            0x7FF0_0000 => Self::Trace,
            0x7FFC_0000 => Self::Log,
            0x7FFF_0000 => Self::Allow,
            _ => return None,
        })
    }

    /// The place in the kernel's order; `Errno(0)` is a call that does nothing and says it succeeded, still not made.
    const fn rank(self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Log => 1,
            Self::Trace => 2,
            Self::Notify => 3,
            Self::Errno(_) => 4,
            Self::Trap => 5,
            Self::KillThread => 6,
            Self::KillProcess => 7,
        }
    }

    /// Whether nothing gets by this answer that the other would stop.
    pub const fn at_least(self, other: Self) -> bool {
        self.rank() >= other.rank()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("allow"),
            Self::Log => f.write_str("log"),
            Self::Trace => f.write_str("trace"),
            Self::Notify => f.write_str("notify"),
            Self::Errno(number) => write!(f, "error {number}"),
            Self::Trap => f.write_str("trap"),
            Self::KillThread => f.write_str("kill the thread"),
            Self::KillProcess => f.write_str("kill the process"),
        }
    }
}
