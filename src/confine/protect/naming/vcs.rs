//! What version control keeps in its own directories as data, as lists. Whatever else is made there is undone.
//!
//! The lists are of gitrepository-layout(5), of what git's commands leave while they are under way, and of the layouts of
//! Mercurial, Sapling and Jujutsu. A name that is not here may be one that the tool obeys: a hook, a setting, a way to another
//! repository. Nothing of these is a link or a pipe. [`verdict`] judges the few texts that are data or orders.

use super::super::gitconfig::judge::{self, Verdict};
use super::super::gitconfig::text::Config;
use super::super::violation::Keys;
use super::class::{Class, Kind, Layout, Role};
use super::names::{is_dot_git, same_name};

/// The kind of a listed name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListedName {
    /// A file of data.
    File,
    /// A text that may order commands.
    JudgedText,
    /// A link that is a lock: it names who holds it.
    Lock,
    /// A directory, and what is in it.
    Directory(Class),
}

/// Files that git writes as data. So is every name in capitals: a ref or a message (`FETCH_HEAD`, `MERGE_MSG`).
const GIT_FILES: &[&[u8]] = &[
    b"addp-hunk-edit.diff",
    b"description",
    b"gc.log",
    b"gc.pid",
    b"gitk.cache",
    b"index",
    b"locked",
    b"packed-refs",
    b"packed-refs.new",
    b"shallow",
];
/// The directory in which conflicts of notes are resolved.
const NOTES: &[u8] = b"NOTES_MERGE_WORKTREE";
/// How others begin, with a number of git's own choice behind that.
const GIT_TEMPORARY: &[&[u8]] = &[
    b"index.stash.",
    b"next-index-",
    b"shallow_",
    b"sharedindex.",
    b"sharedindex_",
];
/// Directories of data.
const GIT_DATA: &[&[u8]] = &[
    b"filter-repo",
    b"info",
    b"lfs",
    b"lost-found",
    b"objects",
    b"reftable",
    b"rr-cache",
];
/// The same of Mercurial and Sapling.
const HG_FILES: &[&[u8]] = &[
    b"00changelog.i",
    b"blackbox.log",
    b"bookmarks",
    b"bookmarks.current",
    b"branch",
    b"dirstate",
    b"fsmonitor.state",
    b"graftstate",
    b"histedit-state",
    b"last-message.txt",
    b"localtags",
    b"rebasestate",
    b"requires",
    b"thgstatus",
    b"unshelverebasestate",
    b"updatestate",
];
const HG_TEMPORARY: &[&[u8]] = &[b"dirstate.", b"dirstate-", b"journal.", b"undo."];
const HG_DATA: &[&[u8]] = &[
    b"cache",
    b"logexchange",
    b"merge",
    b"shelved",
    b"store",
    b"strip-backup",
    b"treestate",
    b"wcache",
];
/// The strategies that git has built in; any other is a program of that name, or at that path.
const STRATEGIES: &[&[u8]] = &[b"octopus", b"ort", b"ours", b"recursive", b"resolve", b"subtree"];

/// The list of a directory of this name, where it has one whatever it holds.
fn layout_of(name: &[u8]) -> Option<Layout> {
    match name {
        b".hg" | b".sl" => Some(Layout::Mercurial),
        b".jj" => Some(Layout::Jujutsu),
        _ => None,
    }
}

