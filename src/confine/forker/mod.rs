//! The forker: confined once, it holds the compiled plan and forks a runner for each command.
//!
//! In namespaces it is process 1 of the PID namespace ([`entry`] is the way in); in landlock it stands in the layer of the profile.
//! [`above`] says which. [`compiled`] is the plan as the kernel takes it, [`serve`] the loop, [`commands`] how one begins, [`spare`] a
//! runner that waits for the next. [`asking`] has the supervisor record, restore and sample; [`counting`] has the kernel count
//! processes; [`mounts`] sees that what holds the profile is still there.

pub(crate) mod above;
pub(crate) mod asking;
pub(crate) mod commands;
pub(crate) mod compiled;
pub(crate) mod counting;
pub(crate) mod entry;
pub(crate) mod mounts;
pub mod serve;
pub(crate) mod spare;
