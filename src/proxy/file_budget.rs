//! The files that proxies may have open: half of what the process may open, and some of them kept for each.
//!
//! Whatever the others take, a proxy has the connections that are kept for it. There are so many of those as fit in one
//! half of the files; the other half is whoever's comes first. A proxy that comes when all are given has none of its own,
//! and waits with everybody for those.

use std::sync::{Arc, OnceLock};

use nix::sys::resource::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many files a connection may open: the client's end, and the server's.
const EACH: usize = 2;
/// The most connections that are kept for one proxy.
const KEPT: usize = 16;
/// For how many proxies some are kept, where there are few; for more, where there are many.
const KEEPERS: usize = 8;
/// The most files of all proxies, however many the process may open.
const MOST: usize = 8192;
/// As many files as a process usually may open.
const USUAL: usize = 1024;

/// The files of all proxies, counted in connections.
#[derive(Debug)]
pub(super) struct Files {
    /// Whoever's comes first.
    shared: Arc<Semaphore>,
    /// To be kept for those that come.
    kept: Arc<Semaphore>,
    /// How many are kept for each.
    kept_each: usize,
    /// The most of one, so that the others have room too.
    most_each: usize,
}

/// The files of one proxy, for as long as it lives.
#[derive(Debug)]
pub(super) struct Share {
    own: Arc<Semaphore>,
    shared: Arc<Semaphore>,
    most: usize,
    _kept: Option<OwnedSemaphorePermit>,
}

impl Files {
    /// Those of this process.
    pub(super) fn of_this_process() -> &'static Self {
        static FILES: OnceLock<Files> = OnceLock::new();
        FILES.get_or_init(|| {
            let limit = getrlimit(Resource::RLIMIT_NOFILE);
            Self::within(limit.map_or(USUAL, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX)))
        })
    }

    /// Those of a process that may open so many.
    pub(super) fn within(limit: usize) -> Self {
        let connections = (limit / 2).clamp(2 * EACH, MOST) / EACH;
        let half = connections / 2;
        let kept_each = (half / KEEPERS).clamp(1, KEPT);
        // What is too little for one more is everybody's.
        let kept = half - half % kept_each;
        Self {
            shared: Arc::new(Semaphore::new(connections - kept)),
            kept: Arc::new(Semaphore::new(kept)),
            kept_each,
            most_each: half,
        }
    }

    /// The share of another proxy that wants so many connections at a time.
    pub(super) fn share(&self, wanted: usize) -> Share {
        let most = wanted.clamp(1, self.most_each);
        let kept_each = self.kept_each.min(most);
        let number = u32::try_from(kept_each).unwrap_or(u32::MAX);
        let kept = Arc::clone(&self.kept).try_acquire_many_owned(number).ok();
        Share {
            own: Arc::new(Semaphore::new(kept.as_ref().map_or(0, |_| kept_each))),
            shared: Arc::clone(&self.shared),
            most,
            _kept: kept,
        }
    }
}

impl Share {
    /// The most connections at a time.
    pub(super) const fn most(&self) -> usize {
        self.most
    }

    /// Room for one connection, as soon as there is any: its own first, then by turns.
    pub(super) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        let (own, shared) = (Arc::clone(&self.own), Arc::clone(&self.shared));
        let room = tokio::select! {
            biased;
            own = own.acquire_owned() => own,
            shared = shared.acquire_owned() => shared,
        };
        room.ok()
    }

    /// Whether there is none now.
    pub(super) fn is_used_up(&self) -> bool {
        self.own.available_permits() == 0 && self.shared.available_permits() == 0
    }
}
