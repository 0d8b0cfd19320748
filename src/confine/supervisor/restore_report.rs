//! Reports of restored names, as messages of the protocol.

use std::path::PathBuf;

use crate::confine::protect;
use crate::confine::wire::protocol::{Appeared, Offer, PutBack, Violation};

/// The errors in one line; of very many only the first few.
pub(crate) fn summary(errors: &[protect::ProtectError]) -> Option<String> {
    const SHOWN: usize = 5;
    let shown: Vec<String> = errors.iter().take(SHOWN).map(ToString::to_string).collect();
    match errors.len() {
        0 => None,
        count if count > SHOWN => Some(format!("{}; and {} more", shown.join("; "), count - SHOWN)),
        _ => Some(shown.join("; ")),
    }
}

pub(crate) fn reported(violation: protect::Violation) -> Violation {
    Violation {
        path: violation.path.into_os_string(),
        what: violation.kind.label().to_owned(),
        quarantined: violation.quarantined.map(PathBuf::into_os_string),
        settings: violation.settings.names,
        more_settings: violation.settings.more as u64,
        is_other_in_head: violation.is_other_in_head,
        failed: violation.failed,
    }
}

pub(crate) fn appeared(appeared: protect::Appeared) -> Appeared {
    Appeared {
        paths: appeared.paths.into_iter().map(PathBuf::into_os_string).collect(),
        more: u64::try_from(appeared.more).unwrap_or(u64::MAX),
        is_cut: appeared.is_cut,
    }
}

/// Cuts a report to the size of a message.
pub(crate) fn bounded(mut put_back: PutBack) -> PutBack {
    let size = |violation: &Violation| {
        let why = violation.failed.as_ref().map_or(0, String::len);
        let kept = violation.quarantined.as_ref().map_or(0, |path| path.len());
        let settings: usize = violation.settings.iter().map(Vec::len).sum();
        violation.path.len() + violation.what.len() + kept + settings + why
    };
    let all = put_back.violations.len();
    let mut left_bytes = MAX_BYTES;
    let fits = put_back.violations.iter().take_while(|violation| {
        let left = left_bytes.checked_sub(size(violation));
        left_bytes = left.unwrap_or_default();
        left.is_some()
    });
    let count = fits.count();
    put_back.violations.truncate(count);
    let beyond = (count < all).then(|| {
        format!("{count} of {all} changes are told, for more cannot be: all were undone, and what was taken away is in quarantine")
    });
    put_back.unsettled = [put_back.unsettled, beyond]
        .into_iter()
        .flatten()
        .reduce(|why, also| format!("{why}; {also}"));
    put_back
}

/// Bytes of paths that a message may carry, of the 16 MiB that it may have.
const MAX_BYTES: usize = 4 << 20;

pub(crate) fn offered(diff: protect::Diff) -> Offer {
    let entries = diff.entries.into_iter();
    Offer {
        digest: diff.digest,
        entries: entries
            .map(|(path, what)| (path.into_os_string(), what.label().to_owned()))
            .collect(),
        text: diff.text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_beyond_the_size_of_a_message_are_counted() {
        let violation = |length: usize| Violation {
            path: "x".repeat(length).into(),
            what: "created".to_owned(),
            quarantined: None,
            settings: Vec::new(),
            more_settings: 0,
            is_other_in_head: false,
            failed: None,
        };
        let few = vec![violation(4096); 3];
        let put_back = |violations, unsettled| PutBack {
            violations,
            unsettled,
            ..PutBack::default()
        };
        assert_eq!(bounded(put_back(few.clone(), None)), put_back(few, None));
        let many = put_back(vec![violation(32 << 10); 600], Some("a step failed".to_owned()));
        let count = bounded(many);
        let bytes: usize = count.violations.iter().map(|violation| violation.path.len()).sum();
        assert!(!count.violations.is_empty() && count.violations.len() < 600 && bytes <= MAX_BYTES);
        let why = count.unsettled.unwrap();
        assert!(
            why.starts_with("a step failed; ") && why.contains("of 600 changes are told"),
            "{why}"
        );
    }
}