/// What git makes of an entry: its role, and its place if it is a directory to walk.
pub(crate) fn classify_in(class: Class, name: &[u8], kind: Kind) -> (Option<Role>, Option<Class>) {
    if let Class::Protected(role) = class {
        return (Some(role), Some(class));
    }
    if is_dot_git(name) {
        return match kind {
            Kind::Directory => (Some(Role::GitDirectory), Some(Class::Git)),
            Kind::Symlink | Kind::Other | Kind::Special => (Some(Role::GitLink), None),
        };
    }
    if let (Some(layout), Kind::Directory) = (layout_of(name), kind) {
        return (None, Some(Class::Listed(layout)));
    }
    let file = |role| match kind {
        Kind::Directory => (Some(role), Some(Class::Protected(role))),
        Kind::Symlink | Kind::Other | Kind::Special => (Some(role), None),
    };
    let directory = |class| match kind {
        Kind::Directory => (None, Some(class)),
        Kind::Symlink => (Some(Role::LinkOnPath), None),
        Kind::Other | Kind::Special => (None, None),
    };
    match (class, name) {
        (Class::Git, b"config" | b"config.worktree") => file(Role::GitConfig),
        (Class::Git, b"commondir") => file(Role::GitCommon),
        (Class::Git, b"gitdir") => file(Role::GitBacklink),
        (Class::Git, b"hooks") => file(Role::GitHook),
        (Class::Git, b"modules") => directory(Class::Modules),
        (Class::Git, b"worktrees") => directory(Class::Worktrees),
        // A submodule may be called `config`; only what could become a git directory's file counts here.
        (Class::Modules, b"config" | b"config.worktree") if kind != Kind::Directory => file(Role::GitConfig),
        (Class::Modules, b"commondir") if kind != Kind::Directory => file(Role::GitCommon),
        (Class::Modules, b"gitdir") if kind != Kind::Directory => file(Role::GitBacklink),
        (Class::Modules, _) => (None, Some(Class::Modules)),
        (Class::Worktrees, _) => (None, Some(Class::Git)),
        (Class::Git, _) => classify_listed(Layout::Git, name, kind),
        (Class::Listed(layout), _) => classify_listed(layout, name, kind),
        (Class::Data | Class::Refs, _) => classify_data(class, kind),
        (Class::Plain | Class::Protected(_), _) => (None, Some(Class::Plain)),
    }
}

/// What an entry of such a directory is: its role, and its place if it is a directory to walk.
fn classify_listed(layout: Layout, name: &[u8], kind: Kind) -> (Option<Role>, Option<Class>) {
    match (listed_name(layout, name), kind) {
        (Some(ListedName::File), Kind::Other) | (Some(ListedName::Lock), Kind::Symlink) => (None, None),
        (Some(ListedName::JudgedText), Kind::Other) => (Some(Role::JudgedText), None),
        (Some(ListedName::Directory(class)), Kind::Directory) => (None, Some(class)),
        // What is in one that was there is the business of the host's tool that made it.
        (_, Kind::Directory) => (Some(Role::Unlisted), Some(Class::Plain)),
        (_, Kind::Other | Kind::Symlink | Kind::Special) => (Some(Role::Unlisted), None),
    }
}

/// The same where everything is data.
fn classify_data(class: Class, kind: Kind) -> (Option<Role>, Option<Class>) {
    match kind {
        Kind::Directory => (None, Some(class)),
        Kind::Other => (None, None),
        Kind::Symlink | Kind::Special => (Some(Role::Unlisted), None),
    }
}

fn listed_name(layout: Layout, name: &[u8]) -> Option<ListedName> {
    let one_of = |names: &[&[u8]]| names.contains(&name);
    let begins = |names: &[&[u8]]| names.iter().any(|start| name.starts_with(start));
    let data = ListedName::Directory(Class::Data);
    match layout {
        Layout::Git => {
            let unlocked = name.strip_suffix(b".lock").unwrap_or(name);
            if GIT_FILES.contains(&unlocked) || (is_upper_case(unlocked) && name != NOTES) || begins(GIT_TEMPORARY) {
                Some(ListedName::File)
            } else if one_of(GIT_DATA) {
                Some(data)
            } else {
                match name {
                    b"logs" | b"refs" => Some(ListedName::Directory(Class::Refs)),
                    // The notes of a merge of notes, by the names of objects.
                    NOTES => Some(data),
                    b"sequencer" | b"rebase-merge" | b"rebase-apply" => {
                        Some(ListedName::Directory(Class::Listed(Layout::Steps)))
                    }
                    // Where Sapling works in a repository of git.
                    b"sl" => Some(ListedName::Directory(Class::Listed(Layout::Mercurial))),
                    b"branches" | b"remotes" => Some(ListedName::Directory(Class::Listed(Layout::Remotes))),
                    _ => None,
                }
            }
        }
        Layout::Steps => match name {
            b"git-rebase-todo" | b"strategy" | b"apply-opt" | b"opts" => Some(ListedName::JudgedText),
            b"refs" => Some(ListedName::Directory(Class::Refs)),
            _ => Some(ListedName::File),
        },
        Layout::Remotes => None,
        Layout::Mercurial if one_of(HG_FILES) || begins(HG_TEMPORARY) => Some(ListedName::File),
        Layout::Mercurial if one_of(HG_DATA) => Some(data),
        Layout::Mercurial => (name == b"wlock").then_some(ListedName::Lock),
        Layout::Jujutsu => match name {
            b".gitignore" => Some(ListedName::File),
            b"repo" => Some(ListedName::Directory(Class::Listed(Layout::JujutsuRepository))),
            b"working_copy" => Some(data),
            _ => None,
        },
        Layout::JujutsuRepository => match name {
            b"store" => Some(ListedName::Directory(Class::Listed(Layout::JujutsuStore))),
            b"index" | b"op_heads" | b"op_store" | b"submodule_store" => Some(data),
            _ => None,
        },
        Layout::JujutsuStore => match name {
            b"type" => Some(ListedName::File),
            b"git_target" => Some(ListedName::JudgedText),
            b"extra" => Some(data),
            b"git" => Some(ListedName::Directory(Class::Plain)),
            _ => None,
        },
    }
}

