//! Plan → running child → outcome.
//!
//! The [`parent`] re-executes this binary as the [`supervisor`], hands it the plan over a socket, and never opens a path that an
//! agent chose. The supervisor gives up what it can and forks the [`forker`], which is confined for good and self-tested, and forks
//! a [`runner`] for each command. The runner forks the command in a layer of its own, judges its attribute calls ([`broker`]), and
//! kills the whole tree before it reports. Every failing step exits; none continues.
//!
//! They talk over [`wire`]. [`layers`] restrict a process; [`namespaces`] are made where they hold the profile. [`files`] is what
//! runs in the place of a command for file tools, [`protect`] records and restores protected names, [`session`] is the private
//! directory, [`io`] the streams, [`way_out`] the way to the network that a list of hosts leaves. Only [`sys`] has `unsafe` code.

pub mod broker;
pub mod error;
pub mod files;
pub mod forker;
pub mod group;
pub mod io;
pub mod layers;
mod namespaces;
pub mod parent;
pub mod protect;
pub mod runner;
pub mod seatbelt;
pub mod session;
pub mod supervisor;
pub(crate) mod sweep;
pub mod sys;
pub mod way_out;
pub mod wire;

pub use error::ConfineError;
pub use parent::confinement::{Confinement, FailedLaunch, Launch, Setup};
pub use parent::running::Running;
pub use parent::supervisor::SupervisorHandle;
pub use session::{Session, SessionName};
#[cfg(test)]
pub(crate) use supervisor::start::assume_initialized;
pub use supervisor::start::{Initialized, init, initialized, is_internal_subcommand, main};
pub use wire::protocol::{CommandLimits, End, ForkerFor, ForkerLocation, LimitKind, StartFailure, Step};
