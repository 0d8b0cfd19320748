//! A profile text as a [`FileReach`]: which operations it permits on which path.

use super::operation::{self, Name};
use super::pattern::Shape;
use super::reader::{Expressions, Object, Reader, Semantics, Vnode, anchor};
use super::spelling::canonical_path;
use super::syntax::{Filter, Script};
use crate::policy::{AbsPath, Access, Operation};
use crate::profile::{FileReach, Landmarks, Reach};

/// The part of a text's permissions that a view answers about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// Reading, listing, changing and executing.
    Content,
    /// Moving an entry away; it is reported as writing.
    Moves,
    /// `stat`; it is reported as reading.
    Metadata,
    /// Unix sockets; use of one is reported as writing.
    Sockets,
}

/// A text that is asked about one aspect, under one semantics.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The text.
    pub reader: &'a Reader<'a>,
    /// The semantics of its rules.
    pub semantics: Semantics,
    /// The aspect.
    pub aspect: Aspect,
}

impl FileReach for View<'_> {
    fn name(&self) -> &'static str {
        "the Seatbelt profile"
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        let root = AbsPath::root();
        let filters = self.reader.rules().iter().flat_map(|rule| &rule.filters);
        filters.for_each(|filter| mark(landmarks, filter, &root));
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        Box::new(move |path| {
            let near = self.reader.near(Some(path));
            let permits = |names: &[Name], object: Object<'_>| {
                names
                    .iter()
                    .any(|&name| self.reader.decide(self.semantics, name, object, &near))
            };
            let (file, directory) = (Object::File(path, Vnode::File), Object::File(path, Vnode::Directory));
            let either = |names: &[Name]| permits(names, file) || permits(names, directory);
            let stat = [operation::METADATA, operation::EXISTENCE];
            Reach::of(|asked| {
                let permitted = match (self.aspect, asked) {
                    (Aspect::Content, Operation::Read) => permits(&operation::READS, file),
                    (Aspect::Content, Operation::List) => permits(&operation::LISTS, directory),
                    (Aspect::Content, Operation::Write) => either(&operation::WRITES),
                    (Aspect::Content, Operation::Execute) => permits(&operation::EXECUTES, file),
                    (Aspect::Moves, Operation::Write) => either(&[operation::UNLINK]),
                    (Aspect::Metadata, Operation::Read) => either(&stat),
                    (Aspect::Sockets, Operation::Write) => permits(&operation::SOCKETS, Object::Unix(path)),
                    (Aspect::Moves | Aspect::Metadata | Aspect::Sockets, _) => false,
                };
                if permitted { Access::Full } else { Access::Denied }
            })
        })
    }
}

/// The widest access that a text permits at a path under any semantics. The path is spelled as on the machine that the profile
/// was made on.
pub fn widest(script: &Script, operation: Operation, path: &AbsPath) -> Access {
    let reader = Reader::new(script, Expressions::Matched);
    // The kernel of a Mac spells some paths differently.
    let path = canonical_path(path);
    let readings = Semantics::ALL.into_iter().map(|semantics| {
        let view = View {
            reader: &reader,
            semantics,
            aspect: Aspect::Content,
        };
        view.access(operation, &path)
    });
    readings.max().unwrap_or(Access::Denied)
}

fn mark<'a>(landmarks: &mut Landmarks<'a>, filter: &'a Filter, around: &AbsPath) {
    match filter {
        Filter::Literal(argument) | Filter::Subpath(argument) => landmarks.path(&argument.path),
        Filter::Regex(expression) => match expression.regex.shape() {
            Shape::Ending(end) => landmarks.suffixes(around, &[end.clone()].into_iter().collect()),
            Shape::Names { pattern, .. } => landmarks.pattern(around, pattern),
            Shape::Other => {}
        },
        Filter::All(parts) => {
            let around = anchor(filter).unwrap_or(around);
            for part in parts {
                mark(landmarks, part, around);
            }
        }
        Filter::Any(parts) => parts.iter().for_each(|part| mark(landmarks, part, around)),
        Filter::Not(part) | Filter::Unix(_, Some(part)) => mark(landmarks, part, around),
        Filter::Directory
        | Filter::Target(_)
        | Filter::Label(_)
        | Filter::Internet(_)
        | Filter::Unix(_, None)
        | Filter::UnixFamily => {}
    }
}