/// Whether git takes the name for a ref beside all others, or for a message.
fn is_upper_case(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-'))
}

/// Judges a text that may order commands: new orders are taken out.
pub(crate) fn verdict(name: &[u8], old: Option<&[u8]>, new: &[u8]) -> Verdict {
    if old == Some(new) {
        return Verdict::Harmless;
    }
    let all_or_nothing = |is_harmless: bool| {
        if is_harmless {
            Verdict::Harmless
        } else {
            Verdict::Unclear
        }
    };
    match name {
        b"git-rebase-todo" => of_todo(old.unwrap_or_default(), new),
        b"strategy" => all_or_nothing(STRATEGIES.contains(&new.trim_ascii())),
        b"opts" => all_or_nothing(is_harmless_opts(new)),
        b"apply-opt" => all_or_nothing(new.split(u8::is_ascii_whitespace).all(is_harmless_apply)),
        // Below the repository, or beside it.
        b"git_target" => all_or_nothing(matches!(new.trim_ascii(), b"git" | b"../../../.git")),
        _ if same_name(name, SUBMODULES) => judge::judge_modules(old, new),
        _ if is_version_file(name) => all_or_nothing(names_only_versions(new)),
        _ => Verdict::Unclear,
    }
}

/// The file that lists submodules: data, but for a few settings.
const SUBMODULES: &[u8] = b".gitmodules";
/// Files that say which Python is wanted: data, but uv runs what one names by its path.
const VERSIONS: [&[u8]; 2] = [b".python-version", b".python-versions"];

/// Whether a name of the table is that of a text which is data or orders.
pub(crate) fn is_judged_text(name: &[u8]) -> bool {
    same_name(name, SUBMODULES) || is_version_file(name)
}

fn is_version_file(name: &[u8]) -> bool {
    VERSIONS.iter().any(|one| same_name(name, one))
}

/// Whether a text names versions and no path.
fn names_only_versions(text: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'@' | b'+' | b':');
    lines(text).all(|line| line.starts_with(b"#") || line.trim_ascii().iter().all(is_plain))
}

