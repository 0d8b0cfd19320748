//! The body of a request, read within bounds.

use std::pin::pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, Instant, timeout_at};

use super::Bounds;

/// How long what is too much may still arrive, so that the answer is read before the connection goes.
const LINGERING: Duration = Duration::from_secs(2);

/// A body, and the leave to be as large as it is.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    pub(super) leave: Option<OwnedSemaphorePermit>,
}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// It has more bytes than a body may have.
    TooLarge,
    /// It took too long.
    TooSlow,
    /// The connection broke, or what came is no body.
    Broken,
}

/// Reads the body whole. A large one waits until there are few enough others.
pub(super) async fn read(body: Incoming, bounds: &Bounds, large: &Arc<Semaphore>) -> Result<Whole, Unread> {
    let mut body = pin!(body);
    let most = u64::try_from(bounds.body_bytes).unwrap_or(u64::MAX);
    if body.size_hint().lower() > most {
        linger(body.as_mut().get_mut()).await;
        return Err(Unread::TooLarge);
    }
    let (mut bytes, mut leave) = (BytesMut::new(), None);
    let mut deadline = Instant::now() + bounds.body_time;
    loop {
        let frame = match timeout_at(deadline, body.frame()).await {
            Err(_) => return Err(Unread::TooSlow),
            Ok(Some(Err(_))) => return Err(Unread::Broken),
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
        };
        // Trailers say nothing here.
        let Ok(data) = frame.into_data() else { continue };
        let size = bytes.len().saturating_add(data.len());
        if size > bounds.body_bytes {
            linger(body.as_mut().get_mut()).await;
            return Err(Unread::TooLarge);
        }
        if size > Bounds::SMALL_BODY && leave.is_none() {
            let waiting = Instant::now();
            // The semaphore is never closed.
            leave = Arc::clone(large).acquire_owned().await.ok();
            deadline += waiting.elapsed();
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Whole {
        bytes: bytes.freeze(),
        leave,
    })
}

/// Lets the client finish what it sends, and looks at none of it.
async fn linger(body: &mut Incoming) {
    let deadline = Instant::now() + LINGERING;
    while let Ok(Some(Ok(_))) = timeout_at(deadline, body.frame()).await {}
}
