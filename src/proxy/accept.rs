//! Takes connections in, and ends them all.

use std::io::{self, ErrorKind};
use std::net::TcpListener as BoundListener;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::bounds::Bounds;
use super::client;
use super::files::{Files, Share};
use super::gate::Gate;
use super::resolve::Resolve;

/// How long nobody is let in when the machine has no room for another connection.
const PAUSE: Duration = Duration::from_millis(50);

/// The proxy of one command. Stopped when it is dropped, but only [`stop`](Self::stop) waits for that.
#[derive(Debug)]
pub struct Proxy {
    tasks: TaskTracker,
    stop: DropGuard,
}

impl Proxy {
    /// Serves these sockets, on the runtime that it is called in.
    ///
    /// # Errors
    /// A socket cannot be waited for.
    pub fn start(
        listeners: Vec<BoundListener>,
        gate: Arc<dyn Gate>,
        resolver: Arc<dyn Resolve>,
        bounds: Bounds,
    ) -> io::Result<Self> {
        Self::start_within(Files::of_this_process(), listeners, gate, resolver, bounds)
    }

    /// The same, where all proxies together have these files.
    pub(super) fn start_within(
        files: &Files,
        listeners: Vec<BoundListener>,
        gate: Arc<dyn Gate>,
        resolver: Arc<dyn Resolve>,
        bounds: Bounds,
    ) -> io::Result<Self> {
        let listeners = listeners.into_iter().map(|listener| {
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        });
        let listeners = listeners.collect::<io::Result<Vec<_>>>()?;
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let share = files.share(bounds.connections);
        let served = Arc::new(Served {
            gate,
            resolver,
            bounds,
            places: Arc::new(Semaphore::new(share.most())),
            share,
            crowded: Notify::new(),
            stop: stop.clone(),
            tasks: tasks.clone(),
        });
        for listener in listeners {
            let served = Arc::clone(&served);
            tasks.spawn(async move {
                let stop = served.stop.clone();
                let _stopped = stop.run_until_cancelled(served.accept(listener)).await;
            });
        }
        Ok(Self {
            tasks,
            stop: stop.drop_guard(),
        })
    }

    /// Closes everything, and waits until every attempt is recorded.
    pub async fn stop(self) {
        drop(self.stop);
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// What all connections of a proxy share.
pub(super) struct Served {
    pub(super) gate: Arc<dyn Gate>,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) bounds: Bounds,
    pub(super) stop: CancellationToken,
    places: Arc<Semaphore>,
    share: Share,
    crowded: Notify,
    tasks: TaskTracker,
}

impl Served {
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    let Some(place) = self.place().await else { return };
                    let served = Arc::clone(&self);
                    self.tasks.spawn(async move {
                        client::serve(&served, stream, address).await;
                        drop(place);
                    });
                }
                // The socket was shut down: its command has ended.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Room for one more connection, as soon as there is any. Whoever comes meanwhile waits outside.
    async fn place(&self) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        if self.is_full() {
            self.crowded.notify_waiters();
        }
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some((place, self.share.room().await?))
    }

    /// Whether somebody may be waiting to be let in, so that whoever asks for nothing should make room.
    pub(super) fn is_full(&self) -> bool {
        self.places.available_permits() == 0 || self.share.is_used_up()
    }

    /// Returns when somebody waits to be let in.
    pub(super) async fn crowded(&self) {
        self.crowded.notified().await;
    }
}