/// Takes out new lines that run a command.
fn of_todo(old: &[u8], new: &[u8]) -> Verdict {
    let mut ordered: Vec<&[u8]> = lines(old).filter(|line| runs(line)).collect();
    let mut is_any = false;
    let left: Vec<&[u8]> = lines(new)
        .filter(|line| {
            if !runs(line) {
                return true;
            }
            let before = ordered.iter().position(|one| one == line);
            is_any |= before.is_none();
            before.map(|at| ordered.swap_remove(at)).is_some()
        })
        .collect();
    if !is_any {
        return Verdict::Harmless;
    }
    let mut named = Keys::default();
    named.add(b"exec".to_vec());
    Verdict::Filtered(left.concat(), named)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Whether a line of a list of steps runs a command.
fn runs(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let rest = line.strip_prefix(b"exec").or_else(|| line.strip_prefix(b"x"));
    rest.is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

fn is_harmless_opts(text: &[u8]) -> bool {
    let Some(config) = Config::read(text) else {
        return false;
    };
    config.settings.iter().all(|setting| {
        let value = setting.value.as_deref().unwrap_or_default();
        setting.plain && (setting.key != b"strategy" || STRATEGIES.contains(&value))
    })
}

/// Whether an option of `git apply`, quoted as git does, says only how lines are compared.
fn is_harmless_apply(option: &[u8]) -> bool {
    let option = option
        .strip_prefix(b"'")
        .and_then(|rest| rest.strip_suffix(b"'"))
        .unwrap_or(option);
    let is_number = |rest: &[u8]| rest.iter().all(u8::is_ascii_digit);
    let is_keyword = |rest: &[u8]| rest.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-');
    matches!(
        option,
        b"" | b"-3" | b"--3way" | b"--reject" | b"--ignore-whitespace" | b"--ignore-space-change" | b"--keep-non-patch"
    ) || option.strip_prefix(b"-C").is_some_and(is_number)
        || option.strip_prefix(b"-p").is_some_and(is_number)
        || option.strip_prefix(b"--whitespace=").is_some_and(is_keyword)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_a_command_is_taken_out_of_a_list_of_steps_and_what_was_there_stays() {
        let old = b"pick 1 a\nexec make\npick 2 b\n";
        let harmless = [
            (&b""[..], &b"pick 1 executes\n# exec\nexecute\nxy\nlabel x\n"[..]),
            (old, b"pick 2 b\nexec make\n"),
            (old, old),
            (old, b""),
        ];
        for (old, new) in harmless {
            assert_eq!(verdict(b"git-rebase-todo", Some(old), new), Verdict::Harmless);
        }
        for line in [
            "exec evil",
            "x evil",
            "  exec\tevil",
            "\tx evil\r",
            "exec make\nexec make",
            "x",
        ] {
            let new = [b"pick 1 a\n", line.as_bytes(), b"\npick 2 b\n"].concat();
            let Verdict::Filtered(left, named) = verdict(b"git-rebase-todo", Some(old), &new) else {
                panic!("{line}");
            };
            assert!(lines(&left).filter(|line| runs(line)).count() <= 1, "{line}");
            assert!(
                left.starts_with(b"pick 1 a\n") && left.ends_with(b"pick 2 b\n"),
                "{line}"
            );
            assert_eq!(named.names, [b"exec".to_vec()]);
        }
    }

    #[test]
    fn an_order_is_harmless_only_in_words_that_are_known() {
        let harmless: [(&[u8], &[u8]); 8] = [
            (b".python-version", b"3.12.1\n# newest\n"),
            (b".Python-Versions", b"cpython-3.12.1-linux\npypy@3.10+x\r\n"),
            (b"strategy", b"ort\n"),
            (b"opts", b"[options]\n\tstrategy = recursive\n\tmainline = 1\n"),
            (b"apply-opt", b"\n"),
            (b"apply-opt", b" '-p1' '--whitespace=fix' '-C3'\n"),
            (b"git_target", b"git"),
            (b"git_target", b"../../../.git"),
        ];
        for (name, text) in harmless {
            assert_eq!(verdict(name, None, text), Verdict::Harmless, "{}", text.escape_ascii());
        }
        let hostile: [(&[u8], &[u8]); 10] = [
            (b".python-version", b"3.12\n./bin/python\n"),
            (b".python-versions", b"/w/python"),
            (b".python-version", b"a b"),
            (b"strategy", b"../../evil\n"),
            (b"strategy", b""),
            (b"opts", b"[options]\n\tstrategy = evil\n"),
            (b"opts", b"[options\n"),
            (b"apply-opt", b" '--unsafe-paths'\n"),
            (b"apply-opt", b" '--directory=../x'\n"),
            (b"git_target", b"../../../../other/.git"),
        ];
        for (name, text) in hostile {
            assert_eq!(verdict(name, None, text), Verdict::Unclear, "{}", text.escape_ascii());
        }
    }
}
