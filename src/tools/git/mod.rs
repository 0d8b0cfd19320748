//! The user's git settings inside the sandbox.
//!
//! HOME is private there, so git finds none of its user's settings. What is plain data in them is carried: [`files`] says where
//! git reads them, [`carried`] reads them with what they include, as far as [`bounds`] lets it, by the [`list`] of what is plain, and writes that and the
//! files which it names into the private HOME. What is left out and changes what git does is told ([`left_out`]).
//!
//! [`elsewhere`] finds the git directory of a work tree that does not lie in it, [`work_trees()`] the work trees of a repository that
//! lie elsewhere.
//!
//! Nothing is run, and a setting gives a command no more than its own text: the command might set it itself. A file that
//! settings name gives its content. So no such name is believed that a command of the session could have written, and none
//! that leads to what the config keeps from commands.

mod bounds;
mod carried;
mod elsewhere;
mod files;
mod left_out;
mod list;
mod work_trees;

pub use elsewhere::preset;
pub(super) use elsewhere::with_git_directory;
pub use files::GitFiles;

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::config::Context;
use crate::confine::protect::Person;

pub(super) use bounds::Bounds;
pub(super) use carried::carry;
pub(super) use left_out::missed;
pub(super) use work_trees::work_trees;

/// Whose git may run or obey what a command leaves: the user of this context.
pub fn person(context: &Context) -> Person {
    // As they are written: where `..` leads depends on the links before it.
    let variable = |name: &str| {
        let path = context.variables.get(OsStr::new(name)).map(PathBuf::from);
        path.filter(|path| !path.as_os_str().is_empty())
    };
    let own = context.home.as_ref().map(|home| home.as_path().to_owned());
    let homes: Vec<PathBuf> = own.into_iter().chain(variable("HOME")).collect();
    Person::of(homes.iter().map(PathBuf::as_path), variable)
}
