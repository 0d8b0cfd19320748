//! The rules of the house. Each takes sources as text and gives what breaks it, one line per finding.

use std::collections::BTreeSet;

use super::scan::{Kind, Named, Token, paths, tokens};

/// The folders of `src/`, floor by floor. Folders on one floor do not see each other.
const FLOORS: [&[&str]; 7] = [
    &["policy"],
    &["config", "profile"],
    &["backend"],
    &["confine", "approval", "audit", "proxy"],
    &["tools"],
    &["inspect", "learn"],
    &["cli", "mcp"],
];

/// What the top floor may not see although it lies below: people and agents reach it through the floors between only.
const BEHIND_TOOLS: [&str; 2] = ["backend", "confine"];

/// The files that join the floors.
const EXEMPT: [&str; 2] = ["main.rs", "lib.rs"];

/// The most lines a file may have, its tests not counted.
pub(crate) const LONGEST_FILE: usize = 400;

/// A file of `src/`: its path below it, with `/`, and its text.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn folder(&self) -> Option<&str> {
        self.path.split_once('/').map(|(folder, _)| folder)
    }

    fn tokens(&self) -> Vec<Token> {
        tokens(&self.text)
    }

    /// The module that the file is.
    fn module(&self) -> Vec<&str> {
        module_of(&self.path)
    }
}

/// The module that a file is.
pub(crate) fn module_of(path: &str) -> Vec<&str> {
    let stem = path.trim_end_matches(".rs").trim_end_matches("/mod");
    stem.split('/').collect()
}

fn floor(folder: &str) -> Option<usize> {
    FLOORS.iter().position(|folders| folders.contains(&folder))
}

/// A file imports only from lower floors, its own folder, or crates.
pub(crate) fn imports_that_climb(source: &Source) -> Vec<String> {
    let Some(home) = source.folder() else {
        let exempt = EXEMPT.contains(&source.path.as_str());
        return if exempt {
            Vec::new()
        } else {
            vec![format!("{}: lies in no folder of the house", source.path)]
        };
    };
    let Some(own) = floor(home) else {
        return vec![format!("{}: {home}/ is on no floor", source.path)];
    };
    let tokens = source.tokens();
    let mut found: Vec<String> = detours(&tokens)
        .map(|(line, what)| finding(source, line, what))
        .collect();
    for named in paths(&tokens) {
        let wrong = match reached(source, &named) {
            Reached::Crate => continue,
            Reached::Root => "names the crate itself, which hides the floor".to_owned(),
            Reached::Folder(folder) if folder == home => continue,
            Reached::Folder(folder) => match floor(&folder) {
                Some(below) if below < own => {
                    if own < FLOORS.len() - 1 || !BEHIND_TOOLS.contains(&folder.as_str()) {
                        continue;
                    }
                    format!("{home}/ reaches {folder}/ other than through tools/")
                }
                Some(_) => format!("{home}/ reaches {folder}/, which is not below it"),
                None => format!("reaches `{folder}`, which is on no floor"),
            },
        };
        found.push(finding(source, named.line, &wrong));
    }
    found
}

enum Reached {
    /// Another crate, a type, a variant: nothing of the house.
    Crate,
    /// The crate's root.
    Root,
    Folder(String),
}

/// Which folder of the house a path leads to.
fn reached(source: &Source, named: &Named) -> Reached {
    let mut at: Vec<String> = source.module().into_iter().map(str::to_owned).collect();
    // Which module an inline one is does not matter, only how deep it lies.
    at.extend((0..named.depth).map(|_| String::new()));
    match named.segments.first().map(String::as_str) {
        Some("crate") => at.clear(),
        Some("super" | "self") => {}
        _ => return Reached::Crate,
    }
    for segment in &named.segments {
        match segment.as_str() {
            "crate" | "self" | "*" => {}
            "super" => {
                at.pop();
            }
            name => at.push(name.to_owned()),
        }
    }
    match at.into_iter().next() {
        Some(folder) => Reached::Folder(folder),
        None => Reached::Root,
    }
}

/// Ways around the `use` lines: another name for the crate, or a file pulled in from elsewhere.
fn detours(tokens: &[Token]) -> impl Iterator<Item = (usize, &'static str)> {
    tokens.windows(3).enumerate().filter_map(|(at, three)| {
        // `include!(concat!(env!("OUT_DIR"), …))`: data that the build script wrote.
        let word = |behind: usize| tokens.get(at + behind).and_then(Token::word);
        let is_built = (word(3), word(6)) == (Some("concat"), Some("env"));
        let words = [three[0].word(), three[1].word(), three[2].word()];
        let what = match words {
            [Some("use"), Some("crate"), Some("as")] | [Some("extern"), Some("crate"), _] => {
                "gives the crate another name"
            }
            [_, Some("path"), _] if three[0].is('[') && three[2].is('=') => "pulls in a file by its path",
            [Some("include"), _, _] if three[1].is('!') && !is_built => "pulls in a file by its path",
            _ => return None,
        };
        Some((three[1].line, what))
    })
}

/// `unsafe` is in `confine/sys.rs` and the folder of that name, nowhere else.
pub(crate) fn unsafe_code(source: &Source) -> Vec<String> {
    if source.path == "confine/sys.rs" || source.path.starts_with("confine/sys/") {
        return Vec::new();
    }
    let tokens = source.tokens();
    let hit = tokens
        .iter()
        .filter(|token| matches!(token.word(), Some("unsafe" | "unsafe_code")));
    hit.map(|token| finding(source, token.line, "unsafe outside confine/sys"))
        .collect()
}

