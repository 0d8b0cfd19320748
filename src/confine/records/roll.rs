//! Which processes put on a layer of a worker: each says so on a socket, and the kernel says which it is.
//!
//! Not who a message names counts but who sent it, in the numbers of whoever reads, even when the sender is gone
//! or in another PID namespace. What is sent is one byte: whether the sender will execute a program, which could make
//! domains under the same number. No command has the sending end: it is closed by `execve`.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials, recvmsg, sendmsg,
    setsockopt, socketpair, sockopt,
};

/// What becomes of a process that put on a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signer {
    /// It stays Stockade's own.
    Stays,
    /// It becomes a command.
    Executes,
}

impl Signer {
    const fn byte(self) -> u8 {
        match self {
            Self::Stays => b'.',
            Self::Executes => b'x',
        }
    }

    /// Whoever says anything else is taken for a command, of which less is believed.
    const fn of(byte: u8) -> Self {
        if byte == Self::Stays.byte() {
            Self::Stays
        } else {
            Self::Executes
        }
    }
}

/// The receiving end.
#[derive(Debug)]
pub(super) struct Roll(OwnedFd);

/// Both ends; neither blocks.
pub(super) fn pair() -> nix::Result<(Roll, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, flags)?;
    setsockopt(&ours, sockopt::PassCred, &true)?;
    Ok((Roll(ours), theirs))
}

/// Puts the calling process on the roll. Where that fails its records are not known for Stockade's, and nothing else is lost.
pub(crate) fn sign(mark: impl AsFd, signer: Signer) {
    let _signed = sendmsg::<UnixAddr>(
        mark.as_fd().as_raw_fd(),
        &[IoSlice::new(&[signer.byte()])],
        &[],
        MsgFlags::MSG_NOSIGNAL,
        None,
    );
}

impl Roll {
    /// The next process on it, if there is one.
    pub(super) fn called(&mut self) -> Option<(libc::pid_t, Signer)> {
        loop {
            let mut byte = [0];
            let mut slices = [IoSliceMut::new(&mut byte)];
            let mut space = nix::cmsg_space!(UnixCredentials);
            let message = recvmsg::<UnixAddr>(self.0.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::empty());
            let message = match message {
                Ok(message) => message,
                Err(Errno::EINTR) => continue,
                Err(_) => return None,
            };
            if message.bytes == 0 {
                return None;
            }
            let sender = message.cmsgs().ok()?.find_map(|control| match control {
                ControlMessageOwned::ScmCredentials(sender) => Some(sender.pid()),
                _ => None,
            });
            // Whoever has no number here is nobody whom a record could name.
            if let Some(pid) = sender.filter(|pid| *pid > 0) {
                let [byte] = byte;
                return Some((pid, Signer::of(byte)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_signed_is_known_once_for_each_time() {
        let (mut roll, mark) = pair().unwrap();
        assert_eq!(roll.called(), None);
        sign(&mark, Signer::Stays);
        sign(&mark, Signer::Executes);
        let own = nix::unistd::getpid().as_raw();
        assert_eq!(roll.called(), Some((own, Signer::Stays)));
        assert_eq!(roll.called(), Some((own, Signer::Executes)));
        assert_eq!(roll.called(), None);
        drop(mark);
        assert_eq!(roll.called(), None);
    }
}
