//! Profile → Landlock rules, and the reader of those rules.
//!
//! The story, file by file: `plan` is the rules as data; [`rights`] names the kernel's bits and says which of them an operation
//! is; [`lower()`] turns grants into rules, one per tree where it can and one per entry
//! where a deny stands in the way, and says what is lost; [`reader`] answers from the
//! rules alone what they permit, and [`validate`] holds that against the profile.

pub mod lower;
mod plan;
pub mod reader;
pub mod rights;
#[cfg(test)]
mod tests;

pub use lower::{Lowered, Options, lower, survey, survey_after};
pub use plan::{Beneath, LandlockPlan, Rule};
pub use reader::validate;
