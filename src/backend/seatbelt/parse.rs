//! Text and parameters → [`Script`]. It refuses what it does not know, and what is too long or nested too deeply.

use std::collections::HashMap;

use super::operation::Name;
use super::pattern::Regex;
use super::plan::{Parameter, SeatbeltPlan};
use super::syntax::{End, Expression, Filter, Label, PathArgument, Processes, Rule, Script, Verdict};
use crate::policy::AbsPath;

/// The longest text, in bytes: the command line of a Mac holds 1 MiB.
pub const LONGEST: usize = 640 << 10;

/// The deepest nesting that is read.
const DEEPEST: usize = 12;

/// Why a text is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It is too long.
    #[error("the profile is longer than {LONGEST} bytes")]
    TooLong,
    /// It is nested too deeply.
    #[error("byte {0}: nested more than {DEEPEST} deep")]
    TooDeep(usize),
    /// It has a character that the language does not use there.
    #[error("byte {0}: not understood")]
    Character(usize),
    /// A list or string is not closed, or a list is closed that was not opened.
    #[error("byte {0}: not balanced")]
    Unbalanced(usize),
    /// It does not begin with `(version 1)`.
    #[error("the text does not begin with `(version 1)`")]
    Version,
    /// A form that is not in the part of the language used here.
    #[error("byte {at}: `{what}` is not known here")]
    Unknown {
        /// The position in bytes.
        at: usize,
        /// The form.
        what: String,
    },
    /// A parameter has no value, or two values.
    #[error("the parameter `{0}` has no single value")]
    Parameter(String),
    /// A path is not normal: it is relative, or has `.`, `..`, `//` or a `/` at its end.
    #[error("`{0}` is not a normal absolute path")]
    Path(String),
    /// A regular expression is not of the simple kind used here.
    #[error("the expression `{0}` is not understood")]
    Regex(String),
}

/// Reads a plan.
pub fn parse(plan: &SeatbeltPlan) -> Result<Script, ParseError> {
    parse_text(&plan.text, &plan.parameters)
}

/// Reads a text.
pub(super) fn parse_text(text: &str, parameters: &[Parameter]) -> Result<Script, ParseError> {
    if text.len() > LONGEST {
        return Err(ParseError::TooLong);
    }
    let mut values = HashMap::with_capacity(parameters.len());
    for parameter in parameters {
        let proper = !parameter.name.is_empty() && parameter.name.bytes().all(|b| b.is_ascii_alphanumeric());
        if !proper
            || values
                .insert(parameter.name.as_str(), parameter.value.as_str())
                .is_some()
        {
            return Err(ParseError::Parameter(parameter.name.clone()));
        }
    }
    let forms = forms(text)?;
    let [version, rules @ ..] = forms.as_slice() else {
        return Err(ParseError::Version);
    };
    if !matches!(version.list(), Some([atom, one]) if atom.atom() == Some("version") && one.atom() == Some("1")) {
        return Err(ParseError::Version);
    }
    let reader = Reader { values };
    let rules: Result<_, _> = rules.iter().map(|form| reader.rule(form)).collect();
    Ok(Script { rules: rules? })
}

/// An expression of the profile language, and where it begins.
#[derive(Debug)]
struct Form<'a> {
    at: usize,
    what: FormKind<'a>,
}

#[derive(Debug)]
enum FormKind<'a> {
    Atom(&'a str),
    Text(&'a str),
    List(Vec<Form<'a>>),
}

impl<'a> Form<'a> {
    fn atom(&self) -> Option<&'a str> {
        match self.what {
            FormKind::Atom(atom) => Some(atom),
            FormKind::Text(_) | FormKind::List(_) => None,
        }
    }

    fn text(&self) -> Option<&'a str> {
        match self.what {
            FormKind::Text(text) => Some(text),
            FormKind::Atom(_) | FormKind::List(_) => None,
        }
    }

    fn list(&self) -> Option<&[Self]> {
        match &self.what {
            FormKind::List(forms) => Some(forms),
            FormKind::Atom(_) | FormKind::Text(_) => None,
        }
    }

    /// The first atom of a list, and what follows.
    fn call(&self) -> Option<(&'a str, &[Self])> {
        let (head, rest) = self.list()?.split_first()?;
        Some((head.atom()?, rest))
    }

    fn unknown(&self) -> ParseError {
        let what = match &self.what {
            FormKind::Atom(atom) => (*atom).to_owned(),
            FormKind::Text(text) => format!("\"{text}\""),
            FormKind::List(_) => self.call().map_or("(…)".to_owned(), |(atom, _)| format!("({atom} …)")),
        };
        ParseError::Unknown { at: self.at, what }
    }
}

