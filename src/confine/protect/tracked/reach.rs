//! Whether a trusted commit, or one that it goes back to, has a path as it is now.

use std::collections::{HashSet, VecDeque};

use super::id::Id;
use super::kind::Kind;
use super::objects::Objects;

/// Commits that are looked at for one answer.
const MOST_COMMITS: usize = 20_000;
/// How far HEAD's own line is followed to what is trusted.
const LONGEST_LINE: usize = 256;
/// Parents of one commit that count; more than a person merges at once.
const MOST_PARENTS: usize = 64;

/// What is at a path of a work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Now {
    /// A file with the content of this blob.
    File { blob: Id, is_executable: bool },
    /// A directory; what is in it is asked for by itself.
    Directory,
    /// Nothing.
    Absent,
    /// Something that never stays.
    Other,
}

/// What is asked of one path.
#[derive(Debug)]
pub(super) struct Question {
    /// The names on the way to it, from the top of the work tree.
    pub(super) path: Vec<Vec<u8>>,
    pub(super) now: Now,
    /// The file that would be put back.
    pub(super) before: Option<Id>,
    /// Whether it is a file that would be put back, or taken away.
    pub(super) is_file: bool,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// A trusted commit has it so.
    pub(super) may_stay: bool,
    /// HEAD has something there that is not what would be put back.
    pub(super) is_other_in_head: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Entry { mode: u32, id: Id },
    Nothing,
    Unreadable,
}

struct Commit {
    tree: Id,
    parents: Vec<Id>,
}

/// The answers, in the order of the questions. `tips` are trusted; `head` is whatever HEAD names now.
pub(super) fn answer(objects: &mut Objects, tips: &[Id], head: Option<Id>, questions: &[Question]) -> Vec<Answer> {
    let mut answers = vec![Answer::default(); questions.len()];
    let line = line(objects, tips, head);
    let in_head = line.first().map(|(_, commit)| commit.tree);
    for (question, answer) in questions.iter().zip(&mut answers) {
        if let Some(tree) = in_head
            && question.is_file
            && let Found::Entry { id, .. } = look(objects, tree, &question.path)
        {
            answer.is_other_in_head = question.before != Some(id);
        }
    }
    // Where HEAD's line meets what is trusted, HEAD comes from there: most answers are found at once.
    let met = line.iter().find(|(id, _)| tips.contains(id));
    let mut queue: VecDeque<Id> = met.iter().map(|(id, _)| *id).collect();
    // What was trusted last is what people work on.
    queue.extend(tips.iter().rev());
    let asks = |number: &usize| questions[*number].now != Now::Other;
    let mut open: Vec<usize> = (0..questions.len()).filter(asks).collect();
    let (mut seen, mut trees) = (HashSet::new(), HashSet::new());
    let mut proofs: Vec<Gone> = questions.iter().map(Gone::of).collect();
    while let Some(id) = queue.pop_front()
        && !open.is_empty()
        && seen.len() < MOST_COMMITS
    {
        if !seen.insert(id) {
            continue;
        }
        let Some(commit) = commit(objects, id, &mut queue) else {
            continue;
        };
        let is_of_head = head == Some(id) || met.is_some_and(|(met, _)| *met == id);
        if trees.insert(commit.tree) || is_of_head {
            open.retain(|number| {
                let head = in_head.filter(|_| is_of_head);
                let is_so = is_so(objects, &questions[*number], commit.tree, head, &mut proofs[*number]);
                answers[*number].may_stay = is_so;
                !is_so
            });
        }
        queue.extend(commit.parents);
    }
    answers
}

/// What is known of a path where nothing is any more: both must be so.
#[derive(Debug, Clone, Copy)]
struct Gone {
    /// A trusted commit has what was there: nothing is lost, and git may have removed it.
    is_kept: bool,
    /// HEAD is without it.
    is_meant: bool,
}

impl Gone {
    fn of(question: &Question) -> Self {
        Self {
            is_kept: !question.is_file,
            is_meant: false,
        }
    }
}

