//! The part of the profile language that is used here, as data, and how it is written.

use std::fmt;

use super::operation::Name;
use super::pattern::Regex;
use crate::policy::AbsPath;

/// A whole text: its rules, in order, after `(version 1)`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// The rules; the first should be `(deny default)`.
    pub rules: Vec<Rule>,
}

/// The verdict of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It permits.
    Allow,
    /// It forbids.
    Deny,
}

/// `(allow|deny OPERATION… FILTER…)`. It applies where any of its filters matches, or where it has no filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Whether it permits or forbids.
    pub verdict: Verdict,
    /// The operations.
    pub operations: Vec<Name>,
    /// The objects.
    pub filters: Vec<Filter>,
}

/// A path. The text names it by a parameter; only the base writes paths out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathArgument {
    /// The parameter.
    pub parameter: Option<String>,
    /// The path.
    pub path: AbsPath,
}

/// A regular expression, named by a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The parameter.
    pub parameter: String,
    /// The expression.
    pub regex: Regex,
}

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The end of this process.
    Local,
    /// The end of the peer.
    Remote,
}

/// A set of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processes {
    /// The processes of the same sandbox.
    SameSandbox,
}

/// Names of services and of kernel variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label {
    /// `(global-name "…")`: a service.
    Service(String),
    /// `(sysctl-name "…")`: a kernel variable.
    Variable(String),
    /// `(sysctl-name-prefix "…")`: kernel variables.
    Variables(String),
}

/// A condition on the object of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// This path.
    Literal(PathArgument),
    /// This path and everything below it.
    Subpath(PathArgument),
    /// Paths that an expression matches.
    Regex(Expression),
    /// Directories.
    Directory,
    /// Objects that match all of these.
    All(Vec<Self>),
    /// Objects that match any of these.
    Any(Vec<Self>),
    /// Objects that do not match this.
    Not(Box<Self>),
    /// Processes.
    Target(Processes),
    /// Services or kernel variables of this name.
    Label(Label),
    /// Internet sockets, at any address.
    Internet(End),
    /// Unix sockets: at a path that matches, or all of them.
    Unix(End, Option<Box<Self>>),
    /// The Unix family.
    UnixFamily,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(version 1)\n")?;
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}", self.verdict)?;
        self.operations.iter().try_for_each(|name| write!(f, " {name}"))?;
        let apart = if self.filters.len() > 1 { "\n  " } else { " " };
        self.filters
            .iter()
            .try_for_each(|filter| write!(f, "{apart}{filter}"))?;
        f.write_str(")")
    }
}

impl fmt::Display for PathArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parameter {
            Some(name) => write!(f, "(param \"{name}\")"),
            // Paths of the base need no escape.
            None => write!(f, "\"{}\"", self.path),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Remote => "remote",
        })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |f: &mut fmt::Formatter<'_>, word: &str, filters: &[Self]| {
            write!(f, "({word}")?;
            filters.iter().try_for_each(|filter| write!(f, " {filter}"))?;
            f.write_str(")")
        };
        match self {
            Self::Literal(argument) => write!(f, "(literal {argument})"),
            Self::Subpath(argument) => write!(f, "(subpath {argument})"),
            Self::Regex(expression) => write!(f, "(regex (param \"{}\"))", expression.parameter),
            Self::Directory => f.write_str("(vnode-type DIRECTORY)"),
            Self::All(filters) => many(f, "require-all", filters),
            Self::Any(filters) => many(f, "require-any", filters),
            Self::Not(filter) => write!(f, "(require-not {filter})"),
            Self::Target(Processes::SameSandbox) => f.write_str("(target same-sandbox)"),
            Self::Label(Label::Service(name)) => write!(f, "(global-name \"{name}\")"),
            Self::Label(Label::Variable(name)) => write!(f, "(sysctl-name \"{name}\")"),
            Self::Label(Label::Variables(name)) => write!(f, "(sysctl-name-prefix \"{name}\")"),
            Self::Internet(end) => write!(f, "({end} ip \"*:*\")"),
            Self::Unix(end, None) => write!(f, "({end} unix-socket)"),
            Self::Unix(end, Some(argument)) => write!(f, "({end} unix-socket {argument})"),
            Self::UnixFamily => f.write_str("(socket-domain AF_UNIX)"),
        }
    }
}
