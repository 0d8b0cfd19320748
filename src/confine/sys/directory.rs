//! Directory listings without allocation, and birth times.

/// The next part of the directory `fd` as `linux_dirent64` records; 0 bytes at its end.
///
/// The C library's reader costs an allocation and three more system calls per directory, which a walk
/// of every directory before every command would feel.
pub(crate) fn getdents(fd: impl std::os::fd::AsFd, buffer: &mut [u8]) -> nix::Result<usize> {
    use std::os::fd::AsRawFd;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: getdents64 writes at most `buffer.len()` bytes at the pointer, which comes from an exclusive
    // reference to exactly that many bytes, and any byte is a valid u8.
    let read = unsafe { libc::syscall(libc::SYS_getdents64, fd, buffer.as_mut_ptr(), buffer.len()) };
    nix::errno::Errno::result(read).map(|read| usize::try_from(read).unwrap_or(0))
}

/// When the file at the open `fd` was created, where its file system keeps that.
///
/// Tells a directory that was moved from a new one that was given the number of a deleted one.
pub(crate) fn birth_time(fd: impl std::os::fd::AsFd) -> nix::Result<Option<(i64, u32)>> {
    use std::os::fd::AsRawFd;
    let mut found = std::mem::MaybeUninit::<libc::statx>::zeroed();
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: statx reads the empty C string and writes one `statx` at the pointer, which comes from an
    // exclusive reference to exactly one.
    let result = unsafe {
        libc::statx(
            fd,
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_BTIME,
            found.as_mut_ptr(),
        )
    };
    nix::errno::Errno::result(result)?;
    // SAFETY: the structure is plain integers, zeroed above, so it is initialised whatever statx filled in.
    let found = unsafe { found.assume_init() };
    Ok((found.stx_mask & libc::STATX_BTIME != 0).then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec)))
}

/// The names in what [`getdents`] read, without `.` and `..`.
pub(crate) fn names(listing: &[u8]) -> impl Iterator<Item = &[u8]> {
    entries(listing).map(|(name, _)| name)
}

/// The names in what [`getdents`] read with their `d_type`, without `.` and `..`.
pub(crate) fn entries(listing: &[u8]) -> impl Iterator<Item = (&[u8], u8)> {
    let mut rest = listing;
    std::iter::from_fn(move || {
        loop {
            // struct linux_dirent64: u64 inode, i64 offset, u16 length of the record, u8 type, name, NUL.
            let (head, tail) = rest.split_at_checked(19)?;
            let length = usize::from(u16::from_ne_bytes([head[16], head[17]]));
            let name = tail.split(|&b| b == 0).next().unwrap_or_default();
            rest = rest.get(length.max(19)..).unwrap_or_default();
            if !matches!(name, b"." | b".." | b"") {
                return Some((name, head[18]));
            }
        }
    })
}
