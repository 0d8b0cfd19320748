//! What of the user's settings is left out and changes what a git command does, in one line.

use std::path::Path;

use super::bounds::Bounds;
use super::carried::Gathered;
use super::elsewhere::out_of_reach;
use super::files::GitFiles;
use crate::policy::path::{display, escape};
use crate::policy::shell::{arguments_of_argv, arguments_of_line};
use crate::policy::{AbsPath, HomeChoice, Network};
use crate::profile::Profile;
use crate::tools::call::ShellCommand;
use crate::tools::enforcement::short;
use crate::tools::session_policy::SessionPolicy;

/// The most names of one kind in the line.
const MAX_NAMES: usize = 3;

/// Settings that are missed, the commands that miss them, and what becomes of it.
struct Matter {
    is: fn(&str, &[u8]) -> bool,
    commands: &'static [&'static str],
    effect: &'static str,
    /// Whether it matters only where a network is reached.
    is_of_network: bool,
}

const COMMITS: &[&str] = &[
    "commit",
    "commit-tree",
    "merge",
    "rebase",
    "cherry-pick",
    "revert",
    "am",
    "pull",
];
const HOOKED: &[&str] = &[
    "commit",
    "merge",
    "rebase",
    "cherry-pick",
    "revert",
    "am",
    "pull",
    "push",
    "checkout",
    "switch",
    "worktree",
    "clone",
];
const FILTERED: &[&str] = &[
    "add",
    "commit",
    "checkout",
    "switch",
    "restore",
    "reset",
    "stash",
    "merge",
    "rebase",
    "cherry-pick",
    "revert",
    "am",
    "pull",
    "clone",
    "worktree",
    "submodule",
    "status",
    "diff",
    "archive",
];
const REMOTE: &[&str] = &["clone", "fetch", "pull", "push", "remote", "ls-remote", "submodule"];

const MATTERS: &[Matter] = &[
    Matter {
        is: |name, value| name == "commit.gpgsign" && is_true(value),
        commands: COMMITS,
        effect: "commits are not signed",
        is_of_network: false,
    },
    Matter {
        is: |name, value| matches!(name, "tag.gpgsign" | "tag.forcesignannotated") && is_true(value),
        commands: &["tag"],
        effect: "tags are not signed",
        is_of_network: false,
    },
    Matter {
        is: |name, _| name == "core.hookspath",
        commands: HOOKED,
        effect: "hooks are looked for in the repository",
        is_of_network: false,
    },
    Matter {
        is: |name, _| name == "init.templatedir",
        commands: &["init", "clone"],
        effect: "new repositories are made without it",
        is_of_network: false,
    },
    Matter {
        is: |name, value| {
            let is_filter =
                name.starts_with("filter.") && [".clean", ".smudge", ".process"].iter().any(|end| name.ends_with(end));
            is_filter && !(name.starts_with("filter.lfs.") && value.starts_with(b"git-lfs "))
        },
        commands: FILTERED,
        effect: "files are stored and checked out without it",
        is_of_network: false,
    },
    Matter {
        is: |name, _| name.starts_with("merge.") && name.ends_with(".driver"),
        commands: &[
            "merge",
            "rebase",
            "cherry-pick",
            "revert",
            "am",
            "pull",
            "stash",
            "checkout",
            "switch",
        ],
        effect: "files are merged as text",
        is_of_network: false,
    },
    Matter {
        is: |name, _| {
            let leads = name.starts_with("url.") && name.ends_with("insteadof");
            leads || (name.starts_with("credential.") && name.ends_with("helper")) || name == "core.sshcommand"
        },
        commands: REMOTE,
        effect: "remotes are reached without it",
        is_of_network: true,
    },
];

fn is_true(value: &[u8]) -> bool {
    ["true", "yes", "on", "1"]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

/// The git commands of a command: the word behind `git` and its options; `None` for a shell that a person types into.
fn called(command: &ShellCommand) -> Option<Vec<String>> {
    let all = match command {
        ShellCommand::Line(line) => arguments_of_line(line.to_str().unwrap_or_default(), "git"),
        ShellCommand::Argv(argv) => {
            let name = argv.first().map(Path::new).and_then(Path::file_name);
            let is_shell = name.is_some_and(|name| {
                ["sh", "bash", "dash", "zsh", "ksh", "fish"]
                    .iter()
                    .any(|shell| *shell == name)
            });
            let is_bare = argv.iter().skip(1).all(|word| {
                ["-i", "-l", "-il", "--login"]
                    .iter()
                    .any(|option| *option == word.as_os_str())
            });
            if is_shell && is_bare {
                return None;
            }
            arguments_of_argv(argv, "git")
        }
    };
    let subcommand = |words: Vec<String>| {
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" => {
                    words.next();
                }
                option if option.starts_with('-') => {}
                _ => return Some(word),
            }
        }
        None
    };
    Some(all.into_iter().filter_map(subcommand).collect())
}

/// The line for these settings and this command; `None` where nothing is missed.
fn line(git: &GitFiles, bounds: Bounds<'_>, command: &ShellCommand, directory: &Path) -> Option<String> {
    let called = called(command);
    // A shell can run any of them, where there is a repository.
    let is_any = called.is_none()
        && directory
            .ancestors()
            .any(|above| above.join(".git").symlink_metadata().is_ok());
    let called = called.unwrap_or_default();
    if called.is_empty() && !is_any {
        return None;
    }
    if let Some(why) = out_of_reach(directory, bounds.policy, bounds.profile) {
        return Some(why);
    }
    let gathered = Gathered::of(git, bounds, Path::new("/"), Some(directory));
    let has_network = match &bounds.profile.network {
        Network::Off => false,
        Network::Hosts(_) | Network::Full => true,
    };
    let mut lines = Vec::new();
    for matter in MATTERS {
        let is_called = is_any || called.iter().any(|one| matter.commands.contains(&one.as_str()));
        if !is_called || (matter.is_of_network && !has_network) {
            continue;
        }
        let matches = |(name, value): &(&Vec<u8>, &Vec<u8>)| {
            // The subsection is as it was written; nothing else of the name has other letters.
            std::str::from_utf8(name).is_ok_and(|name| (matter.is)(name, value))
        };
        let names: Vec<String> = gathered
            .last
            .iter()
            .filter(matches)
            .map(|(name, _)| format!("`{}`", short(&escape(name))))
            .collect();
        if !names.is_empty() {
            lines.push(format!(
                "{} does not hold in the sandbox, so {}",
                some(&names),
                matter.effect
            ));
        }
    }
    let unread: Vec<String> = gathered
        .unread
        .iter()
        .map(|(path, why)| format!("{} {why}", short(&display(path))))
        .collect();
    if !unread.is_empty() {
        lines.push(format!("not read: {}", some(&unread)));
    }
    (!lines.is_empty()).then(|| format!("your git settings: {}", lines.join("; ")))
}

fn some(all: &[String]) -> String {
    let more = all.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(
        "{}{more}",
        all.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ")
    )
}

/// What of the user's git settings a command under this profile misses, in one line.
pub(in crate::tools) fn missed(
    session: &SessionPolicy,
    settings: &GitFiles,
    command: &ShellCommand,
    directory: &AbsPath,
    profile: &Profile,
) -> Option<String> {
    match session.policy.home {
        HomeChoice::Private => {}
        // Git reads them itself, as far as it may.
        HomeChoice::Real => return None,
    }
    let bounds = Bounds {
        policy: &session.policy,
        envelope: &session.envelope,
        profile,
    };
    line(settings, bounds, command, directory.as_path())
}
