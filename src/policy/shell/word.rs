//! A word of a command without its quotes.

/// A word of a simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// A known text.
    Literal(String),
    /// A word that depends on something known only when it runs, as written.
    Dynamic(String),
}

impl Word {
    /// The text, if it is known.
    pub(super) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Dynamic(_) => None,
        }
    }

    /// The text to show to a person.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Literal(text) | Self::Dynamic(text) => text,
        }
    }
}
