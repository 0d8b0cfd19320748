//! Regular expressions over paths: the few shapes that are written, and what they match.
//!
//! Two shapes are exact and understood by the reader: a name's *ending*, and *names* at any depth below
//! a directory of known depth. A third, the *spellings* of a denied name in upper and lower case, only
//! ever forbids more; the reader proves nothing by it. Expressions reach the profile as
//! parameters, like paths, so nothing in them is read as profile language.
//!
//! Only `^ $ ( ) | * + [ ]` and escaped characters are used: no counting, no classes by name, nothing
//! whose meaning differs between the dialects that could be in use.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

use crate::policy::{AbsPath, Pattern, Suffix};

/// The longest expression that is read.
const LONGEST: usize = 16 << 10;

/// The deepest nesting of groups that is read.
const DEEPEST: usize = 16;

const META: &[u8] = b"\\.^$|()[]{}*+?";

/// An expression and what is known of it.
#[derive(Debug, Clone)]
pub struct Regex {
    text: String,
    shape: Shape,
    compiled: OnceLock<Option<regex::bytes::Regex>>,
}

/// What an expression means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Paths whose last name ends with this suffix and is longer than it.
    Ending(Suffix),
    /// Paths in which a name after the first `depth` names matches the pattern.
    Names {
        /// The number of leading names that are not compared.
        depth: usize,
        /// The pattern.
        pattern: Pattern,
    },
    /// Any other paths: the reader cannot tell which.
    Other,
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Regex {}

impl Regex {
    /// The expression; `None` where it uses more than this module understands.
    pub fn new(text: &str) -> Option<Self> {
        (text.len() <= LONGEST && is_simple(text.as_bytes())).then(|| Self {
            shape: shape(text.as_bytes()),
            text: text.to_owned(),
            compiled: OnceLock::new(),
        })
    }

    /// The text of the expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The paths that the expression matches, as far as the reader understands it.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether the expression matches the path; `None` where it cannot be compiled.
    pub fn matches(&self, path: &AbsPath) -> Option<bool> {
        let compiled = self.compiled.get_or_init(|| {
            let mut builder = regex::bytes::RegexBuilder::new(&self.text);
            builder.unicode(false).size_limit(1 << 20).build().ok()
        });
        compiled.as_ref().map(|regex| regex.is_match(path.as_bytes()))
    }
}

impl Shape {
    /// Whether the shape matches the path; `None` for [`Other`](Self::Other).
    pub fn matches(&self, path: &AbsPath) -> Option<bool> {
        match self {
            Self::Ending(end) => Some(path.name().is_some_and(|name| end.matches(name))),
            Self::Names { depth, pattern } => {
                let names = path.as_path().iter().skip(1 + depth);
                Some(names.into_iter().any(|name| pattern.matches(name)))
            }
            Self::Other => None,
        }
    }
}

/// `[^/]\.md$`
pub(super) fn ending(suffix: &Suffix) -> String {
    format!("[^/]{}$", escape(suffix.as_str()))
}

/// `^/[^/]+/[^/]+(/[^/]+)*/\.env(/|$)`; `None` where the name cannot be written in an expression.
pub(super) fn names(depth: usize, pattern: &Pattern) -> Option<String> {
    let (any, name) = match pattern {
        Pattern::Name(name) => ("", name),
        Pattern::Suffix(end) => ("[^/]*", end),
    };
    let text = name.to_str()?;
    Some(format!("{}{any}{}(/|$)", below(depth), escape(text)))
}

/// The same expression for every spelling of the name.
pub(super) fn spelled_names(depth: usize, pattern: &Pattern) -> Option<String> {
    let (any, name) = match pattern {
        Pattern::Name(name) => ("", name),
        Pattern::Suffix(end) => ("[^/]*", end),
    };
    Some(format!("{}{any}{}(/|$)", below(depth), spellings(name.to_str()?)))
}

/// The extent of an expression: the path alone, or the tree at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Tree,
    PathOnly,
}

