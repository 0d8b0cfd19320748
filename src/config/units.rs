//! Sizes and durations with their units.

use std::time::Duration;

/// Why a text is not a size or a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The number part is missing or not a whole number.
    #[error("`{0}` does not begin with a whole number")]
    Number(String),
    /// The unit is not one.
    #[error("`{0}` is not a unit here")]
    Unit(String),
    /// The unit is missing and there is no obvious one.
    #[error("`{0}` has no unit")]
    Missing(String),
    /// The value does not fit.
    #[error("`{0}` is too large")]
    TooLarge(String),
    /// Nothing could run within it.
    #[error("`{0}` leaves nothing")]
    Zero(String),
}

const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

const TIMES: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

pub(crate) const SIZE_HINT: &str = "write a whole number and B, KiB, MiB, GiB or TiB (or kB, MB, GB, TB), as in `2GiB`";
pub(crate) const TIME_HINT: &str = "write a whole number and ms, s, m or h, as in `120s`";

/// The bytes a text such as `1MiB` means.
pub(crate) fn size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text)?;
    scaled(text, number, unit, SIZES)
}

/// The duration a text such as `120s` means; never zero.
pub fn time(text: &str) -> Result<Duration, UnitError> {
    let (number, unit) = split(text)?;
    if unit.is_empty() {
        return Err(UnitError::Missing(text.to_owned()));
    }
    match scaled(text, number, unit, TIMES)? {
        0 => Err(UnitError::Zero(text.to_owned())),
        millis => Ok(Duration::from_millis(millis)),
    }
}

fn split(text: &str) -> Result<(u64, &str), UnitError> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() || unit.starts_with(['.', '_', ',']) {
        return Err(UnitError::Number(text.to_owned()));
    }
    let number = number.parse().map_err(|_| UnitError::TooLarge(text.to_owned()))?;
    Ok((number, unit.strip_prefix(' ').unwrap_or(unit)))
}

fn scaled(text: &str, number: u64, unit: &str, units: &[(&str, u64)]) -> Result<u64, UnitError> {
    let (_, scale) = units
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| UnitError::Unit(unit.to_owned()))?;
    number
        .checked_mul(*scale)
        .ok_or_else(|| UnitError::TooLarge(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_and_decimal_units_differ() {
        assert_eq!(size("1MiB"), Ok(1_048_576));
        assert_eq!(size("1MB"), Ok(1_000_000));
        assert_eq!(size("1 KiB"), Ok(1024));
        assert_eq!(size("17"), Ok(17));
    }

    #[test]
    fn a_duration_needs_its_unit() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("120"), Err(UnitError::Missing("120".into())));
    }

    #[test]
    fn an_unknown_unit_is_named() {
        assert_eq!(size("1Mib"), Err(UnitError::Unit("Mib".into())));
        assert_eq!(time("1d"), Err(UnitError::Unit("d".into())));
        assert_eq!(size("1s"), Err(UnitError::Unit("s".into())));
    }

    #[test]
    fn fractions_signs_and_overflow_are_refused() {
        assert_eq!(size("1.5GiB"), Err(UnitError::Number("1.5GiB".into())));
        assert_eq!(size("-1"), Err(UnitError::Number("-1".into())));
        assert_eq!(size("99999999TiB"), Err(UnitError::TooLarge("99999999TiB".into())));
        assert_eq!(time("0s"), Err(UnitError::Zero("0s".into())));
    }
}
