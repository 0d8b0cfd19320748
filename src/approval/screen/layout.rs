//! The size and abilities of a terminal.

use std::ffi::OsString;

/// The least columns assumed. A narrower terminal breaks lines itself.
const MIN_COLUMNS: u16 = 24;
/// The size where the terminal does not report one.
const DEFAULT_SIZE: (u16, u16) = (40, 24);

/// The size and abilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::approval) struct Layout {
    pub(in crate::approval) columns: usize,
    pub(in crate::approval) rows: usize,
    pub(in crate::approval) colour: Colour,
    pub(in crate::approval) charset: Charset,
}

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::approval) enum Colour {
    Off,
    On,
}

/// The characters that the terminal is known to understand.
///
/// A terminal for a single-byte encoding takes some bytes of UTF-8 for control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::approval) enum Charset {
    Ascii,
    Unicode,
}

impl Layout {
    pub(in crate::approval) fn new(size: Option<(u16, u16)>, colour: Colour, charset: Charset) -> Self {
        let (columns, rows) = size.unwrap_or(DEFAULT_SIZE);
        Self {
            columns: usize::from(columns.max(MIN_COLUMNS)),
            rows: usize::from(rows.max(4)),
            colour,
            charset,
        }
    }
}

impl Charset {
    /// The character set of the locale.
    pub(in crate::approval) fn of_locale(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(variable)
            .find(|value| !value.is_empty());
        let locale = set
            .as_deref()
            .and_then(|value| value.to_str())
            .map(str::to_ascii_lowercase);
        match locale {
            Some(locale) if locale.contains("utf-8") || locale.contains("utf8") => Self::Unicode,
            Some(_) | None => Self::Ascii,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_names_the_charset() {
        let charset = |set: &[(&str, &str)]| {
            Charset::of_locale(|name| {
                let found = set.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        assert_eq!(charset(&[("LANG", "en_GB.UTF-8")]), Charset::Unicode);
        assert_eq!(charset(&[("LANG", "C.utf8"), ("LC_ALL", "")]), Charset::Unicode);
        assert_eq!(charset(&[("LANG", "en_GB.UTF-8"), ("LC_ALL", "C")]), Charset::Ascii);
        assert_eq!(charset(&[("LC_CTYPE", "de_DE.ISO-8859-1")]), Charset::Ascii);
        assert_eq!(charset(&[]), Charset::Ascii);
    }
}
