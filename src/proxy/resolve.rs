//! Resolves names, once for each attempt, with bounds, and without the resolver's search list (resolv.conf(5)).

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::attempt::Failure;
use crate::policy::{Host, HostName};

/// The most concurrent lookups of this process. Each occupies a thread until the system's resolver returns.
const AT_ONCE: usize = 16;
/// The most concurrent lookups of one proxy.
const AT_ONCE_EACH: usize = 4;
/// The file that the system's resolver reads first.
const HOSTS_FILE: &str = "/etc/hosts";
/// The most bytes that are read of that file.
const HOSTS_BYTES: u64 = 1024 * 1024;

/// Pending addresses.
pub type Addresses<'a> = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, Failure>> + Send + 'a>>;

/// A resolver of host names.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a name, best first. Asked once for each attempt.
    fn resolve<'a>(&'a self, name: &'a HostName) -> Addresses<'a>;
}

/// The resolver of the machine: `/etc/hosts`, then what the C library asks. Each proxy has one of its own.
#[derive(Debug)]
pub struct SystemResolver {
    /// The time limit of a lookup, with its wait for a thread.
    time: Duration,
    /// The time limit of the wait for other lookups of the proxy.
    turn: Duration,
    hosts: PathBuf,
    own: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            turn: Duration::from_secs(30),
            hosts: HOSTS_FILE.into(),
            own: Arc::new(Semaphore::new(AT_ONCE_EACH)),
        }
    }
}

#[cfg(test)]
impl SystemResolver {
    /// A resolver with another file than `/etc/hosts`, and with these time limits.
    pub(super) fn reading(hosts: PathBuf, patience: Duration) -> Self {
        Self {
            time: patience,
            turn: patience,
            hosts,
            ..Self::default()
        }
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a HostName) -> Addresses<'a> {
        Box::pin(async move {
            let Ok(Ok(own)) = timeout(self.turn, Arc::clone(&self.own).acquire_owned()).await else {
                return Err(Failure::ResolveTime);
            };
            match timeout(self.time, look_up(own, self.hosts.clone(), name.clone())).await {
                Ok(Ok(found)) if !found.is_empty() => Ok(found),
                Ok(Ok(_) | Err(_)) => Err(Failure::NoAddress),
                Err(_late) => Err(Failure::ResolveTime),
            }
        })
    }
}

fn at_once() -> &'static Arc<Semaphore> {
    static AT_ONCE_NOW: OnceLock<Arc<Semaphore>> = OnceLock::new();
    AT_ONCE_NOW.get_or_init(|| Arc::new(Semaphore::new(AT_ONCE)))
}

async fn look_up(own: OwnedSemaphorePermit, hosts: PathBuf, name: HostName) -> io::Result<Vec<IpAddr>> {
    let permit = Arc::clone(at_once()).acquire_owned().await.map_err(io::Error::other)?;
    // A task of its own holds the permits: after the time limit the thread is still occupied.
    let task = tokio::spawn(async move {
        let _busy = (permit, own);
        let listed = tokio::task::spawn_blocking({
            let name = name.clone();
            move || listed(&hosts, &name)
        });
        let listed = listed.await.unwrap_or_default();
        if !listed.is_empty() {
            return Ok(listed);
        }
        // The dot at the end makes the name absolute, so the search list is not used.
        let found = tokio::net::lookup_host((format!("{name}."), 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    });
    task.await.map_err(io::Error::other)?
}

/// The addresses of a name in the file (hosts(5)). The C library does not find a name with a dot at its end there.
fn listed(hosts: &std::path::Path, name: &HostName) -> Vec<IpAddr> {
    use std::io::Read as _;
    let mut text = Vec::new();
    let read = std::fs::File::open(hosts).and_then(|file| file.take(HOSTS_BYTES).read_to_end(&mut text));
    // The C library ignores a missing file, too.
    if read.is_err() {
        return Vec::new();
    }
    let lines = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| str::from_utf8(line).ok());
    let found = lines.filter_map(|line| {
        let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
        let address: IpAddr = words.next()?.parse().ok()?;
        let is_named = words.any(|word| Host::parse(word).is_ok_and(|host| host == Host::Name(name.clone())));
        is_named.then_some(address)
    });
    found.collect()
}
