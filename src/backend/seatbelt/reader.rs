//! What a text permits, answered from the text alone.
//!
//! The order in which the kernel applies rules is documented nowhere, and it has been seen to differ from "the last match
//! decides". So there are three semantics. Under *last match* the last rule that matches decides. *Pessimistic* ignores denies:
//! any allow decides whose filter matches and is not cut by a `require-not` of its own. *Trailing* is last match without
//! those inner cuts, so the denies alone must hold. A text is accepted when it is within the profile under all three.

use super::operation::{self, Name};
use super::pattern::Shape;
use super::syntax::{End, Filter, Label, Processes, Rule, Script, Verdict};
use crate::policy::AbsPath;
use crate::profile::index::Index;

/// The rule that decides where several match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Semantics {
    /// The last rule that matches decides.
    LastMatch,
    /// Any allow that matches decides.
    Pessimistic,
    /// The last rule that matches decides; a `require-not` inside an allow is ignored.
    Trailing,
}

impl Semantics {
    /// All semantics.
    pub const ALL: [Self; 3] = [Self::LastMatch, Self::Pessimistic, Self::Trailing];
}

/// The way in which expressions are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expressions {
    /// Each path is matched against the expression.
    Matched,
    /// Only the two exact shapes are evaluated. Any other expression is assumed to match in an allow, and not to match in a
    /// deny.
    Understood,
}

/// The kind of file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vnode {
    /// Anything but a directory.
    File,
    /// A directory.
    Directory,
}

/// The object of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object<'a> {
    /// A file or directory.
    File(&'a AbsPath, Vnode),
    /// A Unix socket at a path.
    Unix(&'a AbsPath),
    /// An internet address.
    Internet,
    /// The family of Unix sockets.
    UnixFamily,
    /// A process of the same sandbox.
    Inside,
    /// Any other process.
    Outside,
    /// A service of this name.
    Service(&'a str),
    /// A kernel variable of this name (sysctl(3)).
    Variable(&'a str),
}

impl<'a> Object<'a> {
    const fn path(self) -> Option<&'a AbsPath> {
        match self {
            Self::File(path, _) | Self::Unix(path) => Some(path),
            Self::Internet | Self::UnixFamily | Self::Inside | Self::Outside | Self::Service(_) | Self::Variable(_) => {
                None
            }
        }
    }
}

/// Whether a filter may match, and whether it must.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Match {
    may: bool,
    must: bool,
}

impl Match {
    const fn known(is: bool) -> Self {
        Self { may: is, must: is }
    }
}

/// Filters by the path they hold at.
#[derive(Debug, Default)]
struct Placed<'a> {
    at: Index<'a, &'a Filter>,
    anywhere: Vec<&'a Filter>,
}

impl<'a> Placed<'a> {
    fn add(&mut self, filter: &'a Filter) {
        match anchor(filter) {
            Some(path) => self.at.insert(path, filter),
            None => self.anywhere.push(filter),
        }
    }

    fn near(&self, object: Object<'_>) -> impl Iterator<Item = &'a Filter> {
        let placed = object.path().into_iter().flat_map(|path| self.at.above(path));
        placed.chain(&self.anywhere).copied()
    }
}

#[derive(Debug)]
struct Compiled<'a> {
    rule: &'a Rule,
    /// The filters of the rule; where its one filter is a `require-all`, the parts of that which must match.
    filters: Placed<'a>,
    /// The `require-not` parts of that `require-all`.
    cuts: Placed<'a>,
    /// Whether `cuts` has all of them. One that never surely matches is left out.
    complete: bool,
}

/// A text, indexed by path so that many questions are fast.
#[derive(Debug)]
pub struct Reader<'a> {
    script: &'a Script,
    expressions: Expressions,
    rules: Vec<Compiled<'a>>,
    /// Rules by the paths of their filters.
    placed: Index<'a, usize>,
    anywhere: Vec<usize>,
}

