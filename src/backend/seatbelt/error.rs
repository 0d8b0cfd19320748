//! Why a profile has no Seatbelt text.

use super::parse::ParseError;

/// Why a profile has no Seatbelt text.
#[derive(Debug, thiserror::Error)]
pub enum SeatbeltError {
    /// Text and parameters do not fit on a command line (execve(2)).
    #[error("the Seatbelt profile would be {0} bytes long, more than a command line holds; name fewer paths")]
    TooLong(usize),
    /// A shipped rule cannot be read.
    #[error("a shipped Seatbelt rule cannot be read: {0}")]
    Base(#[from] ParseError),
}
