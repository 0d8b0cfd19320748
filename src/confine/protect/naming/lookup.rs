//! The default names, for whoever asks about a path before anything runs.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::names::{Names, is_dot_git, is_third_party, same_name};
use crate::policy::protected::{TOOLS, Tool};

/// The default names with what the tool that reads them runs, in the table's order. Git directories are protected besides.
pub fn default_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of = |tool: &'static Tool| tool.reads.iter().map(|pattern| (*pattern, tool.runs));
    TOOLS.iter().flat_map(of)
}

/// Why the default names protect a path, told below its root; `None` if they do not.
///
/// What a git directory without that name holds is found by looking, not by name.
pub fn protected_name(relative: &Path) -> Option<String> {
    protected_by(&Names::default(), relative)
}

/// Why these names protect a path, told below its root; `None` if they do not.
pub fn protected_by(names: &Names, relative: &Path) -> Option<String> {
    let parts: Vec<&[u8]> = relative.iter().map(OsStrExt::as_bytes).collect();
    if parts.iter().any(|part| is_dot_git(part)) {
        return Some("git: hooks and settings in a git directory run programs".to_owned());
    }
    let pattern = names.patterns().find(|pattern| matches(pattern.as_bytes(), &parts))?;
    let reads = |tool: &&Tool| tool.reads.contains(&pattern);
    let tool = TOOLS.iter().find(reads);
    Some(tool.map_or_else(
        || "the config protects it".to_owned(),
        |tool| format!("{}: {}", tool.name, tool.runs),
    ))
}

/// Whether the pattern matches at some depth: at the very end, or before anything where it ends with `**`.
fn matches(pattern: &[u8], parts: &[&[u8]]) -> bool {
    let (pattern, is_tree) = pattern
        .strip_suffix(b"/**")
        .map_or((pattern, false), |directory| (directory, true));
    let wanted: Vec<&[u8]> = pattern.split(|byte| *byte == b'/').collect();
    let depth_limit = parts.iter().take_while(|part| !is_third_party(part)).count() + 1;
    parts
        .windows(wanted.len())
        .enumerate()
        .take(depth_limit)
        .any(|(at, window)| {
            let ends = at + wanted.len() == parts.len();
            let same = |(pattern, part): (&&[u8], &&[u8])| matches_wildcard(pattern, part);
            (ends || is_tree) && wanted.iter().zip(window).all(same)
        })
}

/// Whether a name is like one of a pattern, in which `*` stands for anything.
pub(crate) fn matches_wildcard(pattern: &[u8], name: &[u8]) -> bool {
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else {
        return same_name(pattern, name);
    };
    let (begins, ends) = (&pattern[..star], &pattern[star + 1..]);
    name.len() >= begins.len() + ends.len()
        && same_name(begins, &name[..begins.len()])
        && same_name(ends, &name[name.len() - ends.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_at_any_depth_in_any_case_and_nothing_else_is() {
        for path in [
            ".bashrc",
            "a/b/.envrc",
            "x.code-workspace",
            ".vscode/tasks.json",
            "a/.vscode/tasks.json",
            ".VSCODE/TASKS.JSON",
            "a/.Config/Mise/conf.d/x.toml",
            "mise.production.toml",
            "X.CODE-WORKSPACE",
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
            ".config",
            "tasks.json",
            "src/main.rs",
            ".gitignore",
            "miser.toml",
            "node_modules/a/.husky/pre-commit",
            "a/vendor/.envrc",
            ".venv/.envrc",
            "target/x.code-workspace",
        ] {
            assert_eq!(protected_name(Path::new(path)), None, "{path}");
        }
    }
}