impl<'a> Reader<'a> {
    /// Indexes a text.
    pub fn new(script: &'a Script, expressions: Expressions) -> Self {
        let mut reader = Self {
            script,
            expressions,
            rules: Vec::with_capacity(script.rules.len()),
            placed: Index::default(),
            anywhere: Vec::new(),
        };
        for (number, rule) in script.rules.iter().enumerate() {
            let mut compiled = Compiled {
                rule,
                filters: Placed::default(),
                cuts: Placed::default(),
                complete: true,
            };
            for filter in &rule.filters {
                match anchor(filter) {
                    Some(path) => reader.placed.insert(path, number),
                    None => reader.anywhere.push(number),
                }
                match (rule.filters.as_slice(), filter) {
                    ([_], Filter::All(parts)) => {
                        for part in parts {
                            if let Filter::Not(cut) = part
                                && **cut != Filter::Directory
                            {
                                if reader.never_sure(cut) {
                                    compiled.complete = false;
                                } else {
                                    compiled.cuts.add(cut);
                                }
                            } else {
                                compiled.filters.anywhere.push(part);
                            }
                        }
                    }
                    _ if rule.verdict == Verdict::Deny && reader.never_sure(filter) => {}
                    _ => compiled.filters.add(filter),
                }
            }
            if rule.filters.is_empty() {
                reader.anywhere.push(number);
            }
            reader.rules.push(compiled);
        }
        reader
    }

    /// Whether one operation on one object is permitted.
    pub fn permits(&self, semantics: Semantics, name: Name, object: Object<'_>) -> bool {
        let near = self.near(object.path());
        self.decide(semantics, name, object, &near)
    }

