//! Whether a trusted commit, or one that it goes back to, has a path as it is now.

use std::collections::{HashSet, VecDeque};

use super::id::Id;
use super::kind::Kind;
use super::objects::Objects;

/// Commits that are looked at for one answer.
const MOST_COMMITS: usize = 20_000;
/// How far HEAD's own line is followed to what is trusted.
const MAX_FIRST_PARENTS: usize = 256;
/// Parents of one commit that count; more than a person merges at once.
const MOST_PARENTS: usize = 64;

/// What is at a path of a work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Current {
    /// A file with the content of this blob.
    File { blob: Id, is_executable: bool },
    /// A directory; its entries have queries of their own.
    Directory,
    /// Nothing.
    Absent,
    /// Something that never stays.
    Other,
}

/// A query for one path.
#[derive(Debug)]
pub(super) struct Query {
    /// Its components, from the top of the work tree.
    pub(super) path: Vec<Vec<u8>>,
    pub(super) now: Current,
    /// The file that would be put back.
    pub(super) before: Option<Id>,
    /// Whether it is a file that would be put back, or taken away.
    pub(super) is_file: bool,
}

/// The answer for one path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// A trusted commit has it so.
    pub(super) may_stay: bool,
    /// HEAD has something there that is not what would be put back.
    pub(super) is_other_in_head: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreeEntry {
    Entry { mode: u32, id: Id },
    Absent,
    Unreadable,
}

struct Commit {
    tree: Id,
    parents: Vec<Id>,
}

/// The answers, in the order of the questions. `tips` are trusted; `head` is whatever HEAD names now.
pub(super) fn answer(objects: &mut Objects, tips: &[Id], head: Option<Id>, queries: &[Query]) -> Vec<Answer> {
    let mut answers = vec![Answer::default(); queries.len()];
    let first_parents = first_parents(objects, tips, head);
    let in_head = first_parents.first().map(|(_, commit)| commit.tree);
    for (query, answer) in queries.iter().zip(&mut answers) {
        if let Some(tree) = in_head
            && query.is_file
            && let TreeEntry::Entry { id, .. } = lookup(objects, tree, &query.path)
        {
            answer.is_other_in_head = query.before != Some(id);
        }
    }
    // Where HEAD's line meets what is trusted, HEAD comes from there: most answers are found at once.
    let meeting = first_parents.iter().find(|(id, _)| tips.contains(id));
    let mut queue: VecDeque<Id> = meeting.iter().map(|(id, _)| *id).collect();
    // What was trusted last is what people work on.
    queue.extend(tips.iter().rev());
    let can_stay = |number: &usize| queries[*number].now != Current::Other;
    let mut open: Vec<usize> = (0..queries.len()).filter(can_stay).collect();
    let (mut visited, mut trees) = (HashSet::new(), HashSet::new());
    let mut proofs: Vec<RemovalProof> = queries.iter().map(RemovalProof::of).collect();
    while let Some(id) = queue.pop_front()
        && !open.is_empty()
        && visited.len() < MOST_COMMITS
    {
        if !visited.insert(id) {
            continue;
        }
        let Some(commit) = commit(objects, id, &mut queue) else {
            continue;
        };
        let is_of_head = head == Some(id) || meeting.is_some_and(|(meeting, _)| *meeting == id);
        if trees.insert(commit.tree) || is_of_head {
            open.retain(|number| {
                let head = in_head.filter(|_| is_of_head);
                let matches = matches(objects, &queries[*number], commit.tree, head, &mut proofs[*number]);
                answers[*number].may_stay = matches;
                !matches
            });
        }
        queue.extend(commit.parents);
    }
    answers
}

/// What is known of a path where nothing is any more: both must be so.
#[derive(Debug, Clone, Copy)]
struct RemovalProof {
    /// A trusted commit has what was there: nothing is lost, and git may have removed it.
    is_in_trusted: bool,
    /// HEAD is without it.
    is_absent_in_head: bool,
}

impl RemovalProof {
    fn of(query: &Query) -> Self {
        Self {
            is_in_trusted: !query.is_file,
            is_absent_in_head: false,
        }
    }
}

/// Whether the tree has what is there now. `head` is the tree of HEAD where this commit is HEAD, or HEAD comes from it.
fn matches(objects: &mut Objects, query: &Query, tree: Id, head: Option<Id>, removal: &mut RemovalProof) -> bool {
    match query.now {
        Current::File { blob, is_executable } => {
            let mode = if is_executable { 0o100_755 } else { 0o100_644 };
            lookup(objects, tree, &query.path) == TreeEntry::Entry { mode, id: blob }
        }
        Current::Directory => {
            matches!(
                lookup(objects, tree, &query.path),
                TreeEntry::Entry { mode: 0o40_000, .. }
            )
        }
        // Nearly every commit lacks something. Only the one that HEAD is, or comes from, says that a file is meant to be gone.
        Current::Absent => {
            let found = lookup(objects, tree, &query.path);
            removal.is_in_trusted |= matches!(found, TreeEntry::Entry { id, .. } if query.before == Some(id));
            removal.is_absent_in_head |= found == TreeEntry::Absent
                && head.is_some_and(|head| lookup(objects, head, &query.path) == TreeEntry::Absent);
            removal.is_in_trusted && removal.is_absent_in_head
        }
        Current::Other => false,
    }
}

/// HEAD and what it goes back to, by first parents, until one is trusted.
fn first_parents(objects: &mut Objects, tips: &[Id], head: Option<Id>) -> Vec<(Id, Commit)> {
    let mut first_parents = Vec::new();
    let mut next = head;
    while let Some(id) = next
        && first_parents.len() < MAX_FIRST_PARENTS
    {
        let Some(commit) = commit(objects, id, &mut VecDeque::new()) else {
            break;
        };
        next = commit.parents.first().copied().filter(|_| !tips.contains(&id));
        first_parents.push((id, commit));
    }
    first_parents
}

/// Reads a commit; the target of a tag is queued.
fn commit(objects: &mut Objects, id: Id, queue: &mut VecDeque<Id>) -> Option<Commit> {
    let (kind, content) = objects.read(id)?;
    let mut lines = content.split(|byte| *byte == b'\n');
    let mut named = |keyword: &[u8]| Id::from_hex(lines.next()?.strip_prefix(keyword)?);
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
fn lookup(objects: &mut Objects, tree: Id, path: &[Vec<u8>]) -> TreeEntry {
    let mut at = TreeEntry::Entry {
        mode: 0o40_000,
        id: tree,
    };
    for name in path {
        let id = match at {
            TreeEntry::Entry { mode: 0o40_000, id } => id,
            // It is no directory, so it has no entries.
            TreeEntry::Entry { .. } => return TreeEntry::Absent,
            TreeEntry::Absent | TreeEntry::Unreadable => return at,
        };
        let Some((Kind::Tree, content)) = objects.read(id) else {
            return TreeEntry::Unreadable;
        };
        at = entry(&content, name, id.algorithm().width());
    }
    at
}

/// The entry of a tree with that name.
fn entry(tree: &[u8], name: &[u8], width: usize) -> TreeEntry {
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
            return TreeEntry::Unreadable;
        };
        if found == name {
            return TreeEntry::Entry { mode, id };
        }
        rest = behind;
    }
    TreeEntry::Absent
}
