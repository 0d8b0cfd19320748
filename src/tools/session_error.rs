//! Why there is no session.

use super::call::ToolError;
use crate::config::ConfigError;

/// The reason why a session cannot be opened.
///
/// The methods of [`Session`](crate::Session) that open one return it. Nothing runs then. It prints for a person.
///
/// ```no_run
/// use std::path::Path;
///
/// use stockade::{Session, SessionError, TerminalApprover, terminal_size};
///
/// # async fn run() {
/// let approver = Box::new(TerminalApprover::new(terminal_size));
/// match Session::with_config(Path::new("agent.yaml"), Path::new("/srv/project"), approver) {
///     Ok(_session) => {}
///     Err(SessionError::Config(error)) => eprintln!("the config is wrong: {error}"),
///     Err(error) => eprintln!("{error}"),
/// }
/// # }
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
    /// The user has no home directory in the passwd database (getpwuid(3)), so there is no place for the journal.
    #[error("this user has no home directory in the passwd database, so there is no place for the journal")]
    NoHome,
}
