//! What somebody else chose, as people are shown it.

use crate::policy::path::escape;

/// The most bytes of a path, or of another text, that are shown: as many as the audit log keeps.
pub(super) const MOST_SHOWN: usize = crate::audit::MOST_BYTES;

/// What somebody else chose, for people: escaped, and of a long one the beginning.
pub(super) fn escape_truncated(bytes: &[u8]) -> String {
    if bytes.len() <= MOST_SHOWN {
        return escape(bytes);
    }
    let beginning = bytes.get(..MOST_SHOWN).unwrap_or_default();
    // No letter is cut in two.
    let whole = beginning
        .utf8_chunks()
        .map(|chunk| chunk.valid().len() + chunk.invalid().len());
    let cut: usize = match beginning.utf8_chunks().last() {
        Some(last) if !last.invalid().is_empty() => whole.sum::<usize>() - last.invalid().len(),
        Some(_) | None => MOST_SHOWN,
    };
    format!(
        "{}… ({} bytes)",
        escape(beginning.get(..cut).unwrap_or_default()),
        bytes.len()
    )
}
