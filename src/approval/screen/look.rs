//! What a terminal can show.

use std::ffi::OsString;

/// The narrowest terminal that is laid out for; on a narrower one lines are broken by the terminal.
const NARROWEST: u16 = 24;
/// The size assumed where the terminal does not tell.
const UNKNOWN: (u16, u16) = (40, 24);

/// What the terminal can show, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::approval) struct Look {
    pub(in crate::approval) columns: usize,
    pub(in crate::approval) rows: usize,
    pub(in crate::approval) colour: Colour,
    pub(in crate::approval) letters: Letters,
}

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::approval) enum Colour {
    Off,
    On,
}

/// Which letters the terminal is known to understand.
///
/// To a terminal that takes each byte for a letter, some bytes of other letters are control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::approval) enum Letters {
    Ascii,
    Unicode,
}

impl Look {
    pub(in crate::approval) fn new(size: Option<(u16, u16)>, colour: Colour, letters: Letters) -> Self {
        let (columns, rows) = size.unwrap_or(UNKNOWN);
        Self {
            columns: usize::from(columns.max(NARROWEST)),
            rows: usize::from(rows.max(4)),
            colour,
            letters,
        }
    }
}

impl Letters {
    /// What the locale says: the first of these variables that is set, as everywhere.
    pub(in crate::approval) fn of_locale(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(variable)
            .find(|value| !value.is_empty());
        let said = set
            .as_deref()
            .and_then(|value| value.to_str())
            .map(str::to_ascii_lowercase);
        match said {
            Some(said) if said.contains("utf-8") || said.contains("utf8") => Self::Unicode,
            Some(_) | None => Self::Ascii,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_names_the_letters() {
        let letters = |set: &[(&str, &str)]| {
            Letters::of_locale(|name| {
                let found = set.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        assert_eq!(letters(&[("LANG", "en_GB.UTF-8")]), Letters::Unicode);
        assert_eq!(letters(&[("LANG", "C.utf8"), ("LC_ALL", "")]), Letters::Unicode);
        assert_eq!(letters(&[("LANG", "en_GB.UTF-8"), ("LC_ALL", "C")]), Letters::Ascii);
        assert_eq!(letters(&[("LC_CTYPE", "de_DE.ISO-8859-1")]), Letters::Ascii);
        assert_eq!(letters(&[]), Letters::Ascii);
    }
}
