//! Standard input and output, each read and written without a thread where it is a pipe or a socket.
//!
//! Clients differ: Python gives a child pipes, Node.js sockets, and some one of each.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::FileTypeExt as _;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;

use crate::tools::serving::HostSocket;

/// The input from a client.
pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;
/// The output to a client.
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input. Needs a running runtime.
pub(super) fn input() -> Input {
    let stdin = io::stdin();
    if is_pipe(stdin.as_fd())
        && let Ok(pipe) = pipe::OpenOptions::new().open_receiver(reopen_path(stdin.as_fd()))
    {
        return Box::new(pipe);
    }
    match HostSocket::behind(stdin.as_fd()) {
        Ok(Some(socket)) => Box::new(socket),
        Ok(None) | Err(_) => Box::new(tokio::io::stdin()),
    }
}

/// Standard output. Needs a running runtime.
pub(super) fn output() -> Output {
    let stdout = io::stdout();
    if is_pipe(stdout.as_fd())
        && let Ok(pipe) = pipe::OpenOptions::new().open_sender(reopen_path(stdout.as_fd()))
    {
        return Box::new(pipe);
    }
    match HostSocket::behind(stdout.as_fd()) {
        Ok(Some(socket)) => Box::new(socket),
        Ok(None) | Err(_) => Box::new(tokio::io::stdout()),
    }
}

fn is_pipe(fd: BorrowedFd<'_>) -> bool {
    fd.try_clone_to_owned()
        .and_then(|fd| File::from(fd).metadata())
        .is_ok_and(|found| found.file_type().is_fifo())
}

/// The path that reopens a pipe, so that its flags are not shared.
fn reopen_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