/// No file grows past [`LONGEST_FILE`] lines, its own `mod tests` at the end not counted.
pub(crate) fn too_long(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let tests = lines
        .windows(2)
        .position(|two| two[0] == "#[cfg(test)]" && two[1].starts_with("mod tests {"));
    // Only where nothing but the block's own closing brace follows at the margin.
    let trailing =
        tests.filter(|start| lines[start + 2..].iter().position(|line| *line == "}") == Some(lines.len() - start - 3));
    let length = trailing.unwrap_or(lines.len());
    if length <= LONGEST_FILE {
        return Vec::new();
    }
    vec![format!(
        "{}: {length} lines; at most {LONGEST_FILE} without tests",
        source.path
    )]
}

/// The files, and folders with `/`, that are compiled for tests alone: declared under `#[cfg(test)]`.
pub(crate) fn test_only(sources: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in sources {
        let module = source.module().join("/");
        let lines: Vec<&str> = source.text.lines().collect();
        for two in lines.windows(2) {
            let declared = two[1].strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
            if let (true, Some(name)) = (two[0] == "#[cfg(test)]", declared) {
                found.insert(format!("{module}/{name}.rs"));
                found.insert(format!("{module}/{name}/"));
            }
        }
    }
    found
}

/// The words that `policy/` may not say: I/O, serialisation, the names of a kernel's facilities.
const IMPURE_WORDS: [&str; 9] = [
    "serde",
    "serde_yaml",
    "schemars",
    "libc",
    "nix",
    "landlock",
    "seccompiler",
    "caps",
    "tokio",
];
const IMPURE_STD: [&str; 6] = ["fs", "process", "net", "env", "io", "thread"];
/// Methods of `std::path::Path` that ask the file system.
const ASKS_THE_DISK: [&str; 9] = [
    "exists",
    "try_exists",
    "is_file",
    "is_dir",
    "is_symlink",
    "metadata",
    "symlink_metadata",
    "canonicalize",
    "read_link",
];

/// Floor 0 does no I/O and knows neither serde nor an operating system.
pub(crate) fn impurity(source: &Source) -> Vec<String> {
    if source.folder() != Some("policy") {
        return Vec::new();
    }
    let tokens = source.tokens();
    let words = tokens.iter().filter_map(|token| Some((token.line, token.word()?)));
    let mut found: Vec<_> = words
        .filter(|(_, word)| IMPURE_WORDS.contains(word))
        .map(|(line, word)| finding(source, line, &format!("policy/ knows `{word}`")))
        .collect();
    for named in paths(&tokens) {
        if let [first, second, ..] = named.segments.as_slice()
            && first == "std"
            && IMPURE_STD.contains(&second.as_str())
        {
            found.push(finding(source, named.line, &format!("policy/ uses `std::{second}`")));
        }
    }
    for three in tokens.windows(3) {
        if let Kind::Word(method) = &three[1].kind
            && three[0].is('.')
            && three[2].is('(')
            && ASKS_THE_DISK.contains(&method.as_str())
        {
            found.push(finding(
                source,
                three[1].line,
                &format!("policy/ calls `.{method}()`, which asks the disk"),
            ));
        }
    }
    found
}

/// Every folder has a file that starts with its story: `mod.rs`, or for `name/` the file `name.rs` beside it.
pub(crate) fn folders_without_story(sources: &[Source]) -> Vec<String> {
    let folders: BTreeSet<&str> = sources
        .iter()
        .filter_map(|source| source.path.rsplit_once('/'))
        .map(|(folder, _)| folder)
        .collect();
    let told = |path: String| {
        let file = sources.iter().find(|source| source.path == path)?;
        let mut lines = file.text.lines();
        Some(
            lines
                .next()
                .is_some_and(|line| line.strip_prefix("//! ").is_some_and(|story| !story.trim().is_empty())),
        )
    };
    let mut found = Vec::new();
    for folder in folders {
        match told(format!("{folder}/mod.rs")).or_else(|| told(format!("{folder}.rs"))) {
            Some(true) => {}
            Some(false) => found.push(format!("{folder}/: does not start with a `//!` story")),
            None => found.push(format!("{folder}/: has no mod.rs")),
        }
    }
    found
}

/// The dependencies that the design names; each other one says in Cargo.toml why it is there.
const AGREED: [&str; 28] = [
    "annotate-snippets",
    "brush-parser",
    "caps",
    "clap",
    "clap_complete",
    "clap_mangen",
    "criterion",
    "crossterm",
    "diffy",
    "divan",
    "globset",
    "grep-regex",
    "grep-searcher",
    "ignore",
    "insta",
    "jiff",
    "landlock",
    "nix",
    "proptest",
    "rmcp",
    "schemars",
    "seccompiler",
    "serde_yaml",
    "sha2",
    "similar",
    "snapbox",
    "tokio",
    "tracing",
];

/// Every dependency is agreed, or has a comment on its line or the one above.
pub(crate) fn unexplained_dependencies(manifest: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut inside, mut above) = (false, "");
    for line in manifest.lines() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            inside = header.ends_with("dependencies");
            if let Some((table, name)) = header.rsplit_once('.')
                && table.ends_with("dependencies")
            {
                found.extend(unexplained(name, line, above));
            }
        } else if let (true, Some((name, _))) = (inside, line.split_once('=')) {
            found.extend(unexplained(name.trim(), line, above));
        }
        above = line;
    }
    found
}

fn unexplained(name: &str, line: &str, above: &str) -> Option<String> {
    // A version has no `#` in it, and neither does a feature.
    let explained = line.contains('#') || above.starts_with('#');
    (!explained && !AGREED.contains(&name)).then(|| format!("Cargo.toml: {name} is there without a reason"))
}

fn finding(source: &Source, line: usize, what: &str) -> String {
    format!("{}:{line}: {what}", source.path)
}
