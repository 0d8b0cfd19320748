//! Why a document is none.

/// The version of the format.
pub const VERSION: u32 = 1;

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is not JSON of that form.
    #[error("not an exported profile: {0}")]
    Form(#[from] serde_json::Error),
    /// It is of another version.
    #[error("version {0} of the format is not known; this is version {VERSION}")]
    Version(u32),
    /// Something in it cannot be.
    #[error("not an exported profile: {0}")]
    Value(String),
}