/// Every spelling of the names of `path` beyond the first `depth`.
pub(super) fn spelled_path(depth: usize, path: &AbsPath, extent: Extent) -> Option<String> {
    let mut text = format!("^{}", "/[^/]+".repeat(depth));
    for name in path.as_path().iter().skip(1 + depth) {
        text.push('/');
        text += &spellings(name.to_str()?);
    }
    text += match extent {
        Extent::Tree => "(/|$)",
        Extent::PathOnly => "$",
    };
    Some(text)
}

fn below(depth: usize) -> String {
    format!("^{}(/[^/]+)*/", "/[^/]+".repeat(depth))
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() && META.contains(&(c as u8)) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// A character that is not printable ASCII. A volume that ignores case and composition may treat it as an ASCII letter
/// (the Kelvin sign as `k`), as two letters (a ligature), or ignore it.
const FOREIGN: &str = "[^ -~]";

/// An expression for every name that some volume could treat as equal to this one. It matches some other names too.
///
/// A run of ASCII letters matches in either case, or any text with a foreign character in it. A run that has a foreign
/// character itself matches any text without a dot.
fn spellings(name: &str) -> String {
    let is_loose = |c: char| c.is_ascii_alphabetic() || c == ';' || c == '`' || !(' '..='~').contains(&c);
    let mut text = format!("{FOREIGN}*");
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        if is_loose(first) {
            let end = rest.find(|c| !is_loose(c)).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            rest = after;
            if run.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
                text.push('(');
                for byte in run.chars() {
                    if byte.is_ascii_alphabetic() {
                        text.extend(['[', byte.to_ascii_lowercase(), byte.to_ascii_uppercase(), ']']);
                    } else {
                        text.push(byte);
                    }
                }
                text.extend(["|[^/.]*", FOREIGN, "[^/.]*)"]);
            } else {
                text += "[^/.]*";
            }
        } else {
            text += &escape(&rest[..first.len_utf8()]);
            text += FOREIGN;
            text.push('*');
            rest = &rest[first.len_utf8()..];
        }
    }
    text
}

/// Anchors, groups, alternatives, `*`, `+`, classes and escaped characters: nothing else.
fn is_simple(text: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut bytes = text.iter().copied();
    // Whether a quantifier may follow here.
    let mut item = false;
    while let Some(byte) = bytes.next() {
        match byte {
            0 | b'{' | b'}' | b'?' | b']' | b'.' => return false,
            b'\\' => {
                if !bytes.next().is_some_and(|escaped| META.contains(&escaped)) {
                    return false;
                }
                item = true;
            }
            b'(' => {
                depth += 1;
                item = false;
                if depth > DEEPEST {
                    return false;
                }
            }
            b')' => {
                let Some(less) = depth.checked_sub(1) else {
                    return false;
                };
                depth = less;
                item = true;
            }
            b'*' | b'+' => {
                if !item {
                    return false;
                }
                item = false;
            }
            b'^' | b'$' | b'|' => item = false,
            b'[' => {
                let mut closed = false;
                let inside = bytes.by_ref().take_while(|&b| {
                    closed = b == b']';
                    !closed
                });
                let inside: Vec<u8> = inside.collect();
                let names = inside.strip_prefix(b"^").unwrap_or(&inside);
                if !closed
                    || names.is_empty()
                    || names
                        .iter()
                        .any(|b| matches!(b, b'[' | b'\\' | b'^' | b'&' | b'~') && names != b" -~")
                {
                    return false;
                }
                item = true;
            }
            _ => item = true,
        }
    }
    depth == 0
}

fn shape(text: &[u8]) -> Shape {
    let end = text.strip_prefix(b"[^/]").and_then(|rest| rest.strip_suffix(b"$"));
    let end = end.and_then(unescape).and_then(|end| String::from_utf8(end).ok());
    if let Some(end) = end.and_then(|end| Suffix::new(&end).ok()) {
        return Shape::Ending(end);
    }
    names_shape(text).unwrap_or(Shape::Other)
}

