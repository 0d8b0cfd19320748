//! Instructions of classic BPF, and those that filters are made of.

use serde::{Deserialize, Serialize};

/// One classic BPF instruction, as `struct sock_filter` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Jump when true.
    pub jt: u8,
    /// Jump when false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// One filter program.
pub type Program = Vec<Instruction>;

/// What a filter returns for a call that it allows.
pub(super) const RET_ALLOW: u32 = 0x7FFF_0000;

pub(super) const LOAD: u16 = 0x20;
pub(super) const JUMP: u16 = 0x05;
pub(super) const JUMP_EQUAL: u16 = 0x15;
pub(super) const JUMP_GREATER_EQUAL: u16 = 0x35;
pub(super) const RETURN: u16 = 0x06;

/// One instruction.
pub(super) const fn step(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
    Instruction { code, jt, jf, k }
}
