//! Plan → running child → outcome.
//!
//! The parent (the [`Confinement`] handle) re-executes this binary as the [`stage`], hands it the
//! plan over a socketpair, and never opens a path an agent chose. The stage gives up what it can and
//! forks: itself it stays as the [`keeper`], which outlives everything else and leaves nothing
//! behind; its child is the [`worker`], confined for good and self-tested, which for each command
//! has a [`runner`]; the runner forks the [`command`], judges its attribute calls, and kills the
//! whole tree before it reports. Every failing step exits; none continues.
//!
//! Only [`sys`] has `unsafe` code.

mod above;
mod asking;
pub mod attempted;
mod awaiting;
pub mod broker;
mod channel;
mod child;
pub mod command;
pub(crate) mod compiled;
mod complaint;
pub mod confinement;
mod counting;
mod covering;
mod dispatch;
pub(crate) mod entry;
pub mod error;
mod failure;
mod file_servers;
pub mod files;
pub mod filter;
pub mod group;
pub mod io;
pub mod keeper;
mod linger;
mod listening;
mod mounts;
mod namespaces;
pub mod outside;
mod place;
pub mod privilege;
pub mod protect;
mod protected;
mod protecting;
pub mod protocol;
mod refusal;
pub mod ruleset;
pub mod runner;
mod running;
mod sampling;
pub mod seatbelt;
pub mod selftest;
pub mod session;
mod spare;
pub mod stage;
mod starting;
pub(crate) mod sweep;
pub mod sys;
mod underway;
mod undone;
mod vigil;
pub mod way_out;
pub mod wire;
pub mod worker;
mod worker_for;

pub use awaiting::Stage;
pub use confinement::{Confinement, Launch, Setup, Unlaunched};
pub use error::ConfineError;
pub use protocol::{CommandLimits, End, LimitKind, Place, StartFailure, Step, WorkerFor};
pub use running::Running;
pub use session::{Named, Session};
