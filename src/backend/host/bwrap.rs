//! bwrap, by absolute path in a system directory.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;

use serde::Serialize;

/// Where it is looked for; never along `PATH`, which the environment decides.
const PLACES: [&str; 3] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];

/// A bwrap that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bwrap {
    /// Its path.
    pub path: &'static str,
    /// Its version, where it gave one.
    pub version: Option<(u32, u32, u32)>,
    /// Whether it runs with its owner's rights; then it is refused.
    pub setuid: bool,
    /// Whether others than its owner may change it; then it is refused.
    pub writable_by_others: bool,
}

impl Bwrap {
    /// Whether it may be used at all.
    pub const fn acceptable(&self) -> bool {
        !self.setuid && !self.writable_by_others && self.version.is_some()
    }
}

/// The first bwrap of a system directory.
pub(super) fn find() -> Option<Bwrap> {
    PLACES.into_iter().find_map(|path| {
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let mode = metadata.permissions().mode();
        let setuid = mode & 0o6000 != 0;
        // Writable by its owner is writable by root, unless someone else owns it.
        let writable_by_others = mode & 0o022 != 0 || metadata.uid() != 0;
        // What must not be used is not run either.
        let version = if setuid || writable_by_others {
            None
        } else {
            ask_version(path)
        };
        Some(Bwrap {
            path,
            version,
            setuid,
            writable_by_others,
        })
    })
}

/// What `--version` says.
#[expect(
    clippy::disallowed_methods,
    reason = "a probe for doctor, never on the way to a command"
)]
fn ask_version(path: &str) -> Option<(u32, u32, u32)> {
    let mut command = std::process::Command::new(path);
    let output = command
        .arg("--version")
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    parse_version(std::str::from_utf8(&output.stdout).ok()?)
}

/// The version in `bubblewrap 0.8.0`.
fn parse_version(text: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = text
        .trim()
        .strip_prefix("bubblewrap ")?
        .split('.')
        .map(|part| part.parse::<u32>().ok());
    let version = (numbers.next()??, numbers.next()??, numbers.next().unwrap_or(Some(0))?);
    numbers.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read() {
        assert_eq!(parse_version("bubblewrap 0.8.0\n"), Some((0, 8, 0)));
        assert_eq!(parse_version("bubblewrap 1.2"), Some((1, 2, 0)));
    }

    #[test]
    fn what_is_no_version_is_none() {
        for text in [
            "",
            "bubblewrap",
            "bubblewrap 0",
            "bubblewrap 0.8.0-rc1",
            "bubblewrap 0.8.0.1",
            "bwrap 0.8.0",
        ] {
            assert_eq!(parse_version(text), None, "{text}");
        }
    }

    #[test]
    fn a_setuid_bwrap_is_not_acceptable() {
        let bwrap = Bwrap {
            path: "/usr/bin/bwrap",
            version: Some((0, 8, 0)),
            setuid: false,
            writable_by_others: false,
        };
        assert!(bwrap.acceptable());
        assert!(
            !Bwrap {
                setuid: true,
                ..bwrap.clone()
            }
            .acceptable()
        );
        assert!(
            !Bwrap {
                writable_by_others: true,
                ..bwrap
            }
            .acceptable()
        );
    }
}
