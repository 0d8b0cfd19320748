//! The parent: it starts supervisors, sends them commands, and receives how those end. It opens no path that an agent chose, and may die
//! at any time.
//!
//! [`supervisor`] is its handle on a supervisor that has no plan yet, [`confinement`] on one that has; [`dispatch`] tells every
//! waiting call what the other end says, [`running`] is one call that waits. [`child`] starts the process, [`channel`] moves messages
//! without blocking, [`watchdog`] keeps a supervisor that somebody stopped going. [`file_servers`] starts what reads and writes files.
//! [`unconfined`] runs a program of the user's outside every confinement, for one question.

pub(crate) mod channel;
pub(crate) mod child;
pub mod confinement;
pub(crate) mod dispatch;
pub(crate) mod file_servers;
pub(crate) mod running;
pub(crate) mod supervisor;
pub mod unconfined;
pub(crate) mod watchdog;
