//! Each attempt, held against what was in force.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::answer::writing;
use super::command_result::CommandResult;
use super::denials::{Denial, Denials, by_directory};
use super::explained::{Explained, Layer, Wanted};
use super::forker_plan::ForkerPlan;
use super::host_path::{Modes, ResolvedAttempt, makes_devices, resolve_attempt};
use super::probes::{is_probe, is_probe_call};
use crate::config::amend::Writing;
use crate::confine::wire::attempted::{Attempt, Attempted, FileAccess, Found, Node};
use crate::policy::{AbsPath, Access, Network, Operation, UnixSockets};
use crate::profile::Call;
use crate::tools::checked_plan::PlanReaders;

const MAX_BLOCKED: usize = 500;
/// How long the host is looked at, all attempts together. Attempts beyond that are counted as unseen.
const TOTAL_TIME: Duration = Duration::from_secs(10);
/// How long a single attempt or reason may take: then its file system hangs.
const STALL_TIMEOUT: Duration = Duration::from_secs(20);
/// What is put before a name to ask about another one beside it, of which no clause speaks.
const SIBLING_PREFIX: &str = ".beside-";

/// What was denied to a command that was permitted this call, ended so, and attempted this.
pub(in crate::tools) async fn explained(
    forker_plan: Arc<ForkerPlan>,
    attempted: Attempted,
    call: Call,
    command_result: CommandResult,
) -> Explained {
    let Attempted {
        all,
        unexamined: unseen,
    } = attempted;
    let count = all.iter().fold(0u64, |count, (_, times)| count.saturating_add(*times));
    // A file system that hangs keeps its thread, and nothing else.
    let writing = writing(&call.approved_roots);
    let progress = Arc::new(AtomicU64::new(0));
    let steps = Arc::clone(&progress);
    let looking = tokio::task::spawn_blocking(move || forker_plan.explain(all, (writing, command_result), &steps));
    match wait_while_progressing(looking, &progress).await {
        Some(explained) => Explained {
            unseen: unseen.saturating_add(explained.unseen),
            call: Some(call),
            ..explained
        },
        None => Explained {
            unseen: unseen.saturating_add(count),
            call: Some(call),
            ..Explained::default()
        },
    }
}

/// What comes of the looking, for as long as its steps follow each other: a machine that is slow is waited for.
async fn wait_while_progressing(mut looking: JoinHandle<Option<Explained>>, steps: &AtomicU64) -> Option<Explained> {
    let mut before = None;
    loop {
        if let Ok(ended) = tokio::time::timeout(STALL_TIMEOUT, &mut looking).await {
            return ended.ok().flatten();
        }
        let now = Some(steps.load(Ordering::Relaxed));
        if now == before {
            return None;
        }
        before = now;
    }
}

impl ForkerPlan {
    fn explain(
        &self,
        all: Vec<(Attempt, u64)>,
        (writing, command_result): (Writing, CommandResult),
        steps: &AtomicU64,
    ) -> Option<Explained> {
        let until = Instant::now() + TOTAL_TIME;
        let mut unseen = 0u64;
        let denials = self.plan()?.with_readers(|readers| {
            let mut denials = Denials::default();
            for (attempt, times) in all {
                steps.fetch_add(1, Ordering::Relaxed);
                if Instant::now() >= until {
                    unseen = unseen.saturating_add(times);
                    continue;
                }
                for denial in self.denied(readers, &attempt, command_result) {
                    denials.add(denial, times);
                }
            }
            denials.all
        });
        let denials = denials.ok()?;
        let more = denials.len().saturating_sub(MAX_BLOCKED);
        let blocked = denials.into_iter().take(MAX_BLOCKED).map(|(denial, times)| {
            steps.fetch_add(1, Ordering::Relaxed);
            self.reasons(denial, times, writing)
        });
        Some(Explained {
            blocked: blocked.collect(),
            more: u64::try_from(more).unwrap_or(u64::MAX),
            unseen,
            ..Explained::default()
        })
    }

