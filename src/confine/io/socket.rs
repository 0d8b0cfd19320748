//! A stream of the caller's that is a socket, read and written without `O_NONBLOCK`: each call says for itself that it
//! does not wait ([`recv(2)`](https://man7.org/linux/man-pages/man2/recv.2.html), `MSG_DONTWAIT`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use nix::sys::socket::{MsgFlags, SockType, getsockopt, recv, send, sockopt};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

use crate::confine::sys;

/// A connected stream socket that the caller gave as a standard stream, as programs do that run on Node.js.
///
/// The open file is shared with whoever started this process, so its flags stay as they are.
#[derive(Debug)]
pub struct HostSocket(AsyncFd<OwnedFd>);

impl HostSocket {
    /// The socket behind a descriptor, for reading and writing; `None` where there is no stream socket, or one that
    /// listens. Needs a running runtime.
    ///
    /// # Errors
    ///
    /// The descriptor cannot be copied or watched.
    pub fn behind(fd: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let is_stream = getsockopt(&fd, sockopt::SockType) == Ok(SockType::Stream);
        if !is_stream || getsockopt(&fd, sockopt::AcceptConn) != Ok(false) {
            return Ok(None);
        }
        sys::watch_readiness(fd.try_clone_to_owned()?, Interest::READABLE | Interest::WRITABLE)
            .map(|watched| Some(Self(watched)))
            .map_err(|(_closed, error)| error)
    }
}

impl AsyncRead for HostSocket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            match ready.try_io(|fd| Ok(recv(fd.as_raw_fd(), room, MsgFlags::MSG_DONTWAIT)?)) {
                Ok(Ok(count)) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for HostSocket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        loop {
            let mut ready = ready!(self.0.poll_write_ready(context))?;
            match ready.try_io(|fd| Ok(send(fd.as_raw_fd(), bytes, flags)?)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(sent) => return Poll::Ready(sent),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The other end is closed with the process, as of a pipe.
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn within<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(work)
    }

    #[test]
    fn bytes_arrive_and_the_flags_of_the_open_file_stay() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        within(async {
            let mut socket = HostSocket::behind(ours.as_fd()).unwrap().unwrap();
            theirs.write_all(b"ask").unwrap();
            let mut received = [0; 3];
            socket.read_exact(&mut received).await.unwrap();
            socket.write_all(b"answer").await.unwrap();
            assert_eq!(&received, b"ask");
        });
        let mut received = [0; 6];
        theirs.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"answer");
        let flags = OFlag::from_bits_retain(fcntl(&ours, FcntlArg::F_GETFL).unwrap());
        assert!(!flags.contains(OFlag::O_NONBLOCK));
    }

    #[test]
    fn more_than_the_kernel_holds_is_written_as_it_is_read() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let reader = std::thread::spawn(move || {
            let mut received = Vec::new();
            theirs.read_to_end(&mut received).unwrap();
            received.len()
        });
        within(async {
            let mut socket = HostSocket::behind(ours.as_fd()).unwrap().unwrap();
            socket.write_all(&vec![b'x'; 4 << 20]).await.unwrap();
        });
        drop(ours);
        assert_eq!(reader.join().unwrap(), 4 << 20);
    }

    #[test]
    fn an_end_that_is_closed_ends_reading_and_fails_writing() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        within(async {
            let mut socket = HostSocket::behind(ours.as_fd()).unwrap().unwrap();
            assert_eq!(socket.read(&mut [0; 8]).await.unwrap(), 0);
            let failed = socket.write_all(b"answer").await.unwrap_err();
            assert_eq!(failed.raw_os_error(), Some(Errno::EPIPE as i32));
        });
    }

    #[test]
    fn what_is_no_stream_socket_or_listens_is_none() {
        let (datagram, _other) = UnixDatagram::pair().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        within(async {
            assert!(HostSocket::behind(datagram.as_fd()).unwrap().is_none());
            assert!(HostSocket::behind(file.as_fd()).unwrap().is_none());
            assert!(HostSocket::behind(listener.as_fd()).unwrap().is_none());
        });
    }
}
