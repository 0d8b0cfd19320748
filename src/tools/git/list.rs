//! Which settings are carried: those that are plain data.
//!
//! The list is that of protected names, of what is harmless in a repository, without what belongs to one repository or names
//! a remote: a URL may hold a password. It has more of what people set for themselves. What is not on it is left out, so all
//! that names a program, a credential, a hook or another place for a URL. Aliases are among that: they may run anything, and
//! who misses one is told so by git.

use crate::confine::protect::GitSetting;

/// Longest value that is carried, in bytes.
const LONGEST: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is plain.
    Plain,
    /// It is plain, and is a path.
    Path,
    /// It names a file that git reads as text.
    File,
    /// It includes a file.
    Include,
    /// It includes a file where a condition holds.
    IncludeIf,
    /// It is left out.
    LeftOut,
}

/// Files that git only reads, as lists, patterns or text.
const FILES: &[(&str, &str)] = &[
    ("core", "excludesfile"),
    ("core", "attributesfile"),
    ("commit", "template"),
    ("blame", "ignorerevsfile"),
    ("mailmap", "file"),
    ("diff", "orderfile"),
];

/// What is text for people, a name of an encoding, a pattern, a word; beside the list of protected names.
const TEXTS: &[(&str, &[&str])] = &[
    ("i18n", &["commitencoding", "logoutputencoding"]),
    ("pretty", &["*"]),
    ("format", &["pretty", "subjectprefix", "from"]),
    ("log", &["date", "excludedecoration"]),
    ("blame", &["date"]),
    ("core", &["commentstring", "notesref", "abbrev"]),
    ("notes", &["displayref", "rewriteref", "rewritemode", "mergestrategy"]),
    ("rebase", &["instructionformat"]),
    ("versionsort", &["suffix"]),
    ("diff", &["wordregex"]),
    ("safe", &["barerepository"]),
];

const PATTERNS: &[&str] = &["funcname", "xfuncname", "wordregex"];

/// What `git lfs install` sets, to the letter: its program, found in PATH, which holds inside what the sandbox grants.
/// Without them `git add` would store large files in the repository.
const LFS: &[(&str, &str)] = &[
    ("clean", "git-lfs clean -- %f"),
    ("smudge", "git-lfs smudge -- %f"),
    ("process", "git-lfs filter-process"),
    ("required", "true"),
];

pub(super) fn kind(setting: &GitSetting) -> Kind {
    let of = |text: &[u8]| std::str::from_utf8(text).unwrap_or_default().to_owned();
    let (section, key) = (of(&setting.section), of(&setting.key));
    let sub = setting.subsection.as_deref();
    if !is_text(&setting.value) || !sub.is_none_or(is_text) {
        return Kind::LeftOut;
    }
    match (section.as_str(), sub, key.as_str()) {
        ("include", None, "path") => return Kind::Include,
        ("includeif", Some(_), "path") => return Kind::IncludeIf,
        ("safe", None, "directory") => return Kind::Path,
        // An empty one names none.
        (section, None, key) if FILES.contains(&(section, key)) => return Kind::File,
        ("filter", Some(b"lfs"), key)
            if LFS
                .iter()
                .any(|(known, value)| *known == key && value.as_bytes() == setting.value) =>
        {
            return Kind::Plain;
        }
        _ => {}
    }
    let is_in = |list: &[(&str, &[&str])]| {
        let mut rows = list.iter().filter(|(of, _)| sub.is_none() && *of == section);
        rows.any(|(_, keys)| keys.contains(&"*") || keys.contains(&key.as_str()))
    };
    let is_pattern = section == "diff" && sub.is_some() && PATTERNS.contains(&key.as_str());
    if is_in(TEXTS) || is_pattern || (setting.is_harmless && !is_of_one_repository(&section, sub, &key)) {
        Kind::Plain
    } else {
        Kind::LeftOut
    }
}

/// What has no meaning for all repositories, leads somewhere, or only works with what is left out.
fn is_of_one_repository(section: &str, sub: Option<&[u8]>, key: &str) -> bool {
    match (section, sub) {
        ("extensions" | "lfs", _) | ("remote" | "submodule" | "branch" | "merge", Some(_)) => true,
        ("core", None) => matches!(key, "bare" | "repositoryformatversion"),
        ("user", None) => key == "signingkey",
        _ => false,
    }
}

/// Whether it is one line and within the limit.
fn is_text(value: &[u8]) -> bool {
    value.len() <= LONGEST && !value.iter().any(u8::is_ascii_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::protect::git_settings;

    fn of(text: &str) -> Kind {
        let (name, value) = text.split_once('=').unwrap();
        let (section, rest) = name.split_once('.').unwrap();
        let (header, key) = match rest.rsplit_once('.') {
            Some((sub, key)) => (format!("[{section} \"{sub}\"]"), key),
            None => (format!("[{section}]"), rest),
        };
        let all = git_settings(format!("{header}\n\t{key} = \"{value}\"\n").as_bytes()).unwrap();
        kind(&all[0])
    }

    #[test]
    fn plain_settings_are_carried() {
        for text in [
            "user.name=Ann \\\"X\\\" Example",
            "user.useConfigOnly=true",
            "init.defaultBranch=trunk",
            "core.autocrlf=input",
            "core.autocrlf=True",
            "core.eol=lf",
            "core.quotePath=off",
            "pull.rebase=merges",
            "push.default=current",
            "merge.conflictStyle=zdiff3",
            "diff.algorithm=histogram",
            "diff.x.xfuncname=^a",
            "rebase.autosquash=1",
            "color.diff.meta=yellow bold",
            "advice.detachedHead=false",
            "commit.verbose=true",
            "commit.gpgSign=false",
            "log.date=format:%c",
            "pretty.one=%h %s",
            "branch.sort=-committerdate",
            "column.ui=auto",
            "fetch.prune=true",
            "rerere.enabled=true",
            "i18n.commitEncoding=ISO-8859-1",
            "filter.lfs.clean=git-lfs clean -- %f",
        ] {
            assert_eq!(of(text), Kind::Plain, "{text}");
        }
    }

    #[test]
    fn what_names_a_program_a_credential_a_hook_or_another_place_is_left_out() {
        for text in [
            "commit.gpgSign=true",
            "user.signingKey=~/.ssh/id",
            "gpg.program=x",
            "gpg.format=ssh",
            "core.hooksPath=x",
            "core.editor=x",
            "core.pager=x",
            "core.sshCommand=x",
            "core.fsmonitor=x",
            "core.worktree=/x",
            "core.bare=true",
            "credential.helper=store",
            "credential.https://x.helper=store",
            "alias.x=!rm",
            "alias.co=checkout",
            "filter.lfs.clean=/tmp/git-lfs clean -- %f",
            "filter.x.clean=git-lfs clean -- %f",
            "diff.external=x",
            "diff.x.textconv=x",
            "merge.x.driver=x",
            "merge.x.name=x",
            "url.https://a/.insteadOf=b:",
            "remote.origin.url=https://token@host/",
            "http.proxy=http://user:word@host",
            "http.extraHeader=Authorization: x",
            "sendemail.smtpPass=x",
            "init.templateDir=/x",
            "user.name=a\\nb",
            "user.name=a\\bb",
            "unknown.key=true",
            "safe.other=x",
        ] {
            assert_eq!(of(text), Kind::LeftOut, "{text}");
        }
        let long = format!("user.name={}", "x".repeat(LONGEST + 1));
        assert_eq!(of(&long), Kind::LeftOut);
    }
}
