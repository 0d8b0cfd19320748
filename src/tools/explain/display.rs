//! What was denied, in lines for a person.

use std::fmt;

use super::explained::{Blocked, Explained, Layer, Wanted};

/// The most that a person is shown; `--json` has all of it.
const SHOWN: usize = 30;

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::List => "list",
            Self::Write => "write",
            Self::Make => "make",
            Self::Remove => "remove",
            Self::Link => "link",
            Self::Execute => "execute",
            Self::Attributes => "change attributes of",
            Self::Look => "look at",
            Self::Connect => "connect",
            Self::Socket => "make a socket:",
            Self::Call => "call",
        })
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Landlock => "Landlock",
            Self::Mounts => "the mounts",
            Self::NetworkNamespace => "the network namespace",
            Self::Seccomp => "the system call filter",
            Self::Broker => "the attribute broker",
            Self::Capabilities => "the lack of capabilities",
        })
    }
}

impl Blocked {
    fn message(&self) -> String {
        let times = if self.times > 1 {
            format!(", {} times", self.times)
        } else {
            String::new()
        };
        let clause = match (&self.clause, &self.origin) {
            (Some(clause), Some(origin)) => format!("`{clause}` ({origin})"),
            (Some(clause), None) => format!("`{clause}`"),
            (None, _) => "nothing in the config grants it".to_owned(),
        };
        let mut told = format!(
            "denied: {} {} (by {}{times}): {clause}",
            self.wanted, self.what, self.by,
        );
        for change in &self.change {
            told.push_str("\n  → ");
            told.push_str(change);
        }
        for note in &self.notes {
            told.push_str("\n    ");
            told.push_str(note);
        }
        told
    }
}

impl Explained {
    /// What a person should know, an entry each; some have several lines.
    pub(crate) fn messages(&self) -> Vec<String> {
        let mut told: Vec<String> = self.blocked.iter().take(SHOWN).map(Blocked::message).collect();
        let left = u64::try_from(self.blocked.len().saturating_sub(SHOWN)).unwrap_or(u64::MAX);
        match left.saturating_add(self.more) {
            0 => {}
            left => told.push(format!("{left} more denials; `--json` lists up to 500")),
        }
        if self.unseen > 0 {
            told.push(format!("{} attempts were not looked at", self.unseen));
        }
        if self.blocked.is_empty() {
            told.push("nothing that was seen was denied".to_owned());
        }
        told
    }
}