/// Whether the tree has what is there now. `head` is the tree of HEAD where this commit is HEAD, or HEAD comes from it.
fn is_so(objects: &mut Objects, question: &Question, tree: Id, head: Option<Id>, gone: &mut Gone) -> bool {
    match question.now {
        Now::File { blob, is_executable } => {
            let mode = if is_executable { 0o100_755 } else { 0o100_644 };
            look(objects, tree, &question.path) == Found::Entry { mode, id: blob }
        }
        Now::Directory => {
            matches!(look(objects, tree, &question.path), Found::Entry { mode: 0o40_000, .. })
        }
        // Nearly every commit lacks something. Only the one that HEAD is, or comes from, says that a file is meant to be gone.
        Now::Absent => {
            let there = look(objects, tree, &question.path);
            gone.is_kept |= matches!(there, Found::Entry { id, .. } if question.before == Some(id));
            gone.is_meant |= there == Found::Nothing
                && head.is_some_and(|head| look(objects, head, &question.path) == Found::Nothing);
            gone.is_kept && gone.is_meant
        }
        Now::Other => false,
    }
}

/// HEAD and what it goes back to, by first parents, until one is trusted.
fn line(objects: &mut Objects, tips: &[Id], head: Option<Id>) -> Vec<(Id, Commit)> {
    let mut line = Vec::new();
    let mut next = head;
    while let Some(id) = next
        && line.len() < LONGEST_LINE
    {
        let Some(commit) = commit(objects, id, &mut VecDeque::new()) else {
            break;
        };
        next = commit.parents.first().copied().filter(|_| !tips.contains(&id));
        line.push((id, commit));
    }
    line
}

/// A commit; what a tag names is queued.
fn commit(objects: &mut Objects, id: Id, queue: &mut VecDeque<Id>) -> Option<Commit> {
    let (kind, content) = objects.read(id)?;
    let mut lines = content.split(|byte| *byte == b'\n');
    let mut named = |word: &[u8]| Id::from_hex(lines.next()?.strip_prefix(word)?);
    match kind {
        Kind::Commit => {
            let tree = named(b"tree ")?;
            let parents = std::iter::from_fn(|| named(b"parent ")).take(MOST_PARENTS);
            Some(Commit {
                tree,
                parents: parents.collect(),
            })
        }
        Kind::Tag => {
            queue.extend(named(b"object "));
            None
        }
        Kind::Tree | Kind::Blob => None,
    }
}

/// What a tree has at a path.
fn look(objects: &mut Objects, tree: Id, path: &[Vec<u8>]) -> Found {
    let mut at = Found::Entry {
        mode: 0o40_000,
        id: tree,
    };
    for name in path {
        let id = match at {
            Found::Entry { mode: 0o40_000, id } => id,
            // Something else is in the way, so there is nothing behind it.
            Found::Entry { .. } => return Found::Nothing,
            Found::Nothing | Found::Unreadable => return at,
        };
        let Some((Kind::Tree, content)) = objects.read(id) else {
            return Found::Unreadable;
        };
        at = entry(&content, name, id.algorithm().width());
    }
    at
}

/// The entry of a tree with that name.
fn entry(tree: &[u8], name: &[u8], width: usize) -> Found {
    let mut rest = tree;
    while !rest.is_empty() {
        let parsed = rest.iter().position(|byte| *byte == 0).and_then(|end| {
            let (head, behind) = rest.split_at_checked(end)?;
            let space = head.iter().position(|byte| *byte == b' ')?;
            let mode = u32::from_str_radix(std::str::from_utf8(head.get(..space)?).ok()?, 8).ok()?;
            let (id, behind) = behind.get(1..)?.split_at_checked(width)?;
            Some((mode, head.get(space + 1..)?, Id::of(id)?, behind))
        });
        let Some((mode, found, id, behind)) = parsed else {
            return Found::Unreadable;
        };
        if found == name {
            return Found::Entry { mode, id };
        }
        rest = behind;
    }
    Found::Nothing
}