/// Lists, atoms, plain strings and comments.
fn forms(text: &str) -> Result<Vec<Form<'_>>, ParseError> {
    let mut open: Vec<(usize, Vec<Form<'_>>)> = Vec::new();
    let mut forms = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let begin = at;
        let until = |stop: &dyn Fn(u8) -> bool| bytes[begin + 1..].iter().position(|&b| stop(b)).map(|n| begin + 1 + n);
        at += 1;
        let what = match byte {
            b' ' | b'\n' | b'\t' => continue,
            b';' => {
                at = until(&|b| b == b'\n').unwrap_or(bytes.len());
                continue;
            }
            b'(' => {
                if open.len() == DEEPEST {
                    return Err(ParseError::TooDeep(begin));
                }
                open.push((begin, std::mem::take(&mut forms)));
                continue;
            }
            b')' => {
                let (begin, outer) = open.pop().ok_or(ParseError::Unbalanced(begin))?;
                let inner = std::mem::replace(&mut forms, outer);
                forms.push(Form {
                    at: begin,
                    what: FormKind::List(inner),
                });
                continue;
            }
            b'"' => {
                let end = until(&|b| b == b'"').ok_or(ParseError::Unbalanced(begin))?;
                at = end + 1;
                let inside = &text[begin + 1..end];
                // Strings here need no escape, so a string with a backslash is refused.
                if let Some(bad) = inside.bytes().position(|b| !(b' '..=b'~').contains(&b) || b == b'\\') {
                    return Err(ParseError::Character(begin + 1 + bad));
                }
                FormKind::Text(inside)
            }
            b if is_atom(b) => {
                at = until(&|b| !is_atom(b)).unwrap_or(bytes.len());
                FormKind::Atom(&text[begin..at])
            }
            _ => return Err(ParseError::Character(begin)),
        };
        forms.push(Form { at: begin, what });
    }
    match open.last() {
        Some((begin, _)) => Err(ParseError::Unbalanced(*begin)),
        None => Ok(forms),
    }
}

const fn is_atom(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'*' | b'_')
}

struct Reader<'a> {
    values: HashMap<&'a str, &'a str>,
}

impl Reader<'_> {
    fn rule(&self, form: &Form<'_>) -> Result<Rule, ParseError> {
        let (verdict, rest) = match form.call() {
            Some(("allow", rest)) => (Verdict::Allow, rest),
            Some(("deny", rest)) => (Verdict::Deny, rest),
            _ => return Err(form.unknown()),
        };
        let atoms = rest.iter().take_while(|form| form.atom().is_some()).count();
        let (names, filters) = rest.split_at(atoms);
        if names.is_empty() {
            return Err(form.unknown());
        }
        let name = |form: &Form<'_>| form.atom().and_then(Name::find).ok_or_else(|| form.unknown());
        Ok(Rule {
            verdict,
            operations: names.iter().map(name).collect::<Result<_, _>>()?,
            filters: self.filters(filters)?,
        })
    }

    fn filters(&self, forms: &[Form<'_>]) -> Result<Vec<Filter>, ParseError> {
        forms.iter().map(|form| self.filter(form)).collect()
    }

    fn filter(&self, form: &Form<'_>) -> Result<Filter, ParseError> {
        let unknown = || form.unknown();
        let (atom, rest) = form.call().ok_or_else(unknown)?;
        let label = |label: fn(String) -> Label, text: &Form<'_>| {
            let text = text.text().ok_or_else(unknown)?;
            Ok(Filter::Label(label(text.to_owned())))
        };
        match (atom, rest) {
            ("require-all", [_, ..]) => Ok(Filter::All(self.filters(rest)?)),
            ("require-any", [_, ..]) => Ok(Filter::Any(self.filters(rest)?)),
            ("require-not", [inner]) => Ok(Filter::Not(Box::new(self.filter(inner)?))),
            ("literal" | "subpath" | "regex", [_]) => self.path_filter(form),
            ("vnode-type", [kind]) if kind.atom() == Some("DIRECTORY") => Ok(Filter::Directory),
            ("target", [which]) if which.atom() == Some("same-sandbox") => Ok(Filter::Target(Processes::SameSandbox)),
            ("socket-domain", [domain]) if domain.atom() == Some("AF_UNIX") => Ok(Filter::UnixFamily),
            ("global-name", [text]) => label(Label::Service, text),
            ("sysctl-name", [text]) => label(Label::Variable, text),
            ("sysctl-name-prefix", [text]) => label(Label::Variables, text),
            ("local" | "remote", [kind, address @ ..]) => {
                let end = if atom == "local" { End::Local } else { End::Remote };
                match (kind.atom(), address) {
                    (Some("ip"), [all]) if all.text() == Some("*:*") => Ok(Filter::Internet(end)),
                    (Some("unix-socket"), []) => Ok(Filter::Unix(end, None)),
                    (Some("unix-socket"), [path_filter]) => {
                        Ok(Filter::Unix(end, Some(Box::new(self.path_filter(path_filter)?))))
                    }
                    _ => Err(unknown()),
                }
            }
            _ => Err(unknown()),
        }
    }

    /// `literal`, `subpath` or `regex`.
    fn path_filter(&self, form: &Form<'_>) -> Result<Filter, ParseError> {
        let Some((atom, [value])) = form.call() else {
            return Err(form.unknown());
        };
        let (parameter, text) = match (value.text(), value.call()) {
            (Some(text), _) => (None, text),
            (None, Some(("param", [name]))) => {
                let name = name.text().ok_or_else(|| form.unknown())?;
                let value = self.values.get(name).copied();
                (
                    Some(name.to_owned()),
                    value.ok_or_else(|| ParseError::Parameter(name.to_owned()))?,
                )
            }
            _ => return Err(form.unknown()),
        };
        let path = || {
            let path = AbsPath::new(text)
                .ok()
                .filter(|path| path.as_bytes() == text.as_bytes());
            path.ok_or_else(|| ParseError::Path(text.to_owned()))
        };
        match (atom, parameter) {
            ("literal", parameter) => Ok(Filter::Literal(PathArgument {
                parameter,
                path: path()?,
            })),
            ("subpath", parameter) => Ok(Filter::Subpath(PathArgument {
                parameter,
                path: path()?,
            })),
            ("regex", Some(parameter)) => {
                let regex = Regex::new(text).ok_or_else(|| ParseError::Regex(text.to_owned()))?;
                Ok(Filter::Regex(Expression { parameter, regex }))
            }
            _ => Err(form.unknown()),
        }
    }
}
