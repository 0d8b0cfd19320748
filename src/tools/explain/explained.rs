//! What was denied to a command, and why: the report.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::answer::Permitted;
use crate::policy::AbsPath;
use crate::profile::Call;

/// What was denied to a command, as far as somebody looked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Explained {
    /// What was denied, in the order in which it was first attempted.
    pub blocked: Vec<Blocked>,
    /// Denials that are not listed, because there are too many different ones.
    pub more: u64,
    /// Attempts that were not looked at: there were too many, whoever made them was gone, or the host was too slow to answer.
    pub unseen: u64,
    /// What the command was permitted; absent where nobody looked.
    #[serde(skip)]
    pub(crate) call: Option<Call>,
}

/// One thing that was denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Blocked {
    /// What was wanted.
    pub wanted: Wanted,
    /// Of what: a path, an address, a system call; escaped.
    pub what: String,
    /// How often.
    pub times: u64,
    /// What stood in the way.
    pub by: Layer,
    /// The clause that decides; absent where no clause speaks of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clause: Option<String>,
    /// Where that is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The smallest changes that would permit it; none where nothing would.
    pub change: Vec<String>,
    /// What else holds.
    pub notes: Vec<String>,
    /// What it is about, for whoever goes on from there.
    #[serde(skip)]
    pub(crate) subject: Subject,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A file: where the path leads, and whom the config permits it to.
    File(AbsPath, Permitted),
    /// A Unix socket with a path.
    UnixSocket(AbsPath),
    /// Making Unix sockets.
    UnixSockets,
    /// An address.
    Address(SocketAddr),
    /// Making sockets that leave the sandbox.
    IpSockets,
    /// Something that no config speaks of.
    Nothing,
}

/// What was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Wanted {
    /// The content of a file.
    Read,
    /// The names in a directory.
    List,
    /// To change the content of a file.
    Write,
    /// To make something under a name, or to move it there.
    Make,
    /// To remove a name, or to move it away.
    Remove,
    /// To give a file a name in another directory as well.
    Link,
    /// To run a program.
    Execute,
    /// To change mode, owner, times or extended attributes.
    Attributes,
    /// To know whether something is there.
    Look,
    /// To reach an address.
    Connect,
    /// To make a socket.
    Socket,
    /// A system call.
    Call,
}

impl Wanted {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::List => "list",
            Self::Write => "write",
            Self::Make => "make",
            Self::Remove => "remove",
            Self::Link => "link",
            Self::Execute => "execute",
            Self::Attributes => "attributes",
            Self::Look => "look",
            Self::Connect => "connect",
            Self::Socket => "socket",
            Self::Call => "call",
        }
    }
}

/// What stands in the way of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Layer {
    /// Landlock rules.
    Landlock,
    /// The mounts: it is not there in the namespace, or read-only.
    Mounts,
    /// A network namespace with nothing but a loopback.
    NetworkNamespace,
    /// System call filters.
    Seccomp,
    /// The broker of attribute changes.
    Broker,
    /// The capabilities that root does not have here: the modes of files bind it like anybody.
    Capabilities,
}

impl Layer {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Mounts => "mounts",
            Self::NetworkNamespace => "network_namespace",
            Self::Seccomp => "seccomp",
            Self::Broker => "broker",
            Self::Capabilities => "capabilities",
        }
    }
}

// What is on record and what `--json` says have one vocabulary.
impl Serialize for Wanted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for Layer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_one_that_the_schema_of_outcomes_has() {
        let schema = schemars::schema_for!(Explained).to_value().to_string();
        let wanted = [
            Wanted::Read,
            Wanted::List,
            Wanted::Write,
            Wanted::Make,
            Wanted::Remove,
            Wanted::Link,
            Wanted::Execute,
            Wanted::Attributes,
            Wanted::Look,
            Wanted::Connect,
            Wanted::Socket,
            Wanted::Call,
        ];
        let layers = [
            Layer::Landlock,
            Layer::Mounts,
            Layer::NetworkNamespace,
            Layer::Seccomp,
            Layer::Broker,
            Layer::Capabilities,
        ];
        let names = wanted.map(Wanted::name).into_iter().chain(layers.map(Layer::name));
        for name in names {
            assert!(schema.contains(&format!("\"{name}\"")), "{name}: {schema}");
        }
    }
}
