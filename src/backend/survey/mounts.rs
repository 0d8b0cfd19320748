//! Which files show at more than one path: `/proc/self/mountinfo`, parsed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::error::SurveyError;
use crate::policy::AbsPath;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// `major:minor` as mountinfo has it; compared with nothing but other mounts.
    pub device: String,
    /// Which directory of the file system it shows.
    pub root: AbsPath,
    /// Where it shows it.
    pub point: AbsPath,
}

/// The mounts, in the order the kernel lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// The mounts of this process.
    pub fn take() -> Result<Self, SurveyError> {
        Self::parse(&std::fs::read("/proc/self/mountinfo").map_err(SurveyError::ReadMounts)?)
    }

    /// The mounts in a mountinfo text. Mounts of things that are no directories (namespaces) are left out.
    pub fn parse(text: &[u8]) -> Result<Self, SurveyError> {
        let lines = text.split(|&b| b == b'\n').filter(|line| !line.is_empty());
        let mounts: Result<Vec<Option<Mount>>, SurveyError> = lines.map(parse_line).collect();
        Ok(Self(mounts?.into_iter().flatten().collect()))
    }

    /// The other paths at which the file at `path`, or something below it, shows.
    ///
    /// Mounts that others hide are not recognised as hidden: the answer may name too many paths.
    pub fn aliases(&self, path: &AbsPath) -> Vec<AbsPath> {
        let holds = |mount: &&Mount| path.is_within(&mount.point);
        let depth = |mount: &Mount| mount.point.as_path().components().count();
        let deepest = self.0.iter().filter(holds).map(depth).max();
        // A later mount above the deepest one may hide it, so it may be the one that shows the path.
        let first = self
            .0
            .iter()
            .position(|mount| holds(&mount) && Some(depth(mount)) == deepest);
        let showing = self.0.iter().skip(first.unwrap_or(0)).filter(holds);
        let mut found = Vec::new();
        for mount in showing {
            let Some(inside) = rebase(path, &mount.point, &mount.root) else {
                continue;
            };
            for other in self.0.iter().filter(|other| other.device == mount.device) {
                let alias = if other.root.is_within(&inside) {
                    Some(other.point.clone())
                } else {
                    rebase(&inside, &other.root, &other.point)
                };
                found.extend(alias.filter(|alias| !alias.is_within(path)));
            }
        }
        found.sort();
        found.dedup();
        found
    }
}

impl FromIterator<Mount> for Mounts {
    fn from_iter<I: IntoIterator<Item = Mount>>(mounts: I) -> Self {
        Self(mounts.into_iter().collect())
    }
}

/// `path` with `from` at its front replaced by `to`.
fn rebase(path: &AbsPath, from: &AbsPath, to: &AbsPath) -> Option<AbsPath> {
    let rest = path.as_path().strip_prefix(from.as_path()).ok()?;
    AbsPath::new(to.as_path().join(rest)).ok()
}

/// `36 35 98:0 /root /point options…`, with blanks in paths as octal escapes.
fn parse_line(line: &[u8]) -> Result<Option<Mount>, SurveyError> {
    let malformed = || SurveyError::Mountinfo(crate::policy::path::escape(line));
    let mut fields = line.split(|&b| b == b' ').skip(2);
    let (Some(device), Some(root), Some(point)) = (fields.next(), fields.next(), fields.next()) else {
        return Err(malformed());
    };
    let (root, point) = (unescape(root), unescape(point));
    if !root.starts_with(b"/") {
        return Ok(None);
    }
    Ok(Some(Mount {
        device: String::from_utf8(device.to_vec()).map_err(|_| malformed())?,
        root: AbsPath::new(OsString::from_vec(root)).map_err(|_| malformed())?,
        point: AbsPath::new(OsString::from_vec(point)).map_err(|_| malformed())?,
    }))
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let octal = |digits: &[u8]| match digits {
        [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7'] => Some((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0')),
        _ => None,
    };
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'\\').then(|| tail.get(..3).and_then(octal)).flatten();
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &tail[3..] } else { tail };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text).unwrap()
    }

    const TEXT: &[u8] = b"21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        30 21 8:1 /srv/data /mnt/a\\040b rw - ext4 /dev/sda1 rw\n\
        31 21 0:5 / /tmp rw - tmpfs tmpfs rw\n\
        32 21 0:4 net:[4026531840] /run/netns/x rw - nsfs nsfs rw\n";

    #[test]
    fn a_bind_mount_shows_a_file_at_a_second_path() {
        let mounts = Mounts::parse(TEXT).unwrap();
        assert_eq!(mounts.aliases(&path("/srv/data/key")), [path("/mnt/a b/key")]);
        assert_eq!(mounts.aliases(&path("/mnt/a b/key")), [path("/srv/data/key")]);
        assert_eq!(mounts.aliases(&path("/srv/other")), []);
    }

    #[test]
    fn a_bind_mount_of_something_below_is_an_alias_too() {
        let mounts = Mounts::parse(TEXT).unwrap();
        assert_eq!(mounts.aliases(&path("/srv")), [path("/mnt/a b")]);
    }

    #[test]
    fn another_file_system_is_no_alias() {
        let mounts = Mounts::parse(TEXT).unwrap();
        assert_eq!(mounts.aliases(&path("/tmp/srv/data")), []);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_an_error() {
        assert!(Mounts::parse(b"21 1 8:1 /\n").is_err());
        assert!(Mounts::parse(b"21 1 8:1 /../x / rw\n").is_err());
    }
}
