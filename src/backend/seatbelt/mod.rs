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
mod error;
pub mod lower;
pub mod operation;
pub mod parse;
pub mod pattern;
mod plan;
pub mod reader;
mod spelling;
mod statuses;
pub mod syntax;
pub mod validate;
pub mod view;

pub use error::SeatbeltError;
pub use lower::{Lowered, Options, lower, survey};
pub use parse::{ParseError, parse};
pub use plan::{Parameter, SeatbeltPlan};
pub use validate::validate;
