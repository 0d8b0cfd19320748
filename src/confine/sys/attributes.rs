//! Seccomp notifications, attribute calls that act on a descriptor opened with `O_PATH`, and the mount that something is on.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use nix::NixPath;
use nix::errno::Errno;

/// The listening end of a filter that hands calls over, with buffers as large as this kernel asks for.
#[derive(Debug)]
pub(crate) struct Listener {
    fd: OwnedFd,
    request: Vec<u64>,
    response: Vec<u64>,
}

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` of `linux/seccomp.h`.
const SYNC_WAKE_UP: u64 = 1;

impl Listener {
    /// The listener `fd`, sized for this kernel.
    pub(crate) fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let mut sizes = libc::seccomp_notif_sizes {
            seccomp_notif: 0,
            seccomp_notif_resp: 0,
            seccomp_data: 0,
        };
        // SAFETY: SECCOMP_GET_NOTIF_SIZES takes no flags and writes one `seccomp_notif_sizes` at the
        // pointer, which comes from an exclusive reference to one.
        let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_NOTIF_SIZES, 0, &raw mut sizes) };
        Errno::result(result)?;
        let words = |kernel: u16, ours: usize| vec![0; usize::from(kernel).max(ours).div_ceil(size_of::<u64>())];
        // Each side waits for the other, so both can have one processor, and no other one need be woken (Linux 6.6). An older
        // kernel refuses this, and is slower.
        // SAFETY: SET_FLAGS takes its flags by value.
        let _sooner = unsafe { libc::ioctl(fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
        Ok(Self {
            fd,
            request: words(sizes.seccomp_notif, size_of::<libc::seccomp_notif>()),
            response: words(sizes.seccomp_notif_resp, size_of::<libc::seccomp_notif_resp>()),
        })
    }

    /// The next call that waits. Blocks when none does; `ENOENT` when its caller is gone already.
    pub(crate) fn receive(&mut self) -> Result<libc::seccomp_notif, Errno> {
        // The kernel refuses a buffer that is not zeroed.
        self.request.fill(0);
        // SAFETY: RECV writes one `seccomp_notif` of the kernel's own size at the pointer; the buffer
        // is at least that large (`new`), aligned for it, and exclusively borrowed.
        let result = unsafe {
            libc::ioctl(
                self.fd.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                self.request.as_mut_ptr(),
            )
        };
        Errno::result(result)?;
        // SAFETY: the buffer is at least as large and as aligned as `seccomp_notif` (`new`), and any
        // bytes are a valid value of that plain-integer struct.
        Ok(unsafe { self.request.as_ptr().cast::<libc::seccomp_notif>().read() })
    }

    /// Whether the caller of the call `id` still waits in it; if so, its pid still means that thread.
    pub(crate) fn waits(&self, id: u64) -> bool {
        // SAFETY: ID_VALID only reads one u64 from the pointer, which comes from a reference to one.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) };
        result == 0
    }

    /// Ends the call `id` with 0 or an error. There are no flags: the call itself never runs.
    /// `ENOENT` when its caller is gone.
    pub(crate) fn answer(&mut self, id: u64, answer: Result<(), Errno>) -> Result<(), Errno> {
        self.respond(libc::seccomp_notif_resp {
            id,
            val: 0,
            error: answer.err().map_or(0, |errno| -(errno as i32)),
            flags: 0,
        })
    }

    /// Lets the call `id` go on to the kernel, as if no filter had notified. This never decides anything: its arguments can
    /// change behind this process, so it is for calls that other filters allow and that Landlock and the mounts judge.
    pub(crate) fn continue_call(&mut self, id: u64) -> Result<(), Errno> {
        self.respond(libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags: u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).map_err(|_| Errno::EINVAL)?,
        })
    }

    fn respond(&mut self, response: libc::seccomp_notif_resp) -> Result<(), Errno> {
        self.response.fill(0);
        // SAFETY: the buffer is at least as large and as aligned as `seccomp_notif_resp` (`new`), and
        // is exclusively borrowed.
        unsafe {
            self.response
                .as_mut_ptr()
                .cast::<libc::seccomp_notif_resp>()
                .write(response);
        }
        // SAFETY: SEND reads one `seccomp_notif_resp` of the kernel's own size at the pointer; the
        // buffer is at least that large (`new`) and initialised.
        let result = unsafe {
            libc::ioctl(
                self.fd.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                self.response.as_mut_ptr(),
            )
        };
        Errno::result(result).map(drop)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// `fchmodat2(fd, "", mode, AT_EMPTY_PATH)`.
pub(crate) fn change_mode(fd: impl AsFd, mode: u32) -> Result<(), Errno> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the path is a NUL-terminated literal; everything else goes by value.
    let result = unsafe { libc::syscall(libc::SYS_fchmodat2, fd, c"".as_ptr(), mode, libc::AT_EMPTY_PATH) };
    Errno::result(result).map(drop)
}

/// `utimensat(fd, "", times, AT_EMPTY_PATH)`.
pub(crate) fn change_times(fd: impl AsFd, times: &[libc::timespec; 2]) -> Result<(), Errno> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the path is a NUL-terminated literal, and the kernel only reads the two `timespec`
    // behind the reference.
    let result = unsafe { libc::utimensat(fd, c"".as_ptr(), times.as_ptr(), libc::AT_EMPTY_PATH) };
    Errno::result(result).map(drop)
}

/// `setxattr`, following links.
pub(crate) fn set_xattr(path: &CStr, name: &CStr, value: &[u8], flags: i32) -> Result<(), Errno> {
    // SAFETY: both strings are NUL-terminated, and the kernel reads no more than `value.len()` bytes
    // of the value.
    let result = unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), flags) };
    Errno::result(result).map(drop)
}

/// `removexattr`, following links.
pub(crate) fn remove_xattr(path: &CStr, name: &CStr) -> Result<(), Errno> {
    // SAFETY: both strings are NUL-terminated.
    let result = unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) };
    Errno::result(result).map(drop)
}

/// The number of the mount that `fd` is on; no two mounts that exist have the same.
pub(crate) fn mount_of(fd: impl AsFd) -> Result<u64, Errno> {
    mount(fd.as_fd().as_raw_fd(), c"", libc::AT_EMPTY_PATH)
}

/// The same of what is at `path`; a link is not followed, and nothing is mounted for it.
pub(crate) fn mount_at(path: &Path) -> Result<u64, Errno> {
    let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT;
    path.with_nix_path(|path| mount(libc::AT_FDCWD, path, flags))?
}

fn mount(directory: RawFd, path: &CStr, flags: i32) -> Result<u64, Errno> {
    let mut stat = std::mem::MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is NUL-terminated, and the kernel writes one `statx` at the pointer, which comes
    // from an exclusive reference to room for one.
    let result = unsafe { libc::statx(directory, path.as_ptr(), flags, libc::STATX_MNT_ID, stat.as_mut_ptr()) };
    Errno::result(result)?;
    // SAFETY: zeroed, any bytes are a valid value of that plain-integer struct.
    let stat = unsafe { stat.assume_init() };
    if stat.stx_mask & libc::STATX_MNT_ID == 0 {
        return Err(Errno::ENOSYS);
    }
    Ok(stat.stx_mnt_id)
}
