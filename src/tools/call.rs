//! A call of the shell tool: what is asked for, and why it may give no outcome.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::network::NetworkUse;
use super::plan::PlanError;
use super::restored::{Changed, MEANWHILE, Restored};
use crate::audit::AuditError;
use crate::confine::io::{IoError, OutputMode, Stdin};
use crate::confine::{ConfineError, StartFailure};
use crate::policy::path::{display, escape, is_escaped};

/// The name under which `tools:` speaks of the shell tool.
pub const NAME: &str = "shell";

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellCommand {
    /// A shell line, run by `bash -c`, or `sh -c` where there is no bash.
    Line(OsString),
    /// A program and its arguments, run without a shell.
    Argv(Vec<OsString>),
}

/// One call of the shell tool.
#[derive(Debug)]
pub struct ShellCall {
    /// What to run.
    pub command: ShellCommand,
    /// Where it starts; an absolute path.
    pub directory: PathBuf,
    /// Variables set beside the config's.
    pub environment: Vec<(OsString, OsString)>,
    /// A time limit tighter than the config's.
    pub timeout: Option<Duration>,
    /// Its standard input.
    pub stdin: Stdin,
    /// Where its output goes.
    pub output: OutputMode,
    /// How much of each stream is kept, head and tail, where the config does not say; without a word of the caller's either, one
    /// mebibyte of what is captured, and all of what is streamed.
    pub kept: Option<u64>,
    /// Signals that stop it: the first is passed on and the tree killed after a grace period, the
    /// second kills at once.
    pub stops: mpsc::Receiver<Signal>,
}

