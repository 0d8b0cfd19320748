//! What is wrong with a config, and where.

use std::fmt;
use std::io;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::Serialize;

use super::source::Span;
use crate::policy::path::{display, escape};

/// The reason why a config gives no policy.
///
/// [`SessionBuilder::open`](crate::SessionBuilder::open) returns it, as [`SessionError::Config`](crate::SessionError::Config). It prints as a person is to read it: with the file, the line and advice for what is
/// wrong in a config. [`line`](Self::line) is the short form. The example of [`Diagnostic`] reads one.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The config, or a file it depends on, could not be read.
    #[error("failed to read {}: {source}", display(.path))]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The config is not a file.
    #[error("{} is not a regular file", display(.0))]
    NotAFile(PathBuf),
    /// A config found in the working directory is a symlink, which its files could re-point.
    #[error(
        "{} is a symbolic link, and a config found in the working directory must be a file: replace it by the file, or name the file yourself with --config",
        display(.0)
    )]
    Link(PathBuf),
    /// The config is larger than 1 MiB.
    #[error("{} is larger than 1 MiB: not read", display(.0))]
    TooLarge(PathBuf),
    /// The text of the config is wrong; the diagnostic says where.
    #[error("{0}")]
    Invalid(Box<Diagnostic>),
    /// A ceiling cannot be read, or cannot be trusted. A ceiling is a second config that only takes away.
    #[error(
        "the ceiling {} cannot be held to: {why}\n\nA ceiling says what may be reached at most, so nothing is started without it.",
        display(.path)
    )]
    Ceiling {
        /// The path of the ceiling.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A config that came with the working directory is not trusted.
    #[error(
        "{} is not trusted: {why}\n\nIt lies in the working directory, so it may have come with the files there. Read it, then run\n\n    stockade trust\n\nor name it yourself with --config.",
        display(.path)
    )]
    Untrusted {
        /// The path of the config.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The trust store is not usable.
    #[error("failed to use the trust store {}: {why}", display(.path))]
    TrustStore {
        /// The path of the store.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl ConfigError {
    /// The error in one line, without its place.
    pub fn line(&self) -> String {
        match self {
            Self::Invalid(diagnostic) => diagnostic.message.clone(),
            Self::Read { .. }
            | Self::NotAFile(_)
            | Self::Link(_)
            | Self::TooLarge(_)
            | Self::Ceiling { .. }
            | Self::Untrusted { .. }
            | Self::TrustStore { .. } => self.to_string().lines().next().unwrap_or_default().to_owned(),
        }
    }
}

impl From<Box<Diagnostic>> for ConfigError {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Self::Invalid(diagnostic)
    }
}

/// The severity of a [`Diagnostic`].
///
/// The example of [`Diagnostic`] reads one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The config gives no policy.
    Error,
    /// The config gives a policy, but a line may not mean what its writer thinks.
    Warning,
}

/// A labelled span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// The span.
    #[serde(flatten)]
    pub span: Span,
    /// The label; safe to print.
    pub label: String,
}

impl Mark {
    fn new(span: Span, label: &str) -> Self {
        let label = printable(label);
        Self { span, label }
    }
}

