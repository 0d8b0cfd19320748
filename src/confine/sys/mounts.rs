//! Mounts by descriptor: no path is resolved here, so none can be replaced meanwhile.
//!
//! A mount is made detached, gets its flags, and is attached last: it is never seen with fewer.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;

use crate::backend::seccomp::STATMOUNT;

/// `linux/mount.h`, of which the `libc` crate has the numbers of the calls alone.
const OPEN_TREE_CLONE: libc::c_uint = 1;
const OPEN_TREE_CLOEXEC: libc::c_uint = libc::O_CLOEXEC.cast_unsigned();
const AT_RECURSIVE: libc::c_uint = 0x8000;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 0x04;
const MOVE_MOUNT_T_EMPTY_PATH: libc::c_uint = 0x40;
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_SET_STRING: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
const AT_EMPTY_PATH: libc::c_uint = libc::AT_EMPTY_PATH.cast_unsigned();
const STATMOUNT_MNT_POINT: u64 = 0x10;

/// Restrictions of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MountFlags(u64);

impl MountFlags {
    /// Nothing is changed.
    pub(crate) const READ_ONLY: Self = Self(1);
    /// Set-uid and set-gid bits, and file capabilities, do nothing.
    pub(crate) const NO_SETUID: Self = Self(2);
    /// Devices do not act.
    pub(crate) const NO_DEVICES: Self = Self(4);
    /// Nothing is executed.
    pub(crate) const NO_EXECUTE: Self = Self(8);

    /// Both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How far something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// This mount alone.
    This,
    /// With all that is mounted below it.
    Recursive,
}

impl Depth {
    const fn flag(self) -> libc::c_uint {
        match self {
            Self::This => 0,
            Self::Recursive => AT_RECURSIVE,
        }
    }
}

/// `struct mount_attr`.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// `struct mnt_id_req`, in its first version.
#[repr(C)]
struct StatmountRequest {
    size: u32,
    spare: u32,
    mount: u64,
    fields: u64,
}

/// `struct statmount`, and room for one path.
#[repr(C)]
struct Statmount {
    size: u32,
    options: u32,
    fields: u64,
    others: [u64; 11],
    root: u32,
    point: u32,
    later: [u64; 50],
    text: [u8; 4096],
}

/// A detached mount of a new file system of this kind.
pub(crate) fn new_mount(kind: &CStr, options: &[(&CStr, &CStr)], flags: MountFlags) -> nix::Result<OwnedFd> {
    // SAFETY: fsopen reads the C string, which outlives the call, and returns a fresh descriptor.
    let made = unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC) };
    let system = own_result(made)?;
    // Shown in the table of mounts, and nothing else.
    configure(&system, FSCONFIG_SET_STRING, Some((c"source", kind)))?;
    for (key, value) in options {
        configure(&system, FSCONFIG_SET_STRING, Some((key, value)))?;
    }
    configure(&system, FSCONFIG_CMD_CREATE, None)?;
    // SAFETY: fsmount takes integers only and returns a fresh descriptor.
    own_result(unsafe { libc::syscall(libc::SYS_fsmount, system.as_raw_fd(), FSMOUNT_CLOEXEC, flags.0) })
}

fn configure(system: &OwnedFd, command: libc::c_uint, option: Option<(&CStr, &CStr)>) -> nix::Result<()> {
    let (key, value) = option.map_or((std::ptr::null(), std::ptr::null()), |(key, value)| {
        (key.as_ptr(), value.as_ptr())
    });
    // SAFETY: fsconfig reads two C strings that outlive the call, or is given none by a command that wants none.
    let done = unsafe { libc::syscall(libc::SYS_fsconfig, system.as_raw_fd(), command, key, value, 0) };
    Errno::result(done).map(drop)
}