    fn denied(&self, readers: &PlanReaders<'_>, attempt: &Attempt, command_result: CommandResult) -> Vec<Denial> {
        let one = match attempt {
            Attempt::File { access, path, found } => resolve_attempt(path, *found, *access)
                .and_then(|resolve_attempt| self.file_denial(readers, &resolve_attempt, command_result)),
            Attempt::Node { node, path, found } => resolve_attempt(path, *found, FileAccess::Make)
                .and_then(|resolve_attempt| node_denied(readers, *node, &resolve_attempt)),
            Attempt::Exchange(pair) => {
                let sides = pair
                    .each_ref()
                    .map(|(path, found)| resolve_attempt(path, *found, FileAccess::Remove));
                let [Some(one), Some(other)] = sides else {
                    // Without both there is nothing to exchange, whoever asks.
                    return Vec::new();
                };
                let sides = [one, other].into_iter();
                return sides
                    .filter_map(|side| self.file_denial(readers, &side, command_result))
                    .collect();
            }
            Attempt::Reach(address) => self.denies_address(*address).then_some(Denial::Address(*address)),
            Attempt::Call { number, arguments } => {
                let (number, arguments) = (*number, *arguments);
                (!is_probe_call(number, arguments)).then_some(Denial::Call { number, arguments })
            }
        };
        one.into_iter().collect()
    }

    fn file_denial(
        &self,
        readers: &PlanReaders<'_>,
        resolve_attempt: &ResolvedAttempt,
        command_result: CommandResult,
    ) -> Option<Denial> {
        let path = AbsPath::new(&resolve_attempt.path).ok()?;
        match resolve_attempt.wanted {
            _ if is_probe(&path, command_result) => None,
            Wanted::Connect => self.denies_socket(readers, &path).then_some(Denial::Unix(path)),
            _ => file(readers, resolve_attempt, &path),
        }
    }

    fn denies_socket(&self, readers: &PlanReaders<'_>, path: &AbsPath) -> bool {
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

/// The name at which a plan denies something: that one, or another beside it.
fn denied_at(readers: &PlanReaders<'_>, wanted: Wanted, path: &AbsPath) -> Option<AbsPath> {
    let operation = operation(wanted)?;
    // A name comes and goes by its directory.
    let sibling = by_directory(wanted).then(|| sibling(path)).flatten();
    let mut paths = [Some(path.clone()), sibling].into_iter().flatten();
    paths.find(|checked_path| (readers.plan)(checked_path).get(operation) == Access::Denied)
}

fn file(readers: &PlanReaders<'_>, resolve_attempt: &ResolvedAttempt, path: &AbsPath) -> Option<Denial> {
    let (wanted, found) = (resolve_attempt.wanted, resolve_attempt.found);
    let layer = |checked_path: &AbsPath| {
        let mounts = readers.mounts.as_ref().zip(operation(wanted));
        let by_mounts = mounts.is_some_and(|(mounts, operation)| mounts(checked_path).get(operation) == Access::Denied);
        if by_mounts { Layer::Mounts } else { Layer::Landlock }
    };
    let by_name =
        |path: &AbsPath| denied_at(readers, wanted, path).map(|checked_path| (layer(&checked_path), checked_path));
    let refusal = match found {
        Found::There if wanted == Wanted::Attributes => Some((Layer::Broker, path.clone())),
        Found::There => by_name(path),
        Found::Nothing if (readers.hides)(path) => Some((Layer::Mounts, path.clone())),
        Found::Absent | Found::Nothing if wanted == Wanted::Make => by_name(path),
        Found::Absent if (readers.hides)(path) => Some((Layer::Mounts, path.clone())),
        // It came to be after the command had missed it.
        Found::Absent | Found::Nothing => return None,
    };
    let lacking = || match resolve_attempt.modes {
        Modes::Refuse => Some((Layer::Capabilities, path.clone())),
        Modes::Permit => None,
    };
    refusal.or_else(lacking).map(|(by, checked_path)| Denial::File {
        wanted,
        path: path.clone(),
        checked_path,
        by,
    })
}

/// The denial of a node that Landlock never lets be made, if it could be made here without Stockade.
fn node_denied(readers: &PlanReaders<'_>, node: Node, resolve_attempt: &ResolvedAttempt) -> Option<Denial> {
    match node {
        Node::Device if !makes_devices() => return None,
        Node::Device | Node::Whiteout => {}
    }
    let path = AbsPath::new(&resolve_attempt.path).ok()?;
    let by = match file(readers, resolve_attempt, &path) {
        Some(Denial::File { by: Layer::Mounts, .. }) => Layer::Mounts,
        // Landlock is asked before the modes are.
        _ => Layer::Landlock,
    };
    Some(Denial::Node { node, path, by })
}

/// Another name in the same directory that ends in the same way.
fn sibling(path: &AbsPath) -> Option<AbsPath> {
    let mut name = std::ffi::OsString::from(SIBLING_PREFIX);
    name.push(path.name()?);
    path.parent()?.child(name)
}
