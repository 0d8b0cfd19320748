//! The tree of mounts of a plan, built step by step before any process uses it.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{Mode, SFlag, fstat, major, minor, mkdirat, umask};
use nix::unistd::{chdir, fchdir, pivot_root, symlinkat};

use super::super::sys::{self, Depth, MountFlags};
use crate::backend::landlock::Beneath;
use crate::backend::namespaces::plan::{DEVICES, MASK};
use crate::backend::namespaces::{BindAccess, Step as MountStep};
use crate::confine::wire::protocol::{StartFailure, Step};
use crate::policy::path::display;

/// The flags of every mount.
const SAFE: MountFlags = MountFlags::NO_SETUID.and(MountFlags::NO_DEVICES);
/// Those of a read-only mount.
const FROZEN: MountFlags = SAFE.and(MountFlags::READ_ONLY);
/// Those of a directory with working devices.
const DEVICE_DIRECTORY: MountFlags = MountFlags::NO_SETUID;
/// Those of a working device: on a read-only mount it can be written to, and keeps its mode.
const DEVICE: MountFlags = DEVICE_DIRECTORY.and(MountFlags::READ_ONLY);
/// Links of every /dev, and where they lead.
const LINKS: [(&str, &str); 6] = [
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("fd", "/proc/self/fd"),
    ("core", "/proc/kcore"),
    ("ptmx", "pts/ptmx"),
];
/// The number of the device that covers files.
const MASK_NUMBER: (u64, u64) = (1, 3);

const PATH_ONLY: OFlag = OFlag::O_PATH.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

#[derive(Debug)]
pub(super) struct MountTree {
    /// The mount that both trees are attached to until the end.
    base: OwnedFd,
    /// The host's root.
    host: OwnedFd,
    /// The new root, the topmost mount there.
    root: OwnedFd,
    /// The tmpfs of the plan, on which mount points are made.
    own: BTreeSet<u64>,
    /// An empty directory with mode 0, once one is mounted.
    cover: Option<OwnedFd>,
    /// The umask to restore.
    mask: Mode,
    /// A detached, writable mount of the plan's /proc, once that is mounted.
    proc: Option<OwnedFd>,
}

/// A step that failed at this path.
fn at(path: &OsStr, what: &'static str) -> impl Fn(Errno) -> StartFailure {
    move |errno| StartFailure::new(Step::Mounts, errno, format!("{what} {}", display(path)))
}

/// A new file system that cannot be made for this path. No command can cause that, so it counts as a failure of namespaces.
fn at_new(path: &OsStr, what: &'static str) -> impl Fn(Errno) -> StartFailure {
    move |errno| StartFailure::new(Step::Namespaces, errno, format!("{what} {}", display(path)))
}

/// One that failed before any path of the plan.
fn without_path(what: &'static str) -> impl Fn(Errno) -> StartFailure {
    move |errno| StartFailure::new(Step::Namespaces, errno, what)
}

impl MountTree {
    /// An empty tmpfs in the place of the root, and the host's root below it. This process must be alone in its mount
    /// namespace.
    pub(super) fn begin() -> Result<Self, StartFailure> {
        // Modes must be exact.
        let mask = umask(Mode::empty());
        let none = None::<&Path>;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(none, "/", none, private, none).map_err(without_path("making the mounts private"))?;
        let base = tmpfs(c"0755", None, SAFE).map_err(without_path("a tmpfs"))?;
        let top = openat(nix::fcntl::AT_FDCWD, "/", PATH_ONLY, Mode::empty()).map_err(without_path("the root"))?;
        sys::attach_mount(&base, &top).map_err(without_path("the base"))?;
        for name in ["host", "root"] {
            mkdirat(&base, name, Mode::from_bits_truncate(0o755)).map_err(without_path("the base"))?;
        }
        fchdir(&base).map_err(without_path("the base"))?;
        pivot_root(".", "host").map_err(without_path("leaving the host's root"))?;
        let below = |name: &str| openat(&base, name, PATH_ONLY | OFlag::O_DIRECTORY, Mode::empty());
        let host = below("host").map_err(without_path("the host's root"))?;
        let root = tmpfs(c"0755", None, SAFE).map_err(without_path("a tmpfs"))?;
        let point = below("root").map_err(without_path("the new root"))?;
        sys::attach_mount(&root, point).map_err(without_path("the new root"))?;
        let own = [device(&root).map_err(without_path("the new root"))?].into();
        Ok(Self {
            base,
            host,
            root,
            own,
            cover: None,
            mask,
            proc: None,
        })
    }

