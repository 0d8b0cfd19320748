//! What is wrong with a config, and where.

use std::fmt;
use std::io;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::Serialize;

use super::source::Span;
use crate::policy::path::{display, escape};

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The config, or a file it depends on, could not be read.
    #[error("failed to read {}: {source}", display(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
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
    /// The config is larger than any config a person writes.
    #[error("{} is larger than 1 MiB: not read", display(.0))]
    TooLarge(PathBuf),
    /// The config is not valid.
    #[error("{0}")]
    Invalid(Box<Diagnostic>),
    /// A ceiling cannot be read, or not be trusted.
    #[error(
        "the ceiling {} cannot be held to: {why}\n\nA ceiling says what may be reached at most, so nothing is started without it.",
        display(.path)
    )]
    Ceiling {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A config that came with the working directory is not trusted.
    #[error(
        "{} is not trusted: {why}\n\nIt lies in the working directory, so it may have come with the files there. Read it, then run\n\n    stockade trust\n\nor name it yourself with --config.",
        display(.path)
    )]
    Untrusted {
        /// The config.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The trust store is not usable.
    #[error("failed to use the trust store {}: {why}", display(.path))]
    TrustStore {
        /// The store.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl ConfigError {
    /// What is wrong, in a line; where it stands is left out.
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

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// There is no policy.
    Error,
    /// There is one, but a line may not mean what its writer thinks.
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

/// One finding in a config: where it stands, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// One line; safe to print.
    pub message: String,
    /// Where it stands.
    #[serde(rename = "place")]
    pub mark: Option<Mark>,
    /// Other lines that matter.
    pub related: Vec<Mark>,
    /// Advice.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// An error without a mark.
    pub fn error(message: impl AsRef<str>) -> Box<Self> {
        Box::new(Self {
            severity: Severity::Error,
            message: printable(message.as_ref()),
            mark: None,
            related: Vec::new(),
            hints: Vec::new(),
        })
    }

    /// A warning without a mark.
    pub fn warning(message: impl AsRef<str>) -> Box<Self> {
        let mut diagnostic = Self::error(message);
        diagnostic.severity = Severity::Warning;
        diagnostic
    }

    /// With a labelled span.
    #[must_use]
    pub fn at(mut self: Box<Self>, place: Span, label: impl AsRef<str>) -> Box<Self> {
        self.mark = Some(Mark::new(place, label.as_ref()));
        self
    }

    /// With another line that matters.
    #[must_use]
    pub fn and(mut self: Box<Self>, place: Span, label: impl AsRef<str>) -> Box<Self> {
        self.related.push(Mark::new(place, label.as_ref()));
        self
    }

    /// With advice.
    #[must_use]
    pub fn hint(mut self: Box<Self>, hint: impl AsRef<str>) -> Box<Self> {
        self.hints.push(printable(hint.as_ref()));
        self
    }

    /// With the nearest of `known` as a hint, else with all of them.
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
