//! Messages over a socket.
//!
//! A frame is a length (four bytes, little endian) and that many bytes of postcard; descriptors ride
//! on its first byte. The parent treats every frame from the forker as hostile: lengths are capped
//! and anything that does not parse ends the session.

pub mod attempted;
pub(crate) mod busy_poll;
pub(crate) mod failure;
pub(crate) mod forker_for;
pub(crate) mod forker_location;
pub(crate) mod protected_names;
pub mod protocol;
pub(crate) mod refusal;

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest frame either side accepts: a plan with 20,000 rules is about 2 MiB.
pub const MAX_FRAME: usize = 16 * 1024 * 1024;
/// The most descriptors one frame carries.
pub const MAX_FDS: usize = 3;

/// Encodes a message as one frame.
pub fn encode<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut frame = postcard::to_extend(message, vec![0u8; 4]).map_err(io::Error::other)?;
    let length = frame.len() - 4;
    if length > MAX_FRAME {
        return Err(io::Error::other("message too large"));
    }
    let prefix = u32::try_from(length).map_err(io::Error::other)?.to_le_bytes();
    frame.iter_mut().zip(prefix).for_each(|(to, from)| *to = from);
    Ok(frame)
}

/// Decodes the body of a frame; trailing bytes are an error.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> io::Result<T> {
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(message),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "trailing bytes in a message",
        )),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    }
}

/// The body length a frame's prefix announces, if it is acceptable.
pub fn body_length(prefix: [u8; 4]) -> io::Result<usize> {
    let length = usize::try_from(u32::from_le_bytes(prefix)).map_err(io::Error::other)?;
    if length > MAX_FRAME {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a message announces too many bytes",
        ));
    }
    Ok(length)
}

/// Sends one message over a blocking socket, with descriptors on its first byte.
pub fn send<T: Serialize>(socket: impl AsFd, message: &T, fds: &[RawFd]) -> io::Result<()> {
    let frame = encode(message)?;
    let mut sent = 0;
    while let Some(rest) = frame.get(sent..).filter(|rest| !rest.is_empty()) {
        let rights = [ControlMessage::ScmRights(fds)];
        let control: &[ControlMessage<'_>] = if sent == 0 && !fds.is_empty() { &rights } else { &[] };
        match sendmsg::<UnixAddr>(
            socket.as_fd().as_raw_fd(),
            &[IoSlice::new(rest)],
            control,
            MsgFlags::MSG_NOSIGNAL,
            None,
        ) {
            Ok(n) => sent += n,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Receives one message from a blocking socket; `None` at end of file before its first byte.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut prefix = [0u8; 4];
    let mut fds = Vec::new();
    if !receive_exact(&socket, &mut prefix, &mut fds)? {
        return Ok(None);
    }
    let mut body = vec![0u8; body_length(prefix)?];
    if !body.is_empty() && !receive_exact(&socket, &mut body, &mut fds)? {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    decode(&body).map(|message| Some((message, fds)))
}

fn receive_exact(socket: &impl AsFd, mut buffer: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<bool> {
    let length = buffer.len();
    while !buffer.is_empty() {
        match receive_some(socket, buffer, fds) {
            Ok(0) if buffer.len() == length => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => buffer = buffer.get_mut(n..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(true)
}

/// One `recvmsg`: bytes into `buffer`, descriptors (close-on-exec) into `fds`.
pub fn receive_some(socket: &impl AsFd, buffer: &mut [u8], fds: &mut Vec<OwnedFd>) -> nix::Result<usize> {
    let mut space = nix::cmsg_space!([RawFd; MAX_FDS]);
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<UnixAddr>(
        socket.as_fd().as_raw_fd(),
        &mut slices,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = control {
            fds.extend(crate::confine::sys::adopt(&raw));
        }
    }
    Ok(message.bytes)
}
