//! Each attempt, held against what was in force.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::idle::{is_idle, is_idle_question};
use super::standing::Standing;
use super::there::{Modes, Reached, reached};
use super::{Explained, Layer, Wanted};
use crate::confine::attempted::{Attempt, Attempted, Found};
use crate::policy::path::display;
use crate::policy::{AbsPath, Access, Network, Operation, UnixSockets};
use crate::profile::Call;
use crate::tools::inspect::backend::Readers;

/// The most denials that are told of.
const MOST: usize = 500;
/// How long the host is looked at, all attempts together.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is put before a name to ask about another one beside it, of which no clause speaks.
const BESIDE: &str = ".beside-";

/// A denial, not explained yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denial {
    /// Of something with a file.
    File {
        wanted: Wanted,
        path: AbsPath,
        /// The path that the clauses are asked about: another name beside it where its directory stood in the way.
        asked: AbsPath,
        by: Layer,
    },
    /// Of a socket with a path.
    Unix(AbsPath),
    /// Of an address.
    Address(SocketAddr),
    /// Of a call.
    Call { number: u32, arguments: [u64; 2] },
}

/// What was denied to a command that was permitted this call, and attempted this.
pub(in crate::tools) async fn explained(standing: Arc<Standing>, attempted: Attempted, call: Call) -> Explained {
    let Attempted { all, unseen } = attempted;
    let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
    // A file system that hangs keeps its thread, and nothing else.
    let looking = tokio::task::spawn_blocking(move || standing.explain(all));
    match tokio::time::timeout(PATIENCE, looking).await {
        Ok(Ok(Some(explained))) => Explained {
            unseen,
            call: Some(call),
            ..explained
        },
        Ok(Ok(None) | Err(_)) | Err(_) => Explained {
            unseen: unseen.saturating_add(count),
            call: Some(call),
            ..Explained::default()
        },
    }
}

impl Standing {
    fn explain(&self, all: Vec<(Attempt, u64)>) -> Option<Explained> {
        let denials = self.held()?.consult(|readers| {
            let denied = all.into_iter().map(|(attempt, times)| {
                let reached = match &attempt {
                    Attempt::File { want, path, found } => reached(path, *found, *want),
                    Attempt::Reach(_) | Attempt::Call { .. } => None,
                };
                (self.denial(readers, &attempt, reached), times)
            });
            let mut denials: Vec<(Denial, u64)> = Vec::new();
            let mut known: HashMap<(Wanted, String), usize> = HashMap::new();
            for (denial, times) in denied.filter_map(|(denial, times)| Some((denial?, times))) {
                let at = *known.entry(denial.key()).or_insert(denials.len());
                match denials.get_mut(at) {
                    Some((_, so_far)) => *so_far = so_far.saturating_add(times),
                    None => denials.push((denial, times)),
                }
            }
            denials
        });
        let denials = denials.ok()?;
        let more = denials.len().saturating_sub(MOST);
        let blocked = denials
            .into_iter()
            .take(MOST)
            .map(|(denial, times)| self.reasons(denial, times));
        Some(Explained {
            blocked: blocked.collect(),
            more: u64::try_from(more).unwrap_or(u64::MAX),
            unseen: 0,
            call: None,
        })
    }

    fn denial(&self, readers: &Readers<'_>, attempt: &Attempt, reached: Option<Reached>) -> Option<Denial> {
        match attempt {
            Attempt::File { .. } => {
                let reached = reached?;
                let path = AbsPath::new(&reached.path).ok()?;
                match reached.wanted {
                    _ if is_idle(&path) => None,
                    Wanted::Connect => self.denies_socket(readers, &path).then_some(Denial::Unix(path)),
                    _ => file(readers, &reached, &path),
                }
            }
            Attempt::Reach(address) => self.denies_address(*address).then_some(Denial::Address(*address)),
            Attempt::Call { number, arguments } => {
                let (number, arguments) = (*number, *arguments);
                (!is_idle_question(number, arguments)).then_some(Denial::Call { number, arguments })
            }
        }
    }