    pub(super) fn run_step(&mut self, step: &MountStep) -> Result<(), StartFailure> {
        match step {
            MountStep::Bind {
                path,
                access,
                device,
                inode,
                beneath,
            } => {
                let source = self.open_verified(path, (*device, *inode), *beneath)?;
                let flags = match (access, beneath) {
                    (BindAccess::ReadOnly, _) => FROZEN,
                    (BindAccess::Writable, _) => SAFE,
                    (BindAccess::Device, Beneath::Directory) => DEVICE_DIRECTORY,
                    (BindAccess::Device, Beneath::File) => DEVICE,
                };
                self.mount_copy(&source, path, flags, Depth::Recursive, *beneath)
            }
            MountStep::Copy {
                path,
                source,
                device,
                inode,
                beneath,
            } => {
                let source = self.open_verified(source, (*device, *inode), *beneath)?;
                self.mount_copy(&source, path, SAFE, Depth::This, *beneath)
            }
            MountStep::MaskDirectory { path } => {
                // Before Linux 6.15 only what is mounted can be copied, so the first is mounted itself.
                let cover = if let Some(mounted) = &self.cover {
                    sys::copy_mount(mounted, Depth::This).map_err(at(path, "a cover for"))?
                } else {
                    let enter = tmpfs(c"0000", None, FROZEN).map_err(at_new(path, "a cover for"))?;
                    let again = enter.try_clone();
                    self.cover = Some(again.map_err(|_short| at_new(path, "a cover for")(Errno::EMFILE))?);
                    enter
                };
                self.attach(cover, path, Beneath::Directory)
            }
            MountStep::MaskFile { path } => {
                let mask = self.source(OsStr::new(MASK))?;
                let stat = fstat(&mask).map_err(at(path, "a cover for"))?;
                let number = (major(stat.st_rdev), minor(stat.st_rdev));
                if kind(stat.st_mode) != SFlag::S_IFCHR || number != MASK_NUMBER {
                    let what = format!("{MASK} is something else");
                    return Err(StartFailure::new(Step::Mounts, Errno::ENODEV, what));
                }
                self.mount_copy(&mask, path, FROZEN, Depth::This, Beneath::File)
            }
            MountStep::Symlink { path, target } => {
                let (parent, name) = self.parent(path)?;
                let target = target.as_os_str();
                symlinkat(target, &parent, name.as_os_str()).map_err(at(path, "the link"))
            }
            MountStep::Directory { path } => {
                let (parent, name) = self.parent(path)?;
                match mkdirat(&parent, name.as_os_str(), Mode::from_bits_truncate(0o755)) {
                    // It is on the way to something that is shown.
                    Ok(()) | Err(Errno::EEXIST) => Ok(()),
                    Err(errno) => Err(at(path, "the directory")(errno)),
                }
            }
            MountStep::Proc { path } => self.proc(path),
            MountStep::Dev { path } => self.dev(path),
            MountStep::Tmp { path, bytes } => {
                let private = tmpfs(c"1777", Some(*bytes), SAFE).map_err(at_new(path, "a tmpfs at"))?;
                self.own.insert(device(&private).map_err(at_new(path, "a tmpfs at"))?);
                self.attach(private, path, Beneath::Directory)
            }
            MountStep::Freeze { path } => {
                let mount = self.find(path).map_err(at(path, "freezing"))?;
                sys::restrict_mount(mount, FROZEN, Depth::This).map_err(at(path, "freezing"))
            }
        }
    }

