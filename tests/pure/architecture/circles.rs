//! Files that import each other in a circle.
//!
//! A name is followed through re-exports to the file that defines it, so a `mod.rs` that only re-exports is on no circle.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::{Source, module_of};
use super::scan::{Named, Token, paths, tokens, without_tests};

/// A module, from the crate's root on.
type Module = Vec<String>;

/// What a file names.
struct File {
    /// Paths, from the crate's root on.
    named: Vec<Module>,
    /// What other paths begin with here, and what that stands for: imports, and modules of its own.
    aliases: BTreeMap<String, Module>,
    /// Those of them that others may import from here.
    exported: BTreeSet<String>,
}

/// The circles: for each, the files of one, with what ties the first two.
pub(crate) fn circles(sources: &[Source]) -> Vec<String> {
    let files: BTreeMap<Module, File> = sources
        .iter()
        .filter(|source| source.path != "main.rs")
        .map(|source| (module(source), file(source)))
        .collect();
    let mut edges: BTreeMap<&Module, BTreeMap<&Module, String>> = BTreeMap::new();
    for (module, file) in &files {
        let local = file.named.iter().map(|path| aliased(file, path));
        for path in local {
            if let Some((home, _)) = defined(&files, &path, 0)
                && home != module
                && !home.is_empty()
                // `pub(in crate::above)` imports nothing.
                && !(**home == path[..] && module.starts_with(home))
            {
                edges.entry(module).or_default().insert(home, path.join("::"));
            }
        }
    }
    let walk = |from: &Module| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(at) = left.pop() {
            for next in edges.get(at).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(*next) {
                    left.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = files.keys().map(|module| (module, walk(module))).collect();
    let mut told: BTreeSet<&Module> = BTreeSet::new();
    let mut found = Vec::new();
    for module in files.keys() {
        if told.contains(module) || !reached[module].contains(module) {
            continue;
        }
        let circle: Vec<&Module> = files
            .keys()
            .filter(|other| reached[module].contains(other) && reached[other].contains(module))
            .collect();
        told.extend(&circle);
        let ties = circle.iter().flat_map(|from| {
            let to = edges.get(from).into_iter().flatten();
            to.filter(|(to, _)| circle.contains(to))
                .map(|(to, name)| format!("  {} -> {}: {name}", from.join("/"), to.join("/")))
        });
        found.push(format!(
            "{} files in a circle\n{}",
            circle.len(),
            ties.collect::<Vec<_>>().join("\n")
        ));
    }
    found
}

fn module(source: &Source) -> Module {
    let module: Module = module_of(&source.path).into_iter().map(str::to_owned).collect();
    if module == ["lib"] { Vec::new() } else { module }
}

fn file(source: &Source) -> File {
    let here = module(source);
    // The crate's root exports the public API; no file below it imports from there.
    if here.is_empty() {
        return File {
            named: Vec::new(),
            aliases: BTreeMap::new(),
            exported: BTreeSet::new(),
        };
    }
    let tokens = without_tests(tokens(&source.text));
    let (mut named, mut aliases, mut exported) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
    for two in tokens.windows(2) {
        if let [Some("mod"), Some(name)] = [two[0].word(), two[1].word()] {
            aliases.insert(name.to_owned(), [here.as_slice(), &[name.to_owned()]].concat());
        }
    }
    let uses = uses(&tokens);
    for (use_of, alias, is_exported) in &uses {
        let segments = &use_of.segments;
        let below = |aliases: &BTreeMap<String, Module>| {
            let (first, rest) = segments.split_first()?;
            Some([aliases.get(first)?.as_slice(), rest].concat())
        };
        let Some(path) = absolute(&here, use_of).or_else(|| below(&aliases)) else {
            continue;
        };
        let name = alias.clone().or_else(|| path.last().cloned()).unwrap_or_default();
        if *is_exported {
            exported.insert(name.clone());
        }
        named.push(path.clone());
        aliases.insert(name, path);
    }
    for path in paths(&tokens) {
        named.push(absolute(&here, &path).unwrap_or(path.segments));
    }
    File {
        named,
        aliases,
        exported,
    }
}

/// Every import, with its other name, and whether it is exported.
fn uses(tokens: &[Token]) -> Vec<(Named, Option<String>, bool)> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.word() != Some("use") {
            continue;
        }
        let length = tokens[at..].iter().position(|token| token.is(';')).unwrap_or(0);
        let line = &tokens[at + 1..at + length];
        // `pub use`, `pub(crate) use`, `pub(in …) use`.
        let is_exported = at > 0 && (tokens[at - 1].word() == Some("pub") || tokens[at - 1].is(')'));
        let other_names: BTreeMap<&str, &str> = line
            .windows(3)
            .filter(|three| three[1].word() == Some("as"))
            .filter_map(|three| Some((three[0].word()?, three[2].word()?)))
            .collect();
        let depth = depth(&tokens[..at]);
        for named in paths(line) {
            let named = Named { depth, ..named };
            let last = named.segments.last().map(String::as_str).unwrap_or_default();
            let alias = other_names.get(last).map(|name| (*name).to_owned());
            found.push((named, alias, is_exported));
        }
    }
    found
}

/// How many inline `mod name { … }` are open behind these tokens.
fn depth(tokens: &[Token]) -> usize {
    let (mut braces, mut modules) = (0_usize, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        if token.is('{') {
            braces += 1;
            if at > 1 && tokens[at - 2].word() == Some("mod") {
                modules.push(braces);
            }
        } else if token.is('}') {
            modules.retain(|open| *open < braces);
            braces = braces.saturating_sub(1);
        }
    }
    modules.len()
}

/// A path from the crate's root on; `None` where it begins with none of the words that say where.
fn absolute(here: &Module, named: &Named) -> Option<Module> {
    let segments = &named.segments;
    let mut at = match segments.first().map(String::as_str)? {
        "crate" => Vec::new(),
        // Which module an inline one is does not matter, only how deep it lies.
        "super" | "self" => [here.as_slice(), &vec![String::new(); named.depth]].concat(),
        _ => return None,
    };
    for segment in segments {
        match segment.as_str() {
            "crate" | "self" => {}
            "super" => {
                at.pop();
            }
            name => at.push(name.to_owned()),
        }
    }
    at.retain(|name| !name.is_empty());
    Some(at)
}

/// A path whose first word is an import or a module of the file, spelled out.
fn aliased(file: &File, path: &Module) -> Module {
    match path.split_first() {
        Some((first, rest)) if !rest.is_empty() => match file.aliases.get(first) {
            Some(whole) => [whole.as_slice(), rest].concat(),
            None => path.clone(),
        },
        _ => path.clone(),
    }
}

/// The file that defines what a path names.
fn defined<'a>(files: &'a BTreeMap<Module, File>, path: &[String], steps: usize) -> Option<(&'a Module, &'a File)> {
    let (module, file, rest) = (0..=path.len()).rev().find_map(|end| {
        files
            .get_key_value(&path[..end])
            .map(|(module, file)| (module, file, &path[end..]))
    })?;
    let further = rest
        .first()
        .filter(|name| file.exported.contains(*name))
        .and_then(|name| file.aliases.get(name));
    match further {
        // Names that are exported in a round have no home.
        Some(whole) if steps < 16 => defined(files, &[whole.as_slice(), &rest[1..]].concat(), steps + 1),
        _ => Some((module, file)),
    }
}
