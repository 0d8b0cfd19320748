//! Patterns of protected names, as a config writes them.

use std::fmt;

/// A name or relative path at any depth below a writable root. Its last part may have one `*`, and
/// `/**` at its end means a directory with everything in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamePattern(String);

/// Why a text is not a pattern of protected names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NamePatternError {
    /// It begins with a slash, is empty, or has a part that is empty, `.` or `..`.
    #[error("it is not a name or a relative path without `.` and `..`")]
    NotRelative,
    /// A part has more than one star, a part before the last has one, or nothing else is left.
    #[error("`*` may stand once, in the last part and beside something else, and `/**` at the end")]
    Star,
    /// It has a control character.
    #[error("it has a control character")]
    Control,
    /// It is too long.
    #[error("it is longer than 1,000 bytes")]
    Long,
}

impl NamePattern {
    /// Longest pattern, in bytes.
    const LONGEST: usize = 1_000;

    /// Reads a pattern.
    ///
    /// # Errors
    /// The text is none.
    pub fn new(text: &str) -> Result<Self, NamePatternError> {
        if text.len() > Self::LONGEST {
            return Err(NamePatternError::Long);
        }
        if text.chars().any(char::is_control) {
            return Err(NamePatternError::Control);
        }
        let path = text.strip_suffix("/**").unwrap_or(text);
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(NamePatternError::NotRelative);
        }
        let (above, last) = path.rsplit_once('/').unwrap_or(("", path));
        let stars = last.matches('*').count();
        let is_directory = path.len() != text.len();
        if above.contains('*') || stars > 1 || last == "*" || (is_directory && stars > 0) {
            return Err(NamePatternError::Star);
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

/// Changes to the list of protected names: `add` and `except` of `sandbox.protect`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameChanges {
    /// Names to add.
    pub add: std::collections::BTreeSet<NamePattern>,
    /// Names to remove.
    pub except: std::collections::BTreeSet<NamePattern>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_relative_path_with_one_star_at_most() {
        for good in [
            ".envrc",
            "deploy/run.sh",
            "*.ps1",
            "mise.*.toml",
            ".mine/**",
            "a/b/*.sh",
            "Ünïcode",
        ] {
            assert!(NamePattern::new(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("", NamePatternError::NotRelative),
            ("/etc/passwd", NamePatternError::NotRelative),
            ("a//b", NamePatternError::NotRelative),
            ("../x", NamePatternError::NotRelative),
            ("./x", NamePatternError::NotRelative),
            ("x/", NamePatternError::NotRelative),
            ("/**", NamePatternError::NotRelative),
            ("*", NamePatternError::Star),
            ("**", NamePatternError::Star),
            ("**/x", NamePatternError::Star),
            ("a*b*c", NamePatternError::Star),
            ("a*/b", NamePatternError::Star),
            ("a*/**", NamePatternError::Star),
            ("x\ny", NamePatternError::Control),
        ] {
            assert_eq!(NamePattern::new(bad), Err(why), "{bad:?}");
        }
    }
}
