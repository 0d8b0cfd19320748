//! Profile → Seatbelt profile text for `sandbox-exec`, and the reader of that text.
//!
//! The story, file by file: [`syntax`] is the part of the profile language that is used, as data;
//! [`operation`] the operations that are known, [`pattern`] the expressions. `spelling` writes a profile in
//! the paths that the kernel of a Mac uses; [`lower()`] turns it into rules, after those that [`base`] has
//! for every command; [`parse()`] reads a text back, refusing what it does not know; [`reader`] answers from
//! the text alone what it permits, in three readings, and [`view`] does so path by path; [`validate()`] holds
//! that against the profile.
//!
//! Paths reach the text through parameters only. Nothing here has been run on a Mac.

pub mod base;
mod denies;
mod draft;
pub mod lower;
pub mod operation;
pub mod parse;
pub mod pattern;
pub mod reader;
mod spelling;
pub mod syntax;
pub mod validate;
pub mod view;
mod words;

use serde::{Deserialize, Serialize};

pub use lower::{Lowered, Options, lower, survey};
pub use parse::{ParseError, parse};
pub use validate::validate;

/// What `sandbox-exec` is told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeatbeltPlan {
    /// The profile text, for `-p`.
    pub text: String,
    /// What its parameters stand for, for `-D`, by number.
    pub parameters: Vec<Parameter>,
}

/// One `-D NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Parameter {
    /// Letters and digits only.
    pub name: String,
    /// A path, or an expression over paths.
    pub value: String,
}

/// Why a profile has no Seatbelt text.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// Text and parameters would not fit on a command line.
    #[error("the Seatbelt profile would be {0} bytes long, more than a command line holds; name fewer paths")]
    TooLong(usize),
    /// A shipped rule cannot be read.
    #[error("a shipped Seatbelt rule cannot be read: {0}")]
    Base(#[from] ParseError),
}
