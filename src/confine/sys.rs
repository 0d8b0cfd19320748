//! System calls that neither std nor nix offers safely.
//!
//! # Safety
//!
//! This file and those below it hold all `unsafe` code of the crate. Each function is safe to call
//! with any argument its types admit: descriptors come in as borrowed or owned types, so they are
//! open for the length of the call; every pointer handed to the kernel is made from a reference whose
//! pointee has exactly the type the call reads or writes; results are checked before they become owned
//! values; and the functions that fork say what the caller must uphold.
#![expect(
    unsafe_code,
    reason = "the one place that talks to the kernel where no safe wrapper exists"
)]

pub(crate) mod attributes;
mod directory;
pub(crate) mod filters;
mod mounts;
mod process;
pub(crate) mod sockets;
mod terminal;

pub(crate) use directory::*;
pub(crate) use mounts::*;
pub(crate) use process::*;
pub(crate) use terminal::*;
