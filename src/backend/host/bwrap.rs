//! bwrap, by absolute path in a system directory.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;

use serde::{Deserialize, Serialize};

use super::namespaces::PROBE;

/// The paths that are tried; never `PATH`, which the environment controls.
const PATHS: [&str; 3] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];

/// A bwrap that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

/// The identity of a bwrap file, which differs for another file and for a changed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BwrapFile {
    path: String,
    device: u64,
    inode: u64,
    size: u64,
    /// Changes of content, owner and mode alike show here.
    changed: (i64, i64),
}

/// The oldest version with all options that are used.
const OLDEST: (u32, u32, u32) = (0, 6, 0);

impl Bwrap {
    /// Its version, as it is written.
    pub fn number(&self) -> String {
        self.version.map_or_else(
            || "of unknown version".to_owned(),
            |(major, minor, patch)| format!("{major}.{minor}.{patch}"),
        )
    }

    /// Why it may not be used, where it may not.
    pub fn objection(&self) -> Option<String> {
        let Self { path, version, .. } = self;
        if self.setuid {
            Some(format!(
                "{path} is set-uid, which would give what it starts another owner's rights"
            ))
        } else if self.writable_by_others {
            Some(format!("{path} can be changed by others than root"))
        } else {
            match version {
                None => Some(format!("{path} does not say its version")),
                Some(version) if *version < OLDEST => {
                    Some(format!("{path} is version {}, and 0.6.0 is needed", self.number()))
                }
                Some(_) => None,
            }
        }
    }

    /// Whether it may be used at all.
    pub fn acceptable(&self) -> bool {
        self.objection().is_none()
    }

    /// Has it make namespaces and mounts, and start something inside, with the rights that a session gives it: this program is
    /// started as a probe, which gives up the others and becomes bwrap.
    #[expect(
        clippy::disallowed_methods,
        reason = "a probe; what runs a command is started by the supervisor"
    )]
    pub(super) fn try_out(&self) -> Result<(), String> {
        let mut arguments = vec![
            "--unshare-user",
            "--unshare-ipc",
            "--unshare-pid",
            "--unshare-uts",
            "--unshare-cgroup",
            "--unshare-net",
        ];
        arguments.extend([
            "--ro-bind",
            "/",
            "/",
            "--tmpfs",
            "/tmp",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
        ]);
        arguments.extend(["--cap-drop", "ALL", "--", self.path, "--version"]);
        let output = std::process::Command::new("/proc/self/exe")
            .args([PROBE, self.path])
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() && parse_version(&String::from_utf8_lossy(&output.stdout)) == self.version {
            return Ok(());
        }
        let stderr = output.stderr.get(..output.stderr.len().min(500)).unwrap_or_default();
        Err(crate::policy::path::escape(stderr.trim_ascii()))
    }
}

/// The first bwrap of a system directory.
pub(super) fn find() -> Option<Bwrap> {
    let (bwrap, _) = locate()?;
    // What must not be used is not run either.
    let version = if bwrap.setuid || bwrap.writable_by_others {
        None
    } else {
        query_version(bwrap.path)
    };
    Some(Bwrap { version, ..bwrap })
}

/// The same, not started, so that its version is not known; and which file it is.
pub(super) fn locate() -> Option<(Bwrap, BwrapFile)> {
    PATHS.into_iter().find_map(|path| {
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let mode = metadata.permissions().mode();
        let setuid = mode & 0o6000 != 0;
        // Writable by its owner is writable by root, unless someone else owns it.
        let writable_by_others = mode & 0o022 != 0 || metadata.uid() != 0;
        let bwrap = Bwrap {
            path,
            version: None,
            setuid,
            writable_by_others,
        };
        let file = BwrapFile {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        };
        Some((bwrap, file))
    })
}

/// What `--version` says.
#[expect(
    clippy::disallowed_methods,
    reason = "a probe; what runs a command is started by the supervisor"
)]
fn query_version(path: &str) -> Option<(u32, u32, u32)> {
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
        assert!(!Bwrap { setuid: true, ..bwrap }.acceptable());
        assert!(
            !Bwrap {
                writable_by_others: true,
                ..bwrap
            }
            .acceptable()
        );
    }
}
