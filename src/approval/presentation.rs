//! What a person is shown of a request.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::json_bytes;
use super::removal::RemovalView;

/// The content of a question, as a person is shown it.
///
/// A tool builds one in the [`Lazy`] of its request. An [`Approver`](crate::Approver) receives it. Its text may hold any
/// character: whoever prints it must escape control and bidi characters. [`TerminalApprover`](crate::TerminalApprover) does.
///
/// ```
/// use stockade::{Content, FileView, Presentation};
///
/// let content = Content::Text("fine\n".to_owned());
/// let file = Presentation::FileContent(FileView { path: "/srv/note".into(), content, size: 5 });
/// let arguments = Presentation::Structured(vec![("host".to_owned(), "db1".to_owned())]);
/// let both = Presentation::Several(vec![("the file".to_owned(), file), ("the call".to_owned(), arguments)]);
/// # assert!(matches!(both, Presentation::Several(parts) if parts.len() == 2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Presentation {
    /// Plain text.
    Text(String),
    /// A command, and what it may reach.
    Command(CommandView),
    /// A change as a unified diff. Of a long one only the beginning is shown at first.
    Diff(String),
    /// The content of a file that is not there yet.
    FileContent(FileView),
    /// What is removed.
    Removal(RemovalView),
    /// Pairs of name and value: the arguments of a tool that Stockade knows nothing of.
    Structured(Vec<(String, String)>),
    /// The parts of one question as pairs of title and part. One answer holds for all of them.
    Several(Vec<(String, Presentation)>),
}

/// A file as a call would create it.
///
/// Part of a [`Presentation`]; the example there makes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileView {
    /// The absolute path.
    #[serde(with = "json_bytes::path")]
    pub path: PathBuf,
    /// The content.
    pub content: Content,
    /// The size in bytes.
    pub size: u64,
}

/// The content of a file, as text or as a description.
///
/// Part of a [`FileView`]; the example of [`Presentation`] makes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// The text itself.
    Text(String),
    /// The description of content that is not text: its type, for example.
    Binary(String),
}

/// A command as it would run, and what it may reach.
///
/// Part of a [`Presentation`]. Stockade makes it for commands; an [`Approver`](crate::Approver) reads it.
///
/// ```
/// use stockade::{CommandView, Presentation};
///
/// /// Whether a command may write nowhere, whoever asks.
/// fn only_looks(shown: &Presentation) -> bool {
///     matches!(shown, Presentation::Command(CommandView { may_write, .. }) if may_write.is_empty())
/// }
/// # assert!(!only_looks(&Presentation::Text(String::new())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandView {
    /// The shell line, or the words quoted for a shell. Not necessarily UTF-8.
    #[serde(with = "json_bytes::bytes")]
    pub command: Vec<u8>,
    /// The working directory.
    #[serde(with = "json_bytes::path")]
    pub directory: PathBuf,
    /// The files of its programs, as far as they are known and no command of the session can write them.
    #[serde(with = "json_bytes::paths", default)]
    pub programs: Vec<PathBuf>,
    /// The files of its programs that commands of the session can write.
    #[serde(with = "json_bytes::paths", default)]
    pub writable_programs: Vec<PathBuf>,
    /// What rules say of their own parts of it: the words of the part, and the rule's `description`. No words: of all of it.
    #[serde(default)]
    pub notes: Vec<(String, String)>,
    /// The regime that would confine it, in a line: `namespaces`, `landlock` or `none`, and how.
    pub regime: String,
    /// Why that is less than usual; `None` if it is not.
    #[serde(default)]
    pub weaker: Option<String>,
    /// The directories that it may read because of this approval, and could not read without it.
    #[serde(with = "json_bytes::paths")]
    pub may_read: Vec<PathBuf>,
    /// The directories that it may write.
    #[serde(with = "json_bytes::paths")]
    pub may_write: Vec<PathBuf>,
    /// The reach on the network, in words.
    pub may_reach: String,
}

type Build = dyn Fn() -> Result<Presentation, String> + Send + Sync;

/// A [`Presentation`] that is built when somebody is asked.
///
/// Use it for what is costly to build: a diff, the content of a file. The example of [`ApprovalRequest`](crate::ApprovalRequest) makes one.
#[derive(Clone)]
pub struct Lazy(Arc<Build>);

impl Lazy {
    /// A presentation that `build` makes. An error of `build` denies the request; the agent is told the text.
    pub fn new(build: impl Fn() -> Result<Presentation, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(build))
    }

    /// Builds it.
    ///
    /// # Errors
    /// It cannot be shown, for this reason.
    pub fn build(&self) -> Result<Presentation, String> {
        (self.0)()
    }
}

impl fmt::Debug for Lazy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lazy")
    }
}
