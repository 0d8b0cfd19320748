//! Why there is no session.

use std::path::PathBuf;

use super::call::ToolError;
use crate::approval::ApproverError;
use crate::config::ConfigError;
use crate::policy::path::display;

/// The reason why a session cannot be opened.
///
/// [`SessionBuilder::open`](crate::SessionBuilder::open) returns it. Nothing runs then. It prints for a person.
///
/// ```no_run
/// use stockade::{Session, SessionError, TerminalApprover};
///
/// match Session::builder().config_file("agent.yaml").approver(TerminalApprover::new()).open() {
///     Ok(_session) => {}
///     Err(SessionError::Config(error)) => eprintln!("the config is wrong: {error}"),
///     Err(error) => eprintln!("{error}"),
/// }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The config gives no policy.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// This machine cannot confine what the config permits.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The program did not call [`init`](crate::init).
    #[error(
        "commands cannot be confined: the confined child is this program, started again, and `main` does not say so. Make \
         `stockade::init();` the first line of `main`"
    )]
    NotInitialized,
    /// The program called [`init`](crate::init) when it had this many threads.
    #[error(
        "commands cannot be confined: `stockade::init();` came when this program had {0} threads, and the confined child, which \
         is this program started again, must have one. Make it the first line of `main`, before a runtime or a thread (in place \
         of `#[tokio::main]`, build the runtime in `main`)"
    )]
    InitializedLate(usize),
    /// The approver cannot be trusted in this session.
    #[error(transparent)]
    Approver(#[from] ApproverError),
    /// There is no working directory.
    #[error("the directory of the session, {}, cannot be used: {why}", display(.directory))]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The reason.
        why: String,
    },
    /// The user has no home directory in the passwd database (getpwuid(3)), so there is no place for the journal.
    #[error("this user has no home directory in the passwd database, so there is no place for the journal")]
    NoHome,
}
