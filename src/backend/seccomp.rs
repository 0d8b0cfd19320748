//! Profile → BPF, and the interpreter that reads it back.

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

/// Whose filters these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// The worker and its runners: Stockade's own code, which must read a command's memory to judge
    /// attribute calls and perform them.
    Worker,
    /// A command.
    Command,
}

/// The filters of one role.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeccompPlan {
    /// Filters that answer by themselves, in the order they are installed; the strictest answer wins.
    pub programs: Vec<Program>,
    /// The filter that hands attribute calls to the broker; installed last, with a listener.
    pub notify: Option<Program>,
}
