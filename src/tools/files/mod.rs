//! The file tools: what a coding agent reads and changes files with.
//!
//! The story, file by file: `arguments` reads the JSON; `written_path` turns a written path into one to look at;
//! `look` asks the confined file server where it leads; `judge` holds that against the config; `steps` makes
//! changes of the arguments, `change` and `read` assess a call and do what was assessed; `operand` is a file
//! that a command names; `patch` splits a diff into files; `question` and `present` make what a person is
//! asked and shown; `file_client` talks to the servers, `apply` has them make changes; `render` makes the outputs, in the shapes of `shapes`,
//! `failures` why something could not be done.
//!
//! The parent opens no path that an agent chose. A path is judged where it leads, and opened by the server so that a
//! symlink put there since makes it fail.

mod apply;
mod arguments;
mod change;
mod failures;
mod file_client;
#[cfg(any(test, feature = "fuzzing"))]
pub mod hostile;
mod judge;
mod look;
mod operand;
mod patch;
mod present;
mod question;
mod read;
mod render;
mod shapes;
mod steps;
mod tool;
mod written_path;

pub use arguments::FileKind;
pub(super) use arguments::{bare, parse};
pub(super) use file_client::Files;
pub(super) use judge::Judge;
pub(super) use look::FoundFile;
pub(super) use operand::{Operand, Operands, check_operands, operands};
pub use tool::FileTool;
pub(in crate::tools) use written_path::plain;
