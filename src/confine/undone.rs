//! What the keeper undid, in the words of the protocol.

use std::path::PathBuf;

use super::protect;
use super::protocol::{Offer, Violation};

/// The errors in one line; of very many only the first few.
pub(super) fn summary(errors: &[protect::ProtectError]) -> Option<String> {
    const SHOWN: usize = 5;
    let shown: Vec<String> = errors.iter().take(SHOWN).map(ToString::to_string).collect();
    match errors.len() {
        0 => None,
        count if count > SHOWN => Some(format!("{}; and {} more", shown.join("; "), count - SHOWN)),
        _ => Some(shown.join("; ")),
    }
}

/// What was put back, as the parent is told.
pub(super) fn reported(violation: protect::Violation) -> Violation {
    Violation {
        path: violation.path.into_os_string(),
        what: violation.what.word().to_owned(),
        quarantined: violation.quarantined.map(PathBuf::into_os_string),
        setting: violation.setting,
    }
}

/// What a person may still want of it.
pub(super) fn offers(offers: Option<&protect::Offers>) -> Vec<Offer> {
    let offers = offers.map(protect::Offers::list).into_iter().flatten();
    let offers = offers.filter_map(|offer| {
        Some(Offer {
            number: u32::try_from(offer.number).ok()?,
            digest: offer.digest,
            path: offer.path.into_os_string(),
            what: offer.what.word().to_owned(),
            text: offer.text,
        })
    });
    offers.collect()
}

/// Makes one of those changes after all; why that could not be.
pub(super) fn put_back(
    offers: Option<&mut protect::Offers>,
    number: u32,
    digest: &protect::Digest,
) -> Result<(), String> {
    let offers = offers.ok_or(protect::NotPutBack::Unknown);
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    offers
        .and_then(|offers| offers.put_back(number, digest))
        .map_err(|why| why.to_string())
}
