//! The body of a request, read within bounds.

use std::pin::pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, Instant, timeout_at};

use super::Bounds;

/// How long the rest of a refused body is read, so that the client reads the answer before the connection closes.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyError {
    /// It is too large.
    TooLarge,
    /// It took too long.
    TooSlow,
    /// The connection broke, or the body is malformed.
    Broken,
}

/// Reads the body. A large one waits for a permit, and is returned with it.
pub(super) async fn read(
    body: Incoming,
    bounds: &Bounds,
    large: &Arc<Semaphore>,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), BodyError> {
    let mut body = pin!(body);
    let most = u64::try_from(bounds.body_bytes).unwrap_or(u64::MAX);
    if body.size_hint().lower() > most {
        linger(body.as_mut().get_mut()).await;
        return Err(BodyError::TooLarge);
    }
    let (mut bytes, mut large_permit) = (BytesMut::new(), None);
    let mut deadline = Instant::now() + bounds.body_time;
    loop {
        let frame = match timeout_at(deadline, body.frame()).await {
            Err(_) => return Err(BodyError::TooSlow),
            Ok(Some(Err(_))) => return Err(BodyError::Broken),
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
        };
        // Trailers say nothing here.
        let Ok(data) = frame.into_data() else { continue };
        let size = bytes.len().saturating_add(data.len());
        if size > bounds.body_bytes {
            linger(body.as_mut().get_mut()).await;
            return Err(BodyError::TooLarge);
        }
        if size > Bounds::SMALL_BODY && large_permit.is_none() {
            let waiting = Instant::now();
            // The semaphore is never closed.
            large_permit = Arc::clone(large).acquire_owned().await.ok();
            deadline += waiting.elapsed();
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes.freeze(), large_permit))
}

/// Reads and drops what the client still sends.
async fn linger(body: &mut Incoming) {
    let deadline = Instant::now() + LINGER_TIMEOUT;
    while let Ok(Some(Ok(_))) = timeout_at(deadline, body.frame()).await {}
}
