//! The mounts below a path: a grant of a directory includes them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use super::system_paths::{PSEUDO, holds};
use crate::policy::AbsPath;

/// The mount points with their file system types; or why they cannot be read.
pub(crate) struct MountTable(pub(super) Result<Vec<(AbsPath, Vec<u8>)>, String>);

impl MountTable {
    /// Reads the current mounts.
    pub(crate) fn read() -> Self {
        let table = std::fs::read("/proc/thread-self/mountinfo");
        Self(match table {
            Ok(table) => Ok(points(&table)),
            Err(error) => Err(format!("failed to read /proc/thread-self/mountinfo: {error}")),
        })
    }

    /// Why `root` cannot be writable: a mount in it shows a file system of the kernel, or `state`.
    pub(crate) fn objection(&self, root: &AbsPath, state: Option<&AbsPath>) -> Option<String> {
        match &self.0 {
            Ok(points) => within(points, root, state),
            // What cannot be checked is not granted.
            Err(why) => Some(why.clone()),
        }
    }
}

fn points(table: &[u8]) -> Vec<(AbsPath, Vec<u8>)> {
    let lines = table.split(|&byte| byte == b'\n');
    lines.filter_map(parse).collect()
}

fn within(points: &[(AbsPath, Vec<u8>)], root: &AbsPath, state: Option<&AbsPath>) -> Option<String> {
    points.iter().find_map(|(point, kind)| {
        if !point.is_below(root) {
            return None;
        }
        let is_kind = |name: &str| name.as_bytes() == kind;
        if let Some(name) = PSEUDO
            .iter()
            .map(|(_, name)| *name)
            .chain(["devtmpfs"])
            .find(|name| is_kind(name))
        {
            return Some(format!("{point} in it is on a file system of the kernel's ({name})"));
        }
        let state = state.filter(|state| holds(point, state) || holds(state, point))?;
        Some(format!("{point} in it shows stockade's own state {state}"))
    })
}

/// Mount point and kind of one line of the table.
fn parse(line: &[u8]) -> Option<(AbsPath, Vec<u8>)> {
    let mut fields = line.split(|&byte| byte == b' ');
    let point = AbsPath::new(OsString::from_vec(unescape(fields.nth(4)?))).ok()?;
    fields.find(|field| *field == b"-")?;
    Some((point, fields.next()?.to_vec()))
}

/// Decodes octal escapes: spaces, tabs, newlines and backslashes.
fn unescape(mut field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((&first, rest)) = field.split_first() {
        let digits = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                field = &rest[3..];
            }
            Some(_) | None => {
                bytes.push(first);
                field = rest;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"1 0 8:1 / / rw - ext4 /dev/x rw\n2 1 0:4 / /srv/a\\040b/proc rw shared:1 - proc proc rw\n\
        3 1 8:2 / /srv/data rw - ext4 /dev/y rw\n";

    #[test]
    fn switches_mounted_below_a_root_are_found_and_data_is_not() {
        let at = |path: &str| AbsPath::new(path).unwrap();
        let message = within(&points(TABLE), &at("/srv/a b"), None).unwrap();
        assert!(
            message.contains("/srv/a b/proc") && message.contains("(proc)"),
            "{message}"
        );
        assert!(within(&points(TABLE), &at("/srv"), None).is_some());
        assert_eq!(within(&points(TABLE), &at("/srv/data"), None), None);
        assert_eq!(within(&points(TABLE), &at("/home"), None), None);
    }

    #[test]
    fn stockades_state_mounted_below_a_root_is_found() {
        let at = |path: &str| AbsPath::new(path).unwrap();
        let state = at("/srv/data/state");
        assert!(within(&points(TABLE), &at("/srv"), Some(&state)).is_some());
        assert_eq!(within(&[], &at("/srv"), Some(&state)), None);
    }
}
