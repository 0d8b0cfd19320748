//! The content of directories that need a rule per entry.
//!
//! A survey is data: lowering reads it and nothing else, so tests make surveys of their own.
//! [`Survey::take`] fills one from the file system without ever following a link.

mod error;
mod links;
mod listing;
mod mounts;
mod node;
#[expect(clippy::module_inception, reason = "the survey is the idea this folder is named for")]
mod survey;

pub use error::{MOST_ENTRIES, SurveyError};
pub use links::{Link, link_at, links_in};
pub use mounts::{Mount, Mounts};
pub use node::{Kind, Node};
pub use survey::Survey;
