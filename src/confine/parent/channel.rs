//! The parent's end of a socket, on its runtime; [`wire`](crate::confine::wire) is the blocking one.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::confine::error::ConfineError;
use crate::confine::wire::{body_length, decode, encode, receive_some};

/// Our end of a socket, for this runtime.
pub(crate) fn registered(stream: StdUnixStream) -> Result<UnixStream, ConfineError> {
    stream.set_nonblocking(true).map_err(ConfineError::Channel)?;
    UnixStream::from_std(stream).map_err(ConfineError::Channel)
}

/// The next message, which must come without descriptors; `None` where the other side hung up between two.
pub(crate) async fn next_message<T: serde::de::DeserializeOwned>(
    stream: &UnixStream,
) -> Result<Option<T>, ConfineError> {
    match next_with_descriptors(stream).await? {
        Some((message, fds)) if fds.is_empty() => Ok(Some(message)),
        Some(_) => Err(ConfineError::Malformed),
        None => Ok(None),
    }
}

/// The next message with the descriptors that came along; `None` where the other side hung up between two.
pub(crate) async fn next_with_descriptors<T: serde::de::DeserializeOwned>(
    stream: &UnixStream,
) -> Result<Option<(T, Vec<OwnedFd>)>, ConfineError> {
    let mut fds = Vec::new();
    let mut prefix = [0u8; 4];
    match receive_exact(stream, &mut prefix, &mut fds).await {
        Ok(()) => {}
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
    receive_exact(stream, &mut body, &mut fds)
        .await
        .map_err(ConfineError::Channel)?;
    let message = decode(&body).map_err(|_| ConfineError::Malformed)?;
    Ok(Some((message, fds)))
}

async fn receive_exact(stream: &UnixStream, mut buffer: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<()> {
    while !buffer.is_empty() {
        stream.readable().await?;
        let done = stream.try_io(Interest::READABLE, || Ok(receive_some(stream, buffer, fds)?));
        match done {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = buffer.get_mut(count..).unwrap_or_default(),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends a message, with descriptors on its first byte.
pub(crate) async fn send<T: serde::Serialize>(
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
            // Reset: it ended with unread data.
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                return Err(ConfineError::ForkerDied);
            }
            Err(error) => return Err(ConfineError::Channel(error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UnixStream, UnixStream) {
        UnixStream::pair().unwrap()
    }

    fn descriptor() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    #[tokio::test]
    async fn a_message_comes_with_the_descriptors_that_were_sent() {
        let (ours, theirs) = pair();
        send(&theirs, &7u32, &[descriptor(), descriptor()]).await.unwrap();
        send(&theirs, &8u32, &[]).await.unwrap();
        let (message, fds) = next_with_descriptors::<u32>(&ours).await.unwrap().unwrap();
        assert_eq!((message, fds.len()), (7, 2));
        assert_eq!(next_message::<u32>(&ours).await.unwrap(), Some(8));
    }

    #[tokio::test]
    async fn a_message_with_unexpected_descriptors_is_malformed() {
        let (ours, theirs) = pair();
        send(&theirs, &7u32, &[descriptor()]).await.unwrap();
        let received = next_message::<u32>(&ours).await;
        assert!(matches!(received, Err(ConfineError::Malformed)), "{received:?}");
    }

    #[tokio::test]
    async fn an_end_between_two_messages_is_no_error_and_one_inside_is() {
        let (ours, theirs) = pair();
        drop(theirs);
        assert_eq!(next_message::<u32>(&ours).await.unwrap(), None);
        let (ours, theirs) = pair();
        // A length, and nothing of that length.
        assert_eq!(theirs.try_write(&4u32.to_le_bytes()).unwrap(), 4);
        drop(theirs);
        let received = next_message::<u32>(&ours).await;
        assert!(matches!(received, Err(ConfineError::Channel(_))), "{received:?}");
    }
}