/// The reason why a call gave no output.
///
/// Nothing ran, or what ran was killed; only [`AuditAfter`](Self::AuditAfter) comes after the deed. A command that failed is
/// no error: its [`Output`](crate::Output) ends with [`OutputEnd::Failed`](crate::OutputEnd::Failed). Each variant prints as a message for
/// the agent: what failed, why, and what would allow it. The session goes on after every one of them.
///
/// ```no_run
/// use serde_json::json;
/// use stockade::{Session, ToolError};
///
/// # async fn run(session: &Session) {
/// match session.tools().call("read_file", json!({"path": "notes.md"})).await {
///     Ok(output) => println!("{}", output.text),
///     Err(ToolError::Blocked(_) | ToolError::Denied(_)) => println!("not permitted"),
///     Err(error) => println!("{error}"),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// This machine cannot confine, and the config does not permit commands without confinement.
    #[error("{0}")]
    Refused(String),
    /// A line of the config, the tool or a hook forbids it, for this reason.
    #[error("blocked: {0}")]
    Blocked(String),
    /// The approver or the mode said no, or nobody could be asked.
    #[error("{0}")]
    Denied(String),
    /// The question was handed to the caller, who answers it with a second call.
    #[error("permission denied: the question is not answered yet")]
    Pending,
    /// What was approved has changed since. A guarded tool asks again before it gives up.
    #[error("{0} changed after it was looked at; nothing was done")]
    Changed(String),
    /// The arguments are not what the tool takes.
    #[error("the arguments of {tool} cannot be read: {why}")]
    Arguments {
        /// The name of the tool.
        tool: String,
        /// The reason.
        why: String,
    },
    /// No tool of this name is offered. A tool that the config can never allow is not offered.
    #[error("{0}")]
    NoSuchTool(String),
    /// A file operation failed; nothing was changed.
    #[error("{0}")]
    File(String),
    /// The function of a [`FunctionTool`](crate::FunctionTool) returned this error.
    #[error("{0}")]
    Function(String),
    /// The session was stopped with this signal before the call ran (signal(7)).
    #[error("stopped by {0} before it ran")]
    Stopped(Signal),
    /// The working directory lies in no root that may be read.
    #[error("the working directory {} is not readable in this sandbox", display(.0))]
    Directory(PathBuf),
    /// The profile cannot be held here, or a check of the plan failed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The child could not be confined, or was lost.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// The standard streams failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A command whose network is a list of hosts failed while it ran.
    #[error("{failure}")]
    UnderWay {
        /// The failure.
        #[source]
        failure: Box<ToolError>,
        /// The hosts that the command had tried to reach.
        network: NetworkUse,
    },
    /// The call failed, and protected names had been changed meanwhile.
    #[error("{failure}{}", aftermath(.changed, .unsettled.as_deref()))]
    PutBack {
        /// The failure.
        #[source]
        failure: Box<ToolError>,
        /// The protected names that were changed.
        changed: Changed,
        /// Why some could not be restored, if so; safe to print.
        unsettled: Option<String>,
    },
    /// The call could not be logged beforehand, so it was not done.
    #[error("{0}; nothing was done")]
    Audit(#[from] AuditError),
    /// The call was done, and its result could not be logged.
    #[error("it was done, and what came of it could not be put on record: {0}")]
    AuditAfter(#[source] AuditError),
    /// The private directories could not be prepared.
    #[error("failed to prepare the private directories: {0}")]
    Private(#[source] std::io::Error),
}

impl ToolError {
    /// The hosts that a command had tried to reach before it failed; `None` where its network is no list of hosts.
    pub const fn network(&self) -> Option<&NetworkUse> {
        match self {
            Self::UnderWay { network, .. } => Some(network),
            _ => None,
        }
    }

    /// The same with what was put back of protected names, if anything was.
    pub(super) fn with_put_back(self, restored: &[Restored], unsettled: Option<String>) -> Self {
        if restored.is_empty() && unsettled.is_none() {
            return self;
        }
        Self::PutBack {
            failure: Box::new(self),
            changed: Changed::of(restored),
            unsettled,
        }
    }

    /// Why nothing could be started where a supervisor had refused, which took the session with it: what was not found then says less.
    pub(super) fn because(self, refused: Option<StartFailure>) -> Self {
        match (self, refused) {
            (
                Self::Confine(_) | Self::Private(_) | Self::Plan(PlanError::Survey(_) | PlanError::Surroundings(_)),
                Some(failure),
            ) => ConfineError::Step(failure).into(),
            (error, _) => error,
        }
    }

    /// The same error when it came after the call was carried out.
    pub(super) fn after_the_call(self) -> Self {
        match self {
            Self::Audit(error) => Self::AuditAfter(error),
            other => other,
        }
    }
}

/// One line for each restored or unrestored name.
fn aftermath(changed: &Changed, unsettled: Option<&str>) -> String {
    let restored = changed.messages(MEANWHILE);
    let unsettled = unsettled.map(|why| format!("protected names could not be restored: {why}"));
    let lines: Vec<String> = [String::new()].into_iter().chain(restored).chain(unsettled).collect();
    lines.join("\n")
}

/// The program and arguments that run the command.
///
/// Rules read a line as bash reads it, so bash runs it where there is one.
pub(crate) fn argv(command: ShellCommand) -> Vec<OsString> {
    match command {
        ShellCommand::Argv(argv) => argv,
        ShellCommand::Line(line) => {
            // The dashes end the options: a line may begin with one itself.
            vec![shell().into(), "-c".into(), "--".into(), line]
        }
    }
}

/// The program that runs shell lines.
pub(crate) fn shell() -> &'static str {
    if Path::new("/bin/bash").exists() {
        "/bin/bash"
    } else {
        "/bin/sh"
    }
}

/// The words of a command as a person would type them; whoever shows them escapes what does not print.
pub fn words(command: &ShellCommand) -> Vec<u8> {
    match command {
        ShellCommand::Line(line) => line.as_bytes().to_vec(),
        ShellCommand::Argv(argv) => argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(&b' '),
    }
}

/// One word to be pasted into a shell. What does not show stands in `$'…'`, as octal numbers.
pub fn pasted(word: &OsStr) -> String {
    let bytes = word.as_bytes();
    if !is_escaped(bytes) {
        return escape(&quoted(word));
    }
    let octal = |bytes: &[u8]| -> Vec<String> { bytes.iter().map(|byte| format!("\\{byte:03o}")).collect() };
    let mut text = String::from("$'");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut room = [0; 4];
            match (c, c.encode_utf8(&mut room).as_bytes()) {
                ('\'' | '\\', _) => text.extend(['\\', c]),
                (_, bytes) if is_escaped(bytes) => text.extend(octal(bytes)),
                (_, _) => text.push(c),
            }
        }
        text.extend(octal(chunk.invalid()));
    }
    text.push('\'');
    text
}

/// The word, quoted for a shell where it must be.
pub(super) fn quoted(word: &OsStr) -> Vec<u8> {
    let bytes = word.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./=:@%+,".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return bytes.to_vec();
    }
    let inner: Vec<&[u8]> = bytes.split(|byte| *byte == b'\'').collect();
    [b"'", inner.join(&b"'\\''"[..]).as_slice(), b"'"].concat()
}
