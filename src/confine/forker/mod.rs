//! The forker: confined once, it holds the compiled plan and forks a runner for each command.
//!
//! In namespaces it is process 1 of the PID namespace ([`entry`] is the way in); in landlock it stands in the layer of the profile.
//! [`forker_parent`] says which. [`compiled`] is the plan as the kernel takes it, [`serve`] the loop, [`commands`] starts a command,
//! [`spare`] is a runner that waits for the next one. [`supervisor_requests`] has the supervisor record, restore and sample;
//! [`counting`] has the kernel count processes; [`mounts`] verifies that the mounts of the profile are still there.

pub(crate) mod commands;
pub(crate) mod compiled;
pub(crate) mod counting;
pub(crate) mod entry;
pub(crate) mod forker_parent;
pub(crate) mod mounts;
pub mod serve;
pub(crate) mod spare;
pub(crate) mod supervisor_requests;