/// A detached copy of what is mounted where `fd` is, showing the tree from there on.
pub(crate) fn copy_mount(fd: impl AsFd, depth: Depth) -> nix::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | depth.flag();
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: open_tree reads the empty C string and returns a fresh descriptor.
    own_result(unsafe { libc::syscall(libc::SYS_open_tree, fd, c"".as_ptr(), flags) })
}

/// Takes something away from a mount; nothing gives it back here.
pub(crate) fn restrict_mount(mount: impl AsFd, flags: MountFlags, depth: Depth) -> nix::Result<()> {
    let attributes = MountAttr {
        set: flags.0,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    let mount = mount.as_fd().as_raw_fd();
    // SAFETY: mount_setattr reads the empty C string and as many bytes as the reference has, both of which outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount,
            c"".as_ptr(),
            AT_EMPTY_PATH | depth.flag(),
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    };
    Errno::result(done).map(drop)
}

/// Attaches a detached mount, on top of whatever `point` is.
pub(crate) fn attach_mount(mount: impl AsFd, point: impl AsFd) -> nix::Result<()> {
    let (mount, point) = (mount.as_fd().as_raw_fd(), point.as_fd().as_raw_fd());
    let flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: move_mount reads the two empty C strings.
    let done = unsafe { libc::syscall(libc::SYS_move_mount, mount, c"".as_ptr(), point, c"".as_ptr(), flags) };
    Errno::result(done).map(drop)
}

/// The path of the mount with this unique id, as seen from this process's root.
///
/// # Errors
/// `ENOENT` when it is not mounted in this namespace any more, `EPERM` where it cannot be seen from here or a filter refuses the
/// call, `ENOSYS` before Linux 6.8, `EOVERFLOW` for a path with no room, `ENODATA` for an answer without a path.
pub(crate) fn mount_point(number: u64) -> nix::Result<Vec<u8>> {
    let request = StatmountRequest {
        size: u32::try_from(size_of::<StatmountRequest>()).map_err(|_| Errno::EINVAL)?,
        spare: 0,
        mount: number,
        fields: STATMOUNT_MNT_POINT,
    };
    // SAFETY: the structure is plain integers, for which zero is a value.
    let mut reply: Statmount = unsafe { std::mem::zeroed() };
    // SAFETY: statmount reads one `mnt_id_req` and writes no more bytes than the exclusive reference has; both outlive the call.
    let done = unsafe { libc::syscall(STATMOUNT, &raw const request, &raw mut reply, size_of::<Statmount>(), 0) };
    Errno::result(done)?;
    let start = usize::try_from(reply.point).map_err(|_| Errno::EOVERFLOW)?;
    let text = reply
        .text
        .get(start..)
        .filter(|_| reply.fields & STATMOUNT_MNT_POINT != 0);
    let path = text.and_then(|text| CStr::from_bytes_until_nul(text).ok());
    path.map(|path| path.to_bytes().to_vec()).ok_or(Errno::ENODATA)
}

/// Brings up the loopback of this network namespace; the kernel gives it its addresses then.
pub(crate) fn bring_up_loopback(socket: BorrowedFd<'_>) -> nix::Result<()> {
    // SAFETY: the structure is plain integers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = from.cast_signed();
    }
    let socket = socket.as_raw_fd();
    // SAFETY: SIOCGIFFLAGS reads and writes one `ifreq` at the pointer, which comes from an exclusive reference to one.
    Errno::result(unsafe { libc::ioctl(socket, libc::SIOCGIFFLAGS, &raw mut request) })?;
    let up = libc::c_short::try_from(libc::IFF_UP).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the call above has filled in the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | up;
    // SAFETY: SIOCSIFFLAGS reads one `ifreq` at the pointer, which comes from a reference to one.
    Errno::result(unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request) }).map(drop)
}

/// The owner of a descriptor that a call has just returned.
fn own_result(returned: libc::c_long) -> nix::Result<OwnedFd> {
    let fd = RawFd::try_from(Errno::result(returned)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the call opened it for this process just now, and nothing else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