    /// Makes the new root the root of this process, and detaches the host's. Returns its /proc, writable.
    pub(super) fn enter(self) -> Result<OwnedFd, StartFailure> {
        let Self {
            base, root, mask, proc, ..
        } = self;
        let proc = proc.ok_or(Errno::ENOENT).map_err(without_path("the new /proc"))?;
        umask(mask);
        fchdir(&root).map_err(without_path("the new root"))?;
        // The old root is mounted on the new one, until it is detached.
        pivot_root(".", ".").map_err(without_path("entering the new root"))?;
        fchdir(&base).map_err(without_path("the old root"))?;
        umount2(".", MntFlags::MNT_DETACH).map_err(without_path("letting go of the host's root"))?;
        chdir("/").map_err(without_path("the new root"))?;
        Ok(proc)
    }

    fn proc(&mut self, path: &OsStr) -> Result<(), StartFailure> {
        let flags = SAFE.and(MountFlags::NO_EXECUTE);
        let proc = sys::new_mount(c"proc", &[], flags).map_err(at_new(path, "a /proc at"))?;
        self.attach(proc, path, Beneath::Directory)?;
        let mounted = self.find(path).map_err(at(path, "finding"))?;
        self.proc = Some(sys::copy_mount(mounted, Depth::This).map_err(at(path, "copying"))?);
        Ok(())
    }

    fn dev(&mut self, path: &OsStr) -> Result<(), StartFailure> {
        let failed = || at(path, "a /dev at");
        let dev = tmpfs(c"0755", None, SAFE).map_err(at_new(path, "a /dev at"))?;
        self.own.insert(device(&dev).map_err(at_new(path, "a /dev at"))?);
        let point = self.mount_point(path, Beneath::Directory)?;
        sys::attach_mount(&dev, point).map_err(failed())?;
        for shown in DEVICES {
            let source = self.source(OsStr::new(shown))?;
            let name = Path::new(shown).file_name().unwrap_or_default();
            let there = Path::new(path).join(name);
            self.mount_copy(&source, there.as_os_str(), DEVICE, Depth::This, Beneath::File)?;
        }
        for (name, target) in LINKS {
            symlinkat(target, &dev, name).map_err(failed())?;
        }
        for name in ["shm", "pts"] {
            mkdirat(&dev, name, Mode::from_bits_truncate(0o755)).map_err(failed())?;
        }
        let options = [(c"ptmxmode", c"0666"), (c"mode", c"0620")];
        let flags = MountFlags::NO_SETUID.and(MountFlags::NO_EXECUTE);
        let terminals = sys::new_mount(c"devpts", &options, flags).map_err(at_new(path, "terminals in"))?;
        let point = openat(&dev, "pts", PATH_ONLY, Mode::empty()).map_err(failed())?;
        sys::attach_mount(terminals, point).map_err(at(path, "terminals in"))
    }

    /// The host's file at a path, no part of which may be a link.
    fn source(&self, path: &OsStr) -> Result<OwnedFd, StartFailure> {
        open_beneath(&self.host, relative(path)).map_err(at(path, "opening"))
    }

    /// The same, if it is what was surveyed.
    fn open_verified(&self, path: &OsStr, identity: (u64, u64), beneath: Beneath) -> Result<OwnedFd, StartFailure> {
        let source = self.source(path)?;
        let stat = fstat(&source).map_err(at(path, "looking at"))?;
        let is_directory = kind(stat.st_mode) == SFlag::S_IFDIR;
        if (stat.st_dev, stat.st_ino) != identity || is_directory != (beneath == Beneath::Directory) {
            let what = format!("{} is not what it was when the config was read", display(path));
            return Err(StartFailure::new(Step::Mounts, Errno::ESTALE, what));
        }
        Ok(source)
    }

    fn find(&self, path: &OsStr) -> nix::Result<OwnedFd> {
        open_beneath(&self.root, relative(path))
    }

    /// Mounts a copy of something with these flags.
    fn mount_copy(
        &mut self,
        source: &OwnedFd,
        path: &OsStr,
        flags: MountFlags,
        depth: Depth,
        beneath: Beneath,
    ) -> Result<(), StartFailure> {
        let copy = sys::copy_mount(source, depth).map_err(at(path, "copying the mounts of"))?;
        sys::restrict_mount(&copy, flags, depth).map_err(at(path, "restricting"))?;
        self.attach(copy, path, beneath)
    }

