//! The files that configs of tools name to be run.
//!
//! `profiles/protected.yaml` says in which files and after which words to look. They are read generously, as text and not by
//! their grammar: too much found costs nothing but a file that stays as it is. What no slash is in may be a program of the
//! `PATH`, and is taken for a file beside the one that names it where it is all that is said.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::entry::state::MAX_FILE;
use super::super::error::ProtectError;
use super::super::naming::names::same_name;
use super::super::roots::Root;
use super::super::tree::inventory::Inventory;
use super::resolve::resolve;
use crate::policy::protected::{Lead, Start, TOOLS};

/// The absolute paths that protected files name, as they are written.
pub(crate) fn of(
    roots: &[Root],
    inventory: &Inventory,
    content: impl Fn(PathBuf) -> Result<Option<Vec<u8>>, ProtectError>,
) -> Result<BTreeSet<PathBuf>, ProtectError> {
    let mut found = BTreeSet::new();
    for entry in inventory.found() {
        for lead in TOOLS.iter().flat_map(|tool| tool.leads) {
            if !ends_with_path(&entry.path, lead.file.as_bytes()) {
                continue;
            }
            let Some(root) = roots.get(usize::from(entry.root)) else {
                continue;
            };
            let file = root.path.join(OsStr::from_bytes(&entry.path));
            let Some(real) = resolve(&file) else { continue };
            let mut starts = vec![file.parent(), real.parent()];
            if lead.from == Start::Above {
                starts.extend([
                    file.parent().and_then(Path::parent),
                    real.parent().and_then(Path::parent),
                ]);
            }
            let starts: BTreeSet<PathBuf> = starts.into_iter().flatten().map(Path::to_owned).collect();
            // One that is too long to be kept refuses the start for that.
            if std::fs::metadata(&real).is_ok_and(|found| found.len() > MAX_FILE) {
                continue;
            }
            let Some(text) = content(real.clone())? else { continue };
            for path in named(&text, lead) {
                let path = Path::new(OsStr::from_bytes(path));
                let all = starts.iter().map(|start| start.join(path));
                // A directory above the file itself is no reference.
                found.extend(all.filter(|path| !resolve(path).is_some_and(|end| real.starts_with(end))));
            }
        }
    }
    Ok(found)
}

/// Whether the path is this one, or ends so.
fn ends_with_path(path: &[u8], end: &[u8]) -> bool {
    let Some(at) = path.len().checked_sub(end.len()) else {
        return false;
    };
    same_name(&path[at..], end) && (at == 0 || path[at - 1] == b'/')
}

/// What a text names.
fn named<'a>(text: &'a [u8], lead: &Lead) -> Vec<&'a [u8]> {
    let mut found = arguments_of(text, lead.words);
    found.extend(values_of(text, lead.keys));
    let is_path = |token: &&[u8]| !token.contains(&b'$') && !token.starts_with(b"~") && !token.contains(&0);
    // The directory of the file itself.
    let here = |token: &'a [u8]| {
        ["$PWD/", "${PWD}/"]
            .iter()
            .find_map(|pwd| token.strip_prefix(pwd.as_bytes()))
            .unwrap_or(token)
    };
    found.into_iter().map(here).filter(is_path).collect()
}

/// The first argument of each of these commands.
fn arguments_of<'a>(text: &'a [u8], commands: &[&str]) -> Vec<&'a [u8]> {
    let mut found = Vec::new();
    if commands.is_empty() {
        return found;
    }
    // `a && b` and `a; b` are two.
    for line in text.split(|byte| matches!(byte, b'\n' | b';' | b'&' | b'|')) {
        let mut tokens = tokens(line);
        let is_command = |token: &[u8]| commands.iter().any(|command| command.as_bytes() == token);
        if tokens.by_ref().find(|token| !token.is_empty()).is_some_and(is_command) {
            found.extend(tokens.next());
        }
    }
    found
}

/// The values of these keys, in any usual syntax.
fn values_of<'a>(text: &'a [u8], keys: &[&str]) -> Vec<&'a [u8]> {
    let is_of_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if !is_of_key(&text[at]) {
            at += 1;
            continue;
        }
        let length = text[at..].iter().take_while(|byte| is_of_key(byte)).count();
        let key = &text[at..at + length];
        at += length;
        if !keys.iter().any(|one| same_name(one.as_bytes(), key)) {
            continue;
        }
        let rest = &text[at..];
        let skipped = rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'"' | b'\''))
            .count();
        if let Some(b':' | b'=') = rest.get(skipped) {
            found.extend(value(&rest[skipped + 1..]));
        }
    }
    found
}

