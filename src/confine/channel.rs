//! The parent's end of a socket, on its runtime; [`wire`](super::wire) is the blocking one.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;

use super::error::ConfineError;
use super::wire::{body_length, decode, encode};

/// Our end of a socket, for this runtime.
pub(super) fn registered(stream: StdUnixStream) -> Result<UnixStream, ConfineError> {
    stream.set_nonblocking(true).map_err(ConfineError::Channel)?;
    UnixStream::from_std(stream).map_err(ConfineError::Channel)
}

/// The next message; `None` where the other side hung up between two.
pub(super) async fn next_message<T: serde::de::DeserializeOwned>(
    reader: &mut (impl AsyncReadExt + Unpin),
) -> Result<Option<T>, ConfineError> {
    let mut prefix = [0u8; 4];
    match reader.read_exact(&mut prefix).await {
        Ok(_) => {}
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(ConfineError::Channel(error)),
    }
    let length = body_length(prefix).map_err(|_| ConfineError::Malformed)?;
    let mut body = vec![0u8; length];
    reader.read_exact(&mut body).await.map_err(ConfineError::Channel)?;
    decode(&body).map(Some).map_err(|_| ConfineError::Malformed)
}

/// Sends a message, with descriptors on its first byte.
pub(super) async fn send<T: serde::Serialize>(
    stream: &UnixStream,
    message: &T,
    fds: &[OwnedFd],
) -> Result<(), ConfineError> {
    let frame = encode(message).map_err(ConfineError::Channel)?;
    let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let mut sent = 0;
    while let Some(rest) = frame.get(sent..).filter(|rest| !rest.is_empty()) {
        stream.writable().await.map_err(ConfineError::Channel)?;
        let rights = [ControlMessage::ScmRights(&raw)];
        let control: &[ControlMessage<'_>] = if sent == 0 && !raw.is_empty() { &rights } else { &[] };
        let done = stream.try_io(Interest::WRITABLE, || {
            sendmsg::<UnixAddr>(
                stream.as_raw_fd(),
                &[IoSlice::new(rest)],
                control,
                MsgFlags::MSG_NOSIGNAL,
                None,
            )
            .map_err(io::Error::from)
        });
        match done {
            Ok(n) => sent += n,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) if error.raw_os_error() == Some(Errno::EPIPE as i32) => return Err(ConfineError::WorkerDied),
            Err(error) => return Err(ConfineError::Channel(error)),
        }
    }
    Ok(())
}
