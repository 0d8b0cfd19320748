//! Copies bytes in one direction, with backpressure.

use std::io;

use tokio::io::AsyncWriteExt as _;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::bounds::BUFFER;
use super::meter::{Meter, Way};

/// The first buffer size; it grows up to [`BUFFER`].
const FIRST: usize = 8 * 1024;

/// Which end failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// The source.
    Source,
    /// The sink.
    Sink,
}

/// Copies until the source ends, then shuts the sink down. Calls `inspect` with every piece before it is sent.
///
/// Has no buffer before the first byte, and at most one of [`BUFFER`] bytes.
pub(super) async fn pump(
    from: &ReadHalf<'_>,
    to: &mut WriteHalf<'_>,
    meter: &Meter,
    way: Way,
    mut inspect: impl FnMut(&[u8]),
) -> Result<(), Broken> {
    let mut buffer = Vec::new();
    loop {
        from.readable().await.map_err(|_| Broken::Source)?;
        if buffer.capacity() == 0 {
            buffer.reserve_exact(FIRST);
        }
        buffer.clear();
        match from.try_read_buf(&mut buffer) {
            Ok(0) => break,
            Ok(_) => {}
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => return Err(Broken::Source),
        }
        inspect(&buffer);
        send(to, &buffer, meter, way).await?;
        let room = buffer.capacity();
        if buffer.len() == room && room < BUFFER {
            buffer = Vec::with_capacity((room * 2).min(BUFFER));
        }
    }
    hang_up(to).await;
    Ok(())
}

/// Sends all bytes, and counts those that were sent.
pub(super) async fn send(to: &mut WriteHalf<'_>, mut bytes: &[u8], meter: &Meter, way: Way) -> Result<(), Broken> {
    while !bytes.is_empty() {
        let taken = to.write(bytes).await.map_err(|_| Broken::Sink)?;
        if taken == 0 {
            return Err(Broken::Sink);
        }
        meter.count(way, taken);
        bytes = bytes.get(taken..).unwrap_or_default();
    }
    Ok(())
}

/// Shuts down the write direction.
pub(super) async fn hang_up(to: &mut WriteHalf<'_>) {
    // The peer may be gone already.
    drop(to.shutdown().await);
}
