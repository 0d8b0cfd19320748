//! A budget of open files for all proxies: half of the limit of the process.
//!
//! Half of the budget is reserved in shares, one for each proxy, which no other proxy can use; the other half is
//! first come, first served. A proxy that starts when all shares are taken has only the shared half.

use std::sync::{Arc, OnceLock};

use nix::sys::resource::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The files of one connection: the client's end and the server's.
const FILES_PER_CONNECTION: usize = 2;
/// The most connections that are reserved for one proxy.
const MOST_RESERVED: usize = 16;
/// The number of proxies with a full share.
const RESERVING_PROXIES: usize = 8;
/// The largest budget, in files.
const MAX_BUDGET: usize = 8192;
/// The limit to assume if it is unknown.
const DEFAULT_LIMIT: usize = 1024;

/// The budget of all proxies, in connections.
#[derive(Debug)]
pub(super) struct FileBudget {
    /// First come, first served.
    shared: Arc<Semaphore>,
    /// Available for reservations.
    reserved: Arc<Semaphore>,
    /// The share of each proxy.
    reserved_each: usize,
    /// The most that one proxy may use.
    most_each: usize,
}

/// The share of one proxy.
#[derive(Debug)]
pub(super) struct Share {
    own: Arc<Semaphore>,
    shared: Arc<Semaphore>,
    most: usize,
    _reserved: Option<OwnedSemaphorePermit>,
}

impl FileBudget {
    /// The budget of this process.
    pub(super) fn of_this_process() -> &'static Self {
        static FILES: OnceLock<FileBudget> = OnceLock::new();
        FILES.get_or_init(|| {
            let limit = getrlimit(Resource::RLIMIT_NOFILE);
            Self::within(limit.map_or(DEFAULT_LIMIT, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX)))
        })
    }

    /// The budget for a limit on open files.
    pub(super) fn within(limit: usize) -> Self {
        let connections = (limit / 2).clamp(2 * FILES_PER_CONNECTION, MAX_BUDGET) / FILES_PER_CONNECTION;
        let half = connections / 2;
        let reserved_each = (half / RESERVING_PROXIES).clamp(1, MOST_RESERVED);
        // The rest, too small for a share, is shared.
        let reserved = half - half % reserved_each;
        Self {
            shared: Arc::new(Semaphore::new(connections - reserved)),
            reserved: Arc::new(Semaphore::new(reserved)),
            reserved_each,
            most_each: half,
        }
    }

    /// Takes a share for a proxy with this many connections at most.
    pub(super) fn share(&self, connections: usize) -> Share {
        let most = connections.clamp(1, self.most_each);
        let reserved_each = self.reserved_each.min(most);
        let number = u32::try_from(reserved_each).unwrap_or(u32::MAX);
        let reserved = Arc::clone(&self.reserved).try_acquire_many_owned(number).ok();
        Share {
            own: Arc::new(Semaphore::new(reserved.as_ref().map_or(0, |_| reserved_each))),
            shared: Arc::clone(&self.shared),
            most,
            _reserved: reserved,
        }
    }
}

impl Share {
    /// The most connections at a time.
    pub(super) const fn most(&self) -> usize {
        self.most
    }

    /// Waits for one connection, from the own share or the shared half.
    pub(super) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        let (own, shared) = (Arc::clone(&self.own), Arc::clone(&self.shared));
        let room = tokio::select! {
            biased;
            own = own.acquire_owned() => own,
            shared = shared.acquire_owned() => shared,
        };
        room.ok()
    }

    /// Whether no connection is available now.
    pub(super) fn is_exhausted(&self) -> bool {
        self.own.available_permits() == 0 && self.shared.available_permits() == 0
    }
}
