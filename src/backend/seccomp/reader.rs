//! An interpreter of filters, which computes in user space what the kernel would return.
//!
//! It knows the few instructions that [`super::lower()`] uses. Anything else (arithmetic, memory,
//! computed returns) is refused rather than understood, so a plan that holds it is never applied.

use super::call::{ARCH_OFFSET, Call, DATA_SIZE, Verdict};
use super::instruction::{Instruction, Program};

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
        self.run(State::default(), call, Sight::Everything)
            .unwrap_or(Verdict::Allow)
    }

    /// The answer to every call of an architecture, whatever its number and arguments, if there is one.
    pub fn answer_to_all_of(&self, arch: u32) -> Option<Verdict> {
        let any = Call {
            arch,
            nr: 0,
            args: [0; 6],
        };
        self.run(State::default(), &any, Sight::Architecture).ok()
    }

    /// Runs the filter as far as architecture and number decide.
    pub fn enter(&self, call: &Call) -> Entered<'a> {
        Entered {
            filter: *self,
            reached: self.run(State::default(), call, Sight::Number),
        }
    }

    /// Runs from a state to the return value, or to the first load of a hidden word.
    fn run(&self, mut state: State, call: &Call, sight: Sight) -> Result<Verdict, State> {
        // Jumps only go forward and the last instruction returns, so this ends; were it not so, the
        // weakest answer is the one a validation must assume.
        while let Some(instruction) = self.code.get(state.at) {
            let (k, accumulator) = (instruction.k, state.accumulator);
            let branch = |taken: bool| usize::from(if taken { instruction.jt } else { instruction.jf });
            let onward = match instruction.code {
                LOAD_WORD if !sight.shows(k) => return Err(state),
                LOAD_WORD => {
                    state.accumulator = call.word(k);
                    0
                }
                AND => {
                    state.accumulator &= k;
                    0
                }
                JUMP => k as usize,
                JUMP_EQUAL => branch(accumulator == k),
                JUMP_GREATER => branch(accumulator > k),
                JUMP_GREATER_EQUAL => branch(accumulator >= k),
                JUMP_ANY_BIT => branch(accumulator & k != 0),
                _ => return Ok(Verdict::from_return(k).unwrap_or(Verdict::Allow)),
            };
            state.at = state.at.saturating_add(1).saturating_add(onward);
        }
        Ok(Verdict::Allow)
    }
}

/// The state of a run.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    at: usize,
    accumulator: u32,
}

/// The part of a call that a run may load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// All of it.
    Everything,
    /// Its architecture and number.
    Number,
    /// Its architecture alone.
    Architecture,
}

impl Sight {
    /// Whether the word at an offset of `struct seccomp_data` may be looked at.
    const fn shows(self, offset: u32) -> bool {
        match self {
            Self::Everything => true,
            Self::Number => offset <= ARCH_OFFSET,
            Self::Architecture => offset == ARCH_OFFSET,
        }
    }
}

/// A filter that knows architecture and number: the many calls that differ in arguments only share the long way here.
#[derive(Debug, Clone, Copy)]
pub struct Entered<'a> {
    filter: Filter<'a>,
    reached: Result<Verdict, State>,
}

impl Entered<'_> {
    /// The answer to a call of the same architecture and number.
    pub fn answer(&self, call: &Call) -> Verdict {
        self.reached.unwrap_or_else(|state| {
            self.filter
                .run(state, call, Sight::Everything)
                .unwrap_or(Verdict::Allow)
        })
    }

    /// The answer whatever the arguments, if there is one; an `Allow` of this kind is in the kernel's bitmap.
    pub fn constant(&self) -> Option<Verdict> {
        self.reached.ok()
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
