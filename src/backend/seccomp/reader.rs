//! An interpreter of filters: what the kernel would answer a call, worked out in user space.
//!
//! It knows the few instructions [`super::lower`] has a use for. Anything else (arithmetic, memory,
//! computed returns) is refused rather than understood, so a plan that holds it is never applied.

use std::fmt;

use super::{Instruction, Program};

const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_GREATER_EQUAL: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// `BPF_MAXINSNS`.
const LONGEST: usize = 4096;
/// `sizeof(struct seccomp_data)`.
const DATA_SIZE: u32 = 64;

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
    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.nr,
            4 => self.arch,
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

/// Why a program cannot be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// No instruction at all.
    #[error("it is empty")]
    Empty,
    /// More instructions than the kernel takes.
    #[error("it has {0} instructions; the kernel takes {LONGEST}")]
    TooLong(usize),
    /// An instruction outside the known few.
    #[error("instruction {at} has code {code:#x}, which this reader does not know")]
    Unknown {
        /// Its index.
        at: usize,
        /// Its code.
        code: u16,
    },
    /// A jump past the end.
    #[error("instruction {at} jumps past the end")]
    BadJump {
        /// Its index.
        at: usize,
    },
    /// A load of no word of the call.
    #[error("instruction {at} loads offset {offset}, which is no word of a call")]
    BadLoad {
        /// Its index.
        at: usize,
        /// The offset.
        offset: u32,
    },
    /// A return of a value without meaning.
    #[error("instruction {at} returns {value:#x}, which means nothing")]
    BadReturn {
        /// Its index.
        at: usize,
        /// The value.
        value: u32,
    },
    /// The last instruction is not a return.
    #[error("it can run off its end")]
    NoReturn,
}

/// A program that was read and found well-formed.
#[derive(Debug, Clone, Copy)]
pub struct Filter<'a> {
    code: &'a [Instruction],
}

impl<'a> Filter<'a> {
    /// Reads a program.
    pub fn read(program: &'a Program) -> Result<Self, Malformed> {
        let length = program.len();
        if length > LONGEST {
            return Err(Malformed::TooLong(length));
        }
        for (at, instruction) in program.iter().enumerate() {
            check(at, *instruction, length)?;
        }
        match program.last() {
            None => Err(Malformed::Empty),
            Some(last) if last.code == RETURN => Ok(Self { code: program }),
            Some(_) => Err(Malformed::NoReturn),
        }
    }

    /// The answer to a call.
    pub fn answer(&self, call: &Call) -> Verdict {
        let mut accumulator = 0;
        let mut at = 0;
        // Jumps only go forward and the last instruction returns, so this ends; were it not so, the
        // weakest answer is the one a validation must assume.
        while let Some(instruction) = self.code.get(at) {
            let k = instruction.k;
            let branch = |taken: bool| usize::from(if taken { instruction.jt } else { instruction.jf });
            at += 1;
            match instruction.code {
                LOAD_WORD => accumulator = call.word(k),
                AND => accumulator &= k,
                JUMP => at = at.saturating_add(k as usize),
                JUMP_EQUAL => at += branch(accumulator == k),
                JUMP_GREATER => at += branch(accumulator > k),
                JUMP_GREATER_EQUAL => at += branch(accumulator >= k),
                JUMP_ANY_BIT => at += branch(accumulator & k != 0),
                _ => return Verdict::from_return(k).unwrap_or(Verdict::Allow),
            }
        }
        Verdict::Allow
    }
}

/// Checks one instruction of a program of some length.
fn check(at: usize, instruction: Instruction, length: usize) -> Result<(), Malformed> {
    let lands = |distance: usize| {
        at.checked_add(1)
            .and_then(|next| next.checked_add(distance))
            .is_some_and(|to| to < length)
    };
    match instruction.code {
        LOAD_WORD if instruction.k.is_multiple_of(4) && instruction.k < DATA_SIZE => Ok(()),
        LOAD_WORD => Err(Malformed::BadLoad {
            at,
            offset: instruction.k,
        }),
        AND => Ok(()),
        JUMP if lands(instruction.k as usize) => Ok(()),
        JUMP_EQUAL | JUMP_GREATER | JUMP_GREATER_EQUAL | JUMP_ANY_BIT
            if lands(instruction.jt.into()) && lands(instruction.jf.into()) =>
        {
            Ok(())
        }
        JUMP | JUMP_EQUAL | JUMP_GREATER | JUMP_GREATER_EQUAL | JUMP_ANY_BIT => Err(Malformed::BadJump { at }),
        RETURN if Verdict::from_return(instruction.k).is_some() => Ok(()),
        RETURN => Err(Malformed::BadReturn {
            at,
            value: instruction.k,
        }),
        code => Err(Malformed::Unknown { at, code }),
    }
}

/// The answer of filters installed in this order: the strictest, and of equally strict ones the latest installed.
pub fn stacked(filters: &[Filter<'_>], call: &Call) -> Verdict {
    filters.iter().fold(Verdict::Allow, |strictest, filter| {
        let answer = filter.answer(call);
        if answer.at_least(strictest) { answer } else { strictest }
    })
}