/// The words of a value: a list in brackets, the rest of the line, or the lines with a dash below.
fn value(text: &[u8]) -> Vec<&[u8]> {
    let line_end = |text: &[u8]| text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    let start = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let end = match text.get(start) {
        Some(b'[') => text.iter().position(|byte| *byte == b']').unwrap_or(text.len()),
        Some(b'\n' | b'\r') | None => {
            let mut end = start + line_end(&text[start..]);
            while let Some(next) = text.get(end + 1..) {
                if !next.trim_ascii_start().starts_with(b"-") {
                    break;
                }
                let blank = next.len() - next.trim_ascii_start().len();
                end += 1 + blank + line_end(&next[blank..]);
            }
            end.min(text.len())
        }
        Some(_) => start + line_end(&text[start..]),
    };
    let all: Vec<&[u8]> = tokens(&text[..end])
        .filter(|token| !matches!(*token, b"" | b"-"))
        .collect();
    let is_alone = all.len() == 1 || text.get(start) == Some(&b'[');
    all.into_iter()
        .filter(|token| is_alone || token.contains(&b'/'))
        .collect()
}

fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| byte.is_ascii_whitespace() || b"\"'[]{},=`()".contains(byte))
        .filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(file: &str) -> &'static Lead {
        let mut leads = TOOLS.iter().flat_map(|tool| tool.leads);
        leads.find(|lead| lead.file == file).unwrap()
    }

    #[test]
    fn what_a_file_of_a_tool_names_is_found_however_it_is_written() {
        for (file, text, wanted) in [
            (
                ".yarnrc.yml",
                "nodeLinker: pnp\nyarnPath: .yarn/releases/y.cjs\n",
                vec![".yarn/releases/y.cjs"],
            ),
            (".yarnrc.yml", "yarnPath: \"tools/y.cjs\" # ours\n", vec!["tools/y.cjs"]),
            (
                ".yarnrc.yml",
                "plugins:\n  - path: p/a.cjs\n    spec: x\n  - p/b.cjs\n",
                vec!["p/a.cjs", "p/a.cjs"],
            ),
            (".yarnrc", "# x\nyarn-path \"./y.js\"\n", vec!["./y.js"]),
            (
                "rust-toolchain.toml",
                "[toolchain]\npath = \"tools/rust\"\n",
                vec!["tools/rust"],
            ),
            (
                "rust-toolchain.toml",
                "toolchain = { path = 'tools/rust' }\n",
                vec!["tools/rust"],
            ),
            ("rust-toolchain.toml", "[toolchain]\nchannel = \"1.90\"\n", vec![]),
            (".npmrc", "script-shell=./sh\nfund=false\n", vec!["./sh"]),
            (
                ".npmrc",
                "node-options = --require ./hook.js --max-old-space-size=4\n",
                vec!["./hook.js"],
            ),
            (
                ".cargo/config.toml",
                "[build]\nrustc-wrapper = \"tools/w\"\n",
                vec!["tools/w"],
            ),
            (
                ".cargo/config.toml",
                "[target.x]\nrunner = [\"tools/r\", \"-v\"]\n",
                vec!["tools/r", "-v"],
            ),
            (
                "bunfig.toml",
                "preload = [\n  \"./a.ts\",\n  \"b.ts\",\n]\n",
                vec!["./a.ts", "b.ts"],
            ),
            (
                ".envrc",
                "use flake\nsource_env ./more\n. $PWD/env.sh && dotenv\n",
                vec!["./more", "env.sh"],
            ),
            (
                "global.json",
                "{\"sdk\": {\"paths\": [\".dotnet\", \"$host$\"]}}",
                vec![".dotnet"],
            ),
        ] {
            let found = named(text.as_bytes(), lead(file));
            let found: Vec<&str> = found
                .into_iter()
                .map(|path| std::str::from_utf8(path).unwrap())
                .collect();
            assert_eq!(found, wanted, "{file}: {text}");
        }
    }

    #[test]
    fn a_file_is_known_by_the_end_of_its_path() {
        assert!(ends_with_path(b"a/.cargo/config.toml", b".cargo/config.toml"));
        assert!(ends_with_path(b".YARNRC.yml", b".yarnrc.yml"));
        assert!(!ends_with_path(b"x.yarnrc.yml", b".yarnrc.yml"));
        assert!(!ends_with_path(b"yml", b".yarnrc.yml"));
    }
}