    fn denies_socket(&self, readers: &Readers<'_>, path: &AbsPath) -> bool {
        let denies = |operation| (readers.plan)(path).get(operation) == Access::Denied;
        match self.profile.unix_sockets {
            // Who makes no socket connects none; that is told of the socket.
            UnixSockets::None => false,
            UnixSockets::WithinRoots => denies(Operation::Write),
            UnixSockets::All => self.is_in_namespaces() && Operation::ALL.into_iter().all(denies),
        }
    }

    fn denies_address(&self, address: SocketAddr) -> bool {
        let is_own = match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.is_loopback() || ip.is_unspecified(),
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unspecified(),
        };
        match &self.profile.network {
            Network::Full => false,
            // In there the loopback is the command's own.
            Network::Off | Network::Hosts(_) => !is_own,
        }
    }
}

impl Denial {
    /// What two denials have in common that are told as one.
    fn key(&self) -> (Wanted, String) {
        match self {
            Self::File { wanted, path, .. } => (*wanted, display(path.as_path().as_os_str())),
            Self::Unix(path) => (Wanted::Connect, display(path.as_path().as_os_str())),
            Self::Address(address) => (Wanted::Connect, address.to_string()),
            Self::Call { number, arguments } => (Wanted::Call, format!("{number} {arguments:?}")),
        }
    }
}

/// The operation of a profile that something comes to; none for what no right is about.
pub(super) const fn operation(wanted: Wanted) -> Option<Operation> {
    match wanted {
        Wanted::Read => Some(Operation::Read),
        Wanted::List => Some(Operation::List),
        Wanted::Write | Wanted::Make | Wanted::Remove | Wanted::Link | Wanted::Attributes => Some(Operation::Write),
        Wanted::Execute => Some(Operation::Execute),
        Wanted::Look | Wanted::Connect | Wanted::Socket | Wanted::Call => None,
    }
}

fn file(readers: &Readers<'_>, reached: &Reached, path: &AbsPath) -> Option<Denial> {
    let (wanted, found) = (reached.wanted, reached.found);
    let denies = |asked: &AbsPath| {
        operation(wanted).is_some_and(|operation| (readers.plan)(asked).get(operation) == Access::Denied)
    };
    let wall = |asked: &AbsPath| {
        let mounts = readers.mounts.as_ref().zip(operation(wanted));
        let by_mounts = mounts.is_some_and(|(mounts, operation)| mounts(asked).get(operation) == Access::Denied);
        if by_mounts { Layer::Mounts } else { Layer::Landlock }
    };
    let by_name = |path: &AbsPath| {
        let beside = match wanted {
            // A name comes and goes by its directory.
            Wanted::Make | Wanted::Remove | Wanted::Link => beside(path),
            Wanted::Read
            | Wanted::List
            | Wanted::Write
            | Wanted::Execute
            | Wanted::Attributes
            | Wanted::Look
            | Wanted::Connect
            | Wanted::Socket
            | Wanted::Call => None,
        };
        let asked = [Some(path.clone()), beside]
            .into_iter()
            .flatten()
            .find(|asked| denies(asked));
        asked.map(|asked| (wall(&asked), asked))
    };
    let refusal = match found {
        Found::There if wanted == Wanted::Attributes => Some((Layer::Broker, path.clone())),
        Found::There => by_name(path),
        Found::Nothing if (readers.hides)(path) => Some((Layer::Mounts, path.clone())),
        Found::Absent | Found::Nothing if wanted == Wanted::Make => by_name(path),
        Found::Absent if (readers.hides)(path) => Some((Layer::Mounts, path.clone())),
        // It came to be after the command had missed it.
        Found::Absent | Found::Nothing => return None,
    };
    let lacking = || match reached.modes {
        Modes::Refuse => Some((Layer::Capabilities, path.clone())),
        Modes::Permit => None,
    };
    refusal.or_else(lacking).map(|(by, asked)| Denial::File {
        wanted,
        path: path.clone(),
        asked,
        by,
    })
}

/// Another name in the same directory that ends in the same way.
fn beside(path: &AbsPath) -> Option<AbsPath> {
    let mut name = std::ffi::OsString::from(BESIDE);
    name.push(path.name()?);
    path.parent()?.child(name)
}
