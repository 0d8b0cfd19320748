//! What a command in namespaces could not find because nobody granted it, by its own words.
//!
//! Nothing is looked up on the host: whether there is anything at a path that a command names would tell it.

use std::path::Path;

use crate::policy::{AbsPath, Access, Operation};
use crate::profile::{FileReach, Profile};
use crate::tools::files::plain;
use crate::tools::session_directory::is_replaced;

/// How the C library, Python, Node.js, Rust and Go say ENOENT, and how shells and git do; in small letters.
const MISSING: [&str; 6] = [
    "no such file or directory",
    "enoent",
    "[errno 2]",
    "(os error 2)",
    ": not found",
    "does not exist",
];

pub(in crate::tools) struct VisiblePaths<'a> {
    profile: &'a Profile,
    /// Where it was started.
    directory: &'a AbsPath,
    /// Where its private directories are.
    session: &'a Path,
}

impl<'a> VisiblePaths<'a> {
    /// What a command sees that was permitted this and started there, by the forker of this session.
    pub(in crate::tools) const fn of(profile: &'a Profile, directory: &'a AbsPath, session: &'a Path) -> Self {
        Self {
            profile,
            directory,
            session,
        }
    }

    /// Whether something is said to be missing, and a path is named for it that is hidden from the command.
    pub(super) fn mentions_hidden_path(&self, text: &str) -> bool {
        text.lines()
            .filter(|line| {
                let line = line.to_ascii_lowercase();
                MISSING.iter().any(|missing| line.contains(missing))
            })
            .flat_map(words)
            .any(|word| self.hides(word))
    }

    /// Whether this is written as a path to where nothing is granted.
    pub(super) fn hides(&self, word: &str) -> bool {
        if !word.contains('/') {
            return false;
        }
        let path = plain(&self.directory.as_path().join(word));
        // What is missing in a place of the sandbox's own is the command's to make.
        let is_own = is_replaced(&path) || path.as_path().starts_with(self.session);
        let reach = self.profile.prepared()(&path);
        let is_granted = Operation::ALL
            .into_iter()
            .any(|operation| reach.get(operation) != Access::Denied);
        let leads_on = self.profile.grants.iter().any(|grant| grant.path.is_within(&path));
        !is_own && !is_granted && !leads_on
    }
}

/// The words of a line, as programs put paths into it.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let parts = |c: char| c.is_whitespace() || "'\"`‘’“”:,;=()[]<>".contains(c);
    // What is left of `https://host` is no path.
    line.split(parts).filter(|word| !word.starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Environment, Grant, Limits, Network, Origin, Rights, UnixSockets};

    #[test]
    fn only_what_is_missing_where_nothing_is_granted_is_missed() {
        let at = |path: &str| AbsPath::new(path).unwrap();
        let granted = |path| Grant::tree(at(path), Rights::READ, Origin::Builtin("test"));
        let profile = Profile {
            grants: vec![granted("/usr"), granted("/srv/work")],
            denies: Vec::new(),
            identities: std::collections::BTreeMap::new(),
            network: Network::Off,
            unix_sockets: UnixSockets::None,
            limits: Limits::default(),
            environment: Environment::default(),
        };
        let visible = VisiblePaths {
            profile: &profile,
            directory: &at("/srv/work/a"),
            session: Path::new("/run/user/1/session"),
        };
        for text in [
            "cat: /etc/shadow: No such file or directory",
            "cat: '/etc/shadow': No such file or directory",
            "x\n/bin/bash: line 1: ../../secret: No such file or directory\ny",
            "FileNotFoundError: [Errno 2] No such file or directory: '/srv/other'",
            "Error: ENOENT: no such file or directory, open '/srv/other'",
            "open /srv/other: no such file or directory",
            "Error: \"/srv/other\" (os error 2)",
            "sh: 1: /opt/x: not found",
            "fatal: repository '/srv/other' does not exist",
        ] {
            assert!(visible.mentions_hidden_path(text), "{text}");
        }
        for text in [
            "",
            "cat: x: No such file or directory",
            "cat: x/y: No such file or directory",
            "cat: ../b: No such file or directory",
            "cat: /srv/work/x: No such file or directory",
            "cat: /usr/x: No such file or directory",
            "ls: /srv: No such file or directory",
            "cat: /tmp/x: No such file or directory",
            "cat: /proc/1/x: No such file or directory",
            "cat: /run/user/1/session/home/x: No such file or directory",
            "/etc/shadow\ncat: x: No such file or directory",
            "https://example.org/x: not found",
            "sh: 1: prog: not found",
            "/etc/shadow is odd",
        ] {
            assert!(!visible.mentions_hidden_path(text), "{text}");
        }
    }
}
