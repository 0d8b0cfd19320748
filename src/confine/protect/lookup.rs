//! The default names, for whoever asks about a path before anything runs.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::names::{NAMES, is_dot_git, is_passed_over};

/// The default names with who runs or obeys each, in the table's order. Git directories are protected besides.
pub fn default_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES.iter().map(|name| (name.pattern, name.reason))
}

/// Why the default names protect a path, told below its root; `None` if they do not.
///
/// What a git directory without that name holds is found by looking, not by name.
pub fn protected_name(relative: &Path) -> Option<&'static str> {
    let parts: Vec<&[u8]> = relative.iter().map(OsStrExt::as_bytes).collect();
    if parts.iter().any(|part| is_dot_git(part)) {
        return Some("hooks and settings in a git directory run programs");
    }
    NAMES
        .iter()
        .find(|name| matches(name.pattern.as_bytes(), &parts))
        .map(|name| name.reason)
}

/// Whether the pattern matches at some depth: at the very end, or before anything where it ends with `**`.
fn matches(pattern: &[u8], parts: &[&[u8]]) -> bool {
    let (pattern, whole) = pattern
        .strip_suffix(b"/**")
        .map_or((pattern, false), |directory| (directory, true));
    let wanted: Vec<&[u8]> = pattern.split(|byte| *byte == b'/').collect();
    let seen = parts.iter().take_while(|part| !is_passed_over(part)).count() + 1;
    parts.windows(wanted.len()).enumerate().take(seen).any(|(at, window)| {
        let ends = at + wanted.len() == parts.len();
        let same = |(want, part): (&&[u8], &&[u8])| match want.strip_prefix(b"*") {
            Some(end) => part.ends_with(end),
            None => part == want,
        };
        (ends || whole) && wanted.iter().zip(window).all(same)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_at_any_depth_and_nothing_else_is() {
        for path in [
            ".bashrc",
            "a/b/.envrc",
            "x.code-workspace",
            ".vscode/tasks.json",
            "a/.vscode/tasks.json",
            ".idea",
            ".idea/a/b",
            ".git/hooks/pre-commit",
            "a/.GIT",
            "vendor/x/.git/config",
            "node_modules/a/.git",
            ".claude/node_modules/x",
            "Vendor/.envrc",
        ] {
            assert!(protected_name(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "",
            "bashrc",
            ".bashrc/x",
            ".vscode",
            "tasks.json",
            "src/main.rs",
            ".gitignore",
            "node_modules/a/.husky/pre-commit",
            "a/vendor/.envrc",
            ".venv/.envrc",
            "target/x.code-workspace",
        ] {
            assert_eq!(protected_name(Path::new(path)), None, "{path}");
        }
    }
}