fn names_shape(text: &[u8]) -> Option<Shape> {
    let mut rest = text.strip_prefix(b"^")?;
    let mut depth = 0;
    while let Some(less) = rest.strip_prefix(b"/[^/]+") {
        rest = less;
        depth += 1;
    }
    let name = rest.strip_prefix(b"(/[^/]+)*/")?.strip_suffix(b"(/|$)")?;
    let os = OsString::from_vec;
    let pattern = match name.strip_prefix(b"[^/]*") {
        Some(end) => Pattern::Suffix(os(unescape(end)?)),
        None => Pattern::Name(os(unescape(name)?)),
    };
    Some(Shape::Names { depth, pattern })
}

/// The bytes of an escaped text without the escapes; `None` where it has a `/` or an operator.
fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => plain.push(bytes.next().filter(|escaped| META.contains(escaped))?),
            b'/' => return None,
            other if META.contains(&other) => return None,
            other => plain.push(other),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn regex(text: Option<String>) -> Regex {
        let text = text.unwrap();
        Regex::new(&text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn an_ending_needs_something_before_it_in_the_same_name() {
        let md = regex(Some(ending(&Suffix::new(".m+d").unwrap())));
        assert_eq!(md.shape(), &Shape::Ending(Suffix::new(".m+d").unwrap()));
        for (path, expected) in [
            ("/a.m+d", true),
            ("/.m+d", false),
            ("/a.mmd", false),
            ("/a.m+d/x", false),
            ("/", false),
        ] {
            assert_eq!(
                (md.matches(&at(path)), md.shape().matches(&at(path))),
                (Some(expected), Some(expected)),
                "{path}"
            );
        }
    }

    #[test]
    fn names_are_looked_for_below_the_depth_only() {
        let env = regex(names(1, &Pattern::Name(".env".into())));
        for (path, expected) in [
            ("/r/.env", true),
            ("/r/a/.env/x", true),
            ("/.env", false),
            ("/.env/a", false),
            ("/r/xenv", false),
            ("/r/.envy", false),
        ] {
            assert_eq!(
                (env.matches(&at(path)), env.shape().matches(&at(path))),
                (Some(expected), Some(expected)),
                "{path}"
            );
        }
        let pem = regex(names(0, &Pattern::Suffix(".pem".into())));
        assert_eq!(pem.matches(&at("/a/x.pem/y")), Some(true));
        assert_eq!(pem.matches(&at("/a/x.pe")), Some(false));
    }

    #[test]
    fn every_spelling_that_a_volume_may_take_for_the_name_is_matched() {
        let git = regex(spelled_path(1, &at("/r/.gitk/config"), Extent::Tree));
        assert_eq!(git.shape(), &Shape::Other);
        for spelled in [
            "/r/.GIT\u{212a}/Config",
            "/r/.gitk/config/x",
            "/r/.g\u{200c}itk/conf\u{fb01}g",
            "/r/\u{200c}.gitK/CONFIG",
        ] {
            assert_eq!(git.matches(&at(spelled)), Some(true), "{spelled}");
        }
        for other in [
            "/r/.gitkeep/config",
            "/r/gitk/config",
            "/r/é.txt",
            "/r/.gitk",
            "/r/.gitk/config2",
        ] {
            assert_eq!(git.matches(&at(other)), Some(false), "{other}");
        }
        let accent = regex(spelled_path(0, &at("/caf\u{e9}.d"), Extent::PathOnly));
        assert_eq!(accent.matches(&at("/CAFE\u{301}.D")), Some(true));
        assert_eq!(accent.matches(&at("/CAFE\u{301}.D/x")), Some(false));
    }

    #[test]
    fn expressions_beyond_the_simple_kind_are_refused() {
        for text in [
            "(?i)a",
            "a{2}",
            "a.b",
            "[[:alpha:]]",
            "\\d",
            "(a",
            "a)",
            "*a",
            "a**",
            "[a",
            "[]",
            "a?",
            "[a&&b]",
            "a\0",
        ] {
            assert!(Regex::new(text).is_none(), "{text}");
        }
        assert!(Regex::new(&"(".repeat(100)).is_none());
        assert!(Regex::new(&"a".repeat(LONGEST + 1)).is_none());
    }
}
