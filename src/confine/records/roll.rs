//! Which process put on the layer of a command: it says so on a socket, and the kernel says which it is.
//!
//! Not who a message names counts but who sent it, in the numbers of whoever reads, even when the sender is gone
//! or in another PID namespace. What is sent is one byte without a meaning. No command has the sending end: it is closed by `execve`.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials, recvmsg, sendmsg,
    setsockopt, socketpair, sockopt,
};

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
pub(crate) fn sign(mark: impl AsFd) {
    let _signed = sendmsg::<UnixAddr>(
        mark.as_fd().as_raw_fd(),
        &[IoSlice::new(b".")],
        &[],
        MsgFlags::MSG_NOSIGNAL,
        None,
    );
}

impl Roll {
    /// The next process on it, if there is one.
    pub(super) fn called(&mut self) -> Option<libc::pid_t> {
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
                return Some(pid);
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
        sign(&mark);
        sign(&mark);
        let own = nix::unistd::getpid().as_raw();
        assert_eq!(roll.called(), Some(own));
        assert_eq!(roll.called(), Some(own));
        assert_eq!(roll.called(), None);
        drop(mark);
        assert_eq!(roll.called(), None);
    }
}