/// One finding in a config: what is wrong, where, and what to do about it.
///
/// [`ConfigError::Invalid`] holds one, [`Session::warnings`](crate::Session::warnings) returns several. It prints with the lines
/// of the config that it is about; for a setting that was made in code, with the call. All of its text is safe to print: control
/// and bidi characters are escaped.
///
/// ```no_run
/// use stockade::{ConfigError, Session, SessionError, Severity};
///
/// match Session::builder().config_file("agent.yaml").open() {
///     Ok(session) => {
///         for warning in session.warnings() {
///             assert_eq!(warning.severity, Severity::Warning);
///             eprintln!("{warning}");
///         }
///     }
///     Err(SessionError::Config(ConfigError::Invalid(error))) => eprintln!("{}: {:?}", error.message, error.hints),
///     Err(error) => eprintln!("{error}"),
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Whether it is an error or a warning.
    pub severity: Severity,
    /// The finding in one line.
    pub message: String,
    /// The place in the config with a label; `None` where no line causes it.
    #[serde(rename = "place")]
    pub mark: Option<Mark>,
    /// Other places that it depends on.
    pub related: Vec<Mark>,
    /// What to do about it, one sentence each.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// An error without a place.
    pub fn error(message: impl AsRef<str>) -> Box<Self> {
        Box::new(Self {
            severity: Severity::Error,
            message: printable(message.as_ref()),
            mark: None,
            related: Vec::new(),
            hints: Vec::new(),
        })
    }

    /// A warning without a place.
    pub fn warning(message: impl AsRef<str>) -> Box<Self> {
        let mut diagnostic = Self::error(message);
        diagnostic.severity = Severity::Warning;
        diagnostic
    }

    /// The same finding at this place. `label` stands under the place where the finding is printed.
    #[must_use]
    pub fn at(mut self: Box<Self>, place: Span, label: impl AsRef<str>) -> Box<Self> {
        self.mark = Some(Mark::new(place, label.as_ref()));
        self
    }

    /// The same finding with one more related place.
    #[must_use]
    pub fn and(mut self: Box<Self>, place: Span, label: impl AsRef<str>) -> Box<Self> {
        self.related.push(Mark::new(place, label.as_ref()));
        self
    }

    /// The same finding with one more hint.
    #[must_use]
    pub fn hint(mut self: Box<Self>, hint: impl AsRef<str>) -> Box<Self> {
        self.hints.push(printable(hint.as_ref()));
        self
    }

    /// The same finding with a hint: the entry of `known` that `found` is a misspelling of, else all entries.
    #[must_use]
    pub fn did_you_mean<'a>(self: Box<Self>, found: &str, known: impl IntoIterator<Item = &'a str>) -> Box<Self> {
        let known: Vec<&str> = known.into_iter().collect();
        match nearest(found, &known) {
            Some(near) => self.hint(format!("did you mean `{near}`?")),
            None if known.is_empty() => self,
            None => self.hint(format!("known here: {}", known.join(", "))),
        }
    }
}

/// The text, escaped for printing and bounded in length.
fn printable(text: &str) -> String {
    const LONGEST: usize = 1000;
    let shown = escape(text.as_bytes());
    match shown.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}

/// The entry of `known` that `found` is most likely a misspelling of.
pub(super) fn nearest<'a>(found: &str, known: &[&'a str]) -> Option<&'a str> {
    // The distance costs the product of the lengths.
    if found.len() > 64 {
        return None;
    }
    known
        .iter()
        .map(|k| (strsim::damerau_levenshtein(found, k), *k))
        .filter(|(distance, k)| *distance <= (k.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        // One snippet per source; related lines of the same source are folded into it.
        let mut group = level
            .primary_title(self.message.as_str())
            .elements(Vec::<Snippet<'_, annotate_snippets::Annotation<'_>>>::new());
        let mut drawn: Vec<&Span> = Vec::new();
        let marks = self.mark.iter().map(|m| (AnnotationKind::Primary, m));
        let marks: Vec<_> = marks
            .chain(self.related.iter().map(|m| (AnnotationKind::Context, m)))
            .collect();
        for span in marks.iter().map(|(_, mark)| &mark.span) {
            if drawn.iter().any(|d| d.source == span.source) {
                continue;
            }
            drawn.push(span);
            let mut snippet = Snippet::source(span.source.shown()).path(span.source.name.to_string());
            for (kind, mark) in marks.iter().filter(|(_, mark)| mark.span.source == span.source) {
                snippet = snippet.annotation(kind.span(mark.span.range()).label(mark.label.as_str()));
            }
            group = group.element(snippet);
        }
        for hint in &self.hints {
            group = group.element(Level::HELP.message(hint.as_str()));
        }
        f.write_str(&Renderer::plain().render(&[group]))
    }
}
