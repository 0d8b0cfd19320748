//! What a server for agents is told: what it offers, who is asked, and how it is reached.
//!
//! The command line makes it, and the server takes it: neither sees the other.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::provider::Provider;
use super::session::Session;
use super::tool::Boxed;
use crate::approval::{Approver, ApproverError, CancelHandle};
pub use crate::confine::io::HostSocket;
use crate::policy::AbsPath;

/// All that a server needs to be told.
#[derive(Debug)]
pub struct Serving {
    /// What it offers.
    pub offered: ServedTools,
    /// Who is asked.
    pub asking: ApproverChain,
    /// How agents reach it.
    pub transport: Transport,
    /// What ends it.
    pub stops: mpsc::Receiver<Signal>,
    /// Says a line to whoever started it.
    pub say: fn(&str),
}

/// What a server offers.
pub enum ServedTools {
    /// These tools.
    Own(Arc<dyn Provider>),
    /// Those of a third party's server.
    Upstream(Box<Upstream>),
}

/// A third party's MCP server: a command that lives as long as the session, behind its guard.
#[derive(Debug)]
pub struct Upstream {
    /// What confines it, and guards its tools.
    pub session: Session,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Where the session starts commands.
    pub directory: PathBuf,
    /// Stockade's own state directory, where it is kept what the server first said of its tools.
    pub state: PathBuf,
}

/// How agents reach a server.
#[derive(Debug)]
pub enum Transport {
    /// Over standard input and output.
    Stdio,
    /// Over HTTP.
    Http(HttpOptions),
}

/// What was asked for of HTTP, word for word; the server makes sense of it.
pub struct HttpOptions {
    /// The port, or the address and the port.
    pub address: String,
    /// The file with the token; without one a token is made.
    pub token_file: Option<PathBuf>,
    /// The names, beside those of loopback, that clients may have for this machine.
    pub hosts: Vec<String>,
    /// The origins of web pages that may be clients.
    pub origins: Vec<String>,
    /// How long calls under way may take when it is to end.
    pub drain: Duration,
    /// Why commands could get at a path, if they could.
    pub reachable_reason: ReachCheck,
    /// Whether calls can be confined now.
    pub ready: ReadyCheck,
}

/// Says why commands could get at a path, if they could.
pub type ReachCheck = Box<dyn Fn(&AbsPath) -> Option<String> + Send + Sync>;

/// Says whether calls can be confined now.
pub type ReadyCheck = Box<dyn Fn() -> bool + Send + Sync>;

/// Who is asked, in which order: the first that can be is, and its no is final. Where there is none, the answer is no.
#[derive(Debug, Clone)]
pub struct ApproverChain {
    /// Who may be asked.
    pub order: Vec<ApproverSource>,
    /// How long a question stays open.
    pub patience: Duration,
}

/// Makes an approver for one question, and what withdraws it.
pub type MakeApprover = Arc<dyn Fn() -> Result<(Box<dyn Approver + Send>, CancelHandle), ApproverError> + Send + Sync>;

/// A way to ask somebody.
#[derive(Clone)]
pub enum ApproverSource {
    /// Whoever sits here, or was named: a terminal, a program, a socket.
    Here(MakeApprover),
    /// The client, where it says that it can ask.
    Elicitation,
}

/// Serves until its input ends or it is stopped.
pub type Serve = fn(Serving) -> Boxed<'static, Result<ServeEnd, ServeError>>;

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServeEnd {
    /// The client closed its end.
    Closed,
    /// It was told to end, and ended in order.
    Stopped(Signal),
    /// It was told to end, and then to do so at once.
    Cut(Signal),
}

/// Why nothing was served, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The streams to the client failed.
    #[error("failed to speak with the client: {0}")]
    Client(String),
    /// A third party's server could not be started, or does not speak as it should.
    #[error("{0}")]
    Upstream(String),
    /// Nothing can be served over HTTP as it was asked for.
    #[error("{0}")]
    Http(String),
    /// No key for sealing could be made.
    #[error("the kernel gave no random numbers: {0}")]
    Random(#[source] std::io::Error),
}

impl fmt::Debug for ServedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(_) => f.write_str("Own"),
            Self::Upstream(upstream) => upstream.fmt(f),
        }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverHttp")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ApproverSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Here(_) => "Here",
            Self::Elicitation => "Elicitation",
        })
    }
}