    /// Attaches a mount.
    fn attach(&mut self, mount: OwnedFd, path: &OsStr, beneath: Beneath) -> Result<(), StartFailure> {
        let point = self.mount_point(path, beneath)?;
        sys::attach_mount(&mount, point).map_err(at(path, "mounting at"))?;
        if relative(path) == Path::new(".") {
            // From here on paths begin on top of it.
            self.root = mount;
        }
        Ok(())
    }

    /// The mount point at a path, created if missing.
    fn mount_point(&self, path: &OsStr, beneath: Beneath) -> Result<OwnedFd, StartFailure> {
        match self.find(path) {
            Ok(point) => return Ok(point),
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(at(path, "finding the place for")(errno)),
        }
        let (parent, name) = self.parent(path)?;
        let failed = || at(path, "making the place for");
        match beneath {
            Beneath::Directory => {
                mkdirat(&parent, name.as_os_str(), Mode::from_bits_truncate(0o755)).map_err(failed())?;
            }
            Beneath::File => {
                let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                openat(&parent, name.as_os_str(), flags, Mode::from_bits_truncate(0o444)).map_err(failed())?;
            }
        }
        open_beneath(&parent, Path::new(&name)).map_err(failed())
    }

    /// The parent directory of a path, created if missing, and the last name. It must be on a tmpfs of the plan, because the caller
    /// creates something in it.
    fn parent(&self, path: &OsStr) -> Result<(OwnedFd, OsString), StartFailure> {
        let failed = || at(path, "making the way to");
        let path = relative(path);
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(failed()(Errno::EINVAL));
        };
        let mut directory = open_beneath(&self.root, Path::new(".")).map_err(failed())?;
        for part in above.components() {
            let Component::Normal(part) = part else {
                return Err(failed()(Errno::EINVAL));
            };
            directory = match open_beneath(&directory, Path::new(part)) {
                Ok(next) => next,
                Err(Errno::ENOENT) => {
                    self.check_own(&directory).map_err(failed())?;
                    mkdirat(&directory, part, Mode::from_bits_truncate(0o755)).map_err(failed())?;
                    open_beneath(&directory, Path::new(part)).map_err(failed())?
                }
                Err(errno) => return Err(failed()(errno)),
            };
        }
        self.check_own(&directory).map_err(failed())?;
        Ok((directory, name.to_owned()))
    }

    /// Refuses a directory of the host's.
    fn check_own(&self, directory: &OwnedFd) -> nix::Result<()> {
        if self.own.contains(&device(directory)?) {
            Ok(())
        } else {
            Err(Errno::EROFS)
        }
    }
}

/// An absolute path as it is written below a root.
fn relative(path: &OsStr) -> &Path {
    let path = Path::new(path);
    match path.strip_prefix("/") {
        Ok(below) if !below.as_os_str().is_empty() => below,
        Ok(_) | Err(_) => Path::new("."),
    }
}

/// Opens what lies at a path below a directory, and nothing that a link leads to.
fn open_beneath(from: &OwnedFd, path: &Path) -> nix::Result<OwnedFd> {
    let links = ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let how = OpenHow::new()
        .flags(PATH_ONLY)
        .resolve(links | ResolveFlag::RESOLVE_BENEATH);
    openat2(from, path, how)
}

fn kind(mode: libc::mode_t) -> SFlag {
    SFlag::from_bits_truncate(mode) & SFlag::S_IFMT
}

fn device(fd: &OwnedFd) -> nix::Result<u64> {
    Ok(fstat(fd)?.st_dev)
}

/// A tmpfs whose root has this mode, and which holds so many bytes.
fn tmpfs(mode: &CStr, bytes: Option<u64>, flags: MountFlags) -> nix::Result<OwnedFd> {
    let size = bytes.map(|bytes| CString::new(bytes.to_string())).transpose();
    let size = size.map_err(|_| Errno::EINVAL)?;
    let mut options = vec![(c"mode", mode)];
    options.extend(size.as_deref().map(|size| (c"size", size)));
    sys::new_mount(c"tmpfs", &options, flags)
}