    /// Its rules.
    pub(super) fn rules(&self) -> &'a [Rule] {
        &self.script.rules
    }

    /// Whether any rule allows one of the operations on any object.
    pub fn allows_any(&self, names: &[Name]) -> bool {
        let allows = |rule: &Rule| rule.verdict == Verdict::Allow;
        let speaks = |rule: &Rule| {
            rule.operations
                .iter()
                .any(|op| names.iter().any(|&name| op.covers(name)))
        };
        self.script.rules.iter().any(|rule| allows(rule) && speaks(rule))
    }

    /// The numbers of the rules that may match a path, the last rule first.
    pub(super) fn near(&self, path: Option<&AbsPath>) -> Vec<usize> {
        let placed = path.into_iter().flat_map(|path| self.placed.above(path));
        let mut near: Vec<usize> = placed.chain(&self.anywhere).copied().collect();
        near.sort_unstable_by(|a, b| b.cmp(a));
        near.dedup();
        near
    }

    /// The same as [`permits`](Self::permits), given the rules that may match the object.
    pub(super) fn decide(&self, semantics: Semantics, name: Name, object: Object<'_>, near: &[usize]) -> bool {
        let speaks = |rule: &Rule| rule.operations.iter().any(|operation| operation.covers(name));
        for compiled in near.iter().filter_map(|&number| self.rules.get(number)) {
            let rule = compiled.rule;
            // The default applies last, wherever it is written.
            if !speaks(rule) || rule.verdict == Verdict::Deny && rule.operations == [operation::DEFAULT] {
                continue;
            }
            let truth = self.speaks_of(compiled, semantics, object);
            match rule.verdict {
                Verdict::Allow if truth.may => return true,
                Verdict::Deny if truth.must && semantics != Semantics::Pessimistic => return false,
                Verdict::Allow | Verdict::Deny => {}
            }
        }
        // No rule matched: the default decides.
        let open = |rule: &Rule| rule.verdict == Verdict::Allow && rule.operations.contains(&operation::DEFAULT);
        self.script.rules.iter().any(open)
    }

    fn speaks_of(&self, compiled: &Compiled<'_>, semantics: Semantics, object: Object<'_>) -> Match {
        let heed = !(semantics == Semantics::Trailing && compiled.rule.verdict == Verdict::Allow);
        let ask = |filter: &Filter| self.matches(filter, object, heed);
        match compiled.rule.filters.as_slice() {
            [] => Match::known(true),
            [Filter::All(_)] => {
                let all = all(compiled.filters.near(object).map(ask));
                if !all.may || !heed {
                    return all;
                }
                let cut = any(compiled.cuts.near(object).map(ask));
                Match {
                    may: all.may && !cut.must,
                    must: all.must && !cut.may && compiled.complete,
                }
            }
            _ => any(compiled.filters.near(object).map(ask)),
        }
    }

    fn matches(&self, filter: &Filter, object: Object<'_>, heed: bool) -> Match {
        let is = Match::known;
        match (filter, object) {
            (Filter::Literal(argument), Object::File(path, _)) => is(argument.path == *path),
            (Filter::Subpath(argument), Object::File(path, _)) => is(path.is_within(&argument.path)),
            (Filter::Regex(expression), Object::File(path, _)) => match self.expressions {
                Expressions::Matched => expression
                    .regex
                    .matches(path)
                    .map_or(Match { may: true, must: false }, is),
                Expressions::Understood => match expression.regex.shape() {
                    shape @ Shape::Ending(_) => is(shape.matches(path) == Some(true)),
                    // An allow must assume that it matches; a deny may rely on it where it does.
                    shape @ Shape::Names { .. } => Match {
                        may: true,
                        must: shape.matches(path) == Some(true),
                    },
                    Shape::Other => Match { may: true, must: false },
                },
            },
            (Filter::Directory, Object::File(_, vnode)) => is(vnode == Vnode::Directory),
            (Filter::All(parts), _) => all(parts.iter().map(|part| self.matches(part, object, heed))),
            (Filter::Any(parts), _) => any(parts.iter().map(|part| self.matches(part, object, heed))),
            (Filter::Not(part), _) => {
                if !heed && **part != Filter::Directory {
                    return Match { may: true, must: false };
                }
                let Match { may, must } = self.matches(part, object, heed);
                Match { may: !must, must: !may }
            }
            (Filter::Target(Processes::SameSandbox), Object::Inside)
            | (Filter::Internet(_), Object::Internet)
            | (Filter::Unix(_, None), Object::Unix(_))
            | (Filter::UnixFamily, Object::UnixFamily) => is(true),
            (Filter::Unix(_, Some(argument)), Object::Unix(path)) => {
                self.matches(argument, Object::File(path, Vnode::File), heed)
            }
            (Filter::Label(Label::Service(known)), Object::Service(name))
            | (Filter::Label(Label::Variable(known)), Object::Variable(name)) => is(known == name),
            (Filter::Label(Label::Variables(begin)), Object::Variable(name)) => is(name.starts_with(begin.as_str())),
            (
                Filter::Literal(_)
                | Filter::Subpath(_)
                | Filter::Regex(_)
                | Filter::Directory
                | Filter::Target(_)
                | Filter::Label(_)
                | Filter::Internet(End::Local | End::Remote)
                | Filter::Unix(..)
                | Filter::UnixFamily,
                _,
            ) => is(false),
        }
    }

    /// Whether the filter is never known to match.
    fn never_sure(&self, filter: &Filter) -> bool {
        match filter {
            Filter::Regex(expression) => {
                self.expressions == Expressions::Understood && *expression.regex.shape() == Shape::Other
            }
            Filter::All(parts) => parts.iter().any(|part| self.never_sure(part)),
            Filter::Unix(_, Some(argument)) => self.never_sure(argument),
            Filter::Literal(_)
            | Filter::Subpath(_)
            | Filter::Directory
            | Filter::Any(_)
            | Filter::Not(_)
            | Filter::Target(_)
            | Filter::Label(_)
            | Filter::Internet(_)
            | Filter::Unix(_, None)
            | Filter::UnixFamily => false,
        }
    }
}

fn all(parts: impl Iterator<Item = Match>) -> Match {
    parts.fold(Match::known(true), |sum, part| Match {
        may: sum.may && part.may,
        must: sum.must && part.must,
    })
}

fn any(parts: impl Iterator<Item = Match>) -> Match {
    parts.fold(Match::known(false), |sum, part| Match {
        may: sum.may || part.may,
        must: sum.must || part.must,
    })
}

/// A path that is at or above every path that the filter matches.
pub(super) fn anchor(filter: &Filter) -> Option<&AbsPath> {
    match filter {
        Filter::Literal(argument) | Filter::Subpath(argument) => Some(&argument.path),
        Filter::Unix(_, Some(argument)) => anchor(argument),
        Filter::All(parts) => parts.iter().find_map(anchor),
        Filter::Regex(_)
        | Filter::Directory
        | Filter::Any(_)
        | Filter::Not(_)
        | Filter::Target(_)
        | Filter::Label(_)
        | Filter::Internet(_)
        | Filter::Unix(_, None)
        | Filter::UnixFamily => None,
    }
}
