//! What a tool prepared for a call, and whether that was approved.

use std::any::Any;
use std::fmt;

/// The work that a tool prepared when it assessed a call, so that exactly that is done after a yes.
///
/// It holds one value of any type. The example of [`Tool`](crate::Tool) puts one in and takes it out.
pub struct Prepared {
    work: Option<Box<dyn Any + Send>>,
    answer: Answered,
}

/// Whether a prepared call was asked about and approved.
///
/// [`Prepared::answer`] returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The call was not asked about.
    NotAsked,
    /// The approver, session memory or the mode `approve_all` said yes.
    Yes,
}

impl Prepared {
    /// No prepared work: [`Tool::call`](crate::Tool::call) does what the arguments say.
    pub const fn nothing() -> Self {
        Self {
            work: None,
            answer: Answered::NotAsked,
        }
    }

    /// This value as prepared work.
    pub fn of<T: Send + 'static>(work: T) -> Self {
        Self {
            work: Some(Box::new(work)),
            answer: Answered::NotAsked,
        }
    }

    #[must_use]
    pub(super) fn approved(self) -> Self {
        Self {
            answer: Answered::Yes,
            ..self
        }
    }

    /// Whether it was asked about and approved.
    pub const fn answer(&self) -> Answered {
        self.answer
    }

    /// Whether there is no prepared work.
    pub const fn is_nothing(&self) -> bool {
        self.work.is_none()
    }

    /// The prepared work, if it is a value of this type.
    pub fn take<T: 'static>(self) -> Option<T> {
        self.work?.downcast().ok().map(|work| *work)
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("answer", &self.answer)
            .finish_non_exhaustive()
    }
}
