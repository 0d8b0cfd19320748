//! A word of a command, once its quotes are gone.

/// A word of a simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// The word is this text.
    Literal(String),
    /// The word depends on something that is known only when it runs; the raw text.
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

    /// The text for a person.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Literal(text) | Self::Dynamic(text) => text,
        }
    }
}
