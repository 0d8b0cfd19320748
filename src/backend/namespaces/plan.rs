//! The plan of a mount namespace as data, and the bytes that are read back, which bwrap takes.
//!
//! Rendering decides nothing: one step is one option of bwrap, in the order of the steps. The bytes go
//! through `bwrap --args FD`, each followed by a NUL, so no name needs quoting and none can be taken
//! for an option: every path is absolute.

use std::ffi::{OsStr, OsString};

use serde::{Deserialize, Serialize};

use crate::backend::landlock::Beneath;
use crate::policy::Network;

/// The namespaces and mounts of one profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountPlan {
    /// Whose network the command gets.
    pub network: NetworkNamespace,
    /// The mounts, in the order they are made.
    pub steps: Vec<Step>,
}

/// Whose network a command gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NetworkNamespace {
    /// One of its own: nothing but a loopback, which is up.
    Own,
    /// The host's.
    Host,
}

impl NetworkNamespace {
    /// The one for this reach: the host's only where all of it may be reached.
    pub const fn of(network: &Network) -> Self {
        match network {
            // The way out of the namespace is the parent's proxy, which holds the list.
            Network::Off | Network::Hosts(_) => Self::Own,
            Network::Full => Self::Host,
        }
    }
}

/// What may be done through a bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BindAccess {
    /// Nothing is changed, neither content nor attributes; devices do not act.
    ReadOnly,
    /// Files are changed; devices do not act.
    Writable,
    /// Devices act. Where Stockade carries the plan out, a device by itself is read-only otherwise: its mode is not changed.
    Device,
}

/// One thing that is done in the new mount namespace, whose root begins as an empty tmpfs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Step {
    /// Shows a host path at the same path.
    Bind {
        /// The path; bytes, never text.
        path: OsString,
        /// What may be done through it.
        access: BindAccess,
        /// `st_dev` that the path must have inside.
        device: u64,
        /// `st_ino` that the path must have inside.
        inode: u64,
        /// What it must be.
        beneath: Beneath,
    },
    /// Shows a private copy, which Stockade made, in the place of what the host has there.
    Copy {
        /// The path.
        path: OsString,
        /// Where the copy lies on the host.
        source: OsString,
        /// `st_dev` that the path must have inside.
        device: u64,
        /// `st_ino` that the path must have inside.
        inode: u64,
        /// What it must be.
        beneath: Beneath,
    },
    /// Covers a directory with an empty one that nobody may open.
    MaskDirectory {
        /// The directory.
        path: OsString,
    },
    /// Covers a file with a device that does not act: it can be neither read, written nor executed.
    MaskFile {
        /// The file.
        path: OsString,
    },
    /// Makes a symbolic link on the root tmpfs.
    Symlink {
        /// The link.
        path: OsString,
        /// Where it leads, as it stands on the host.
        target: OsString,
    },
    /// Makes an empty directory on the root tmpfs, or in the private directory.
    Directory {
        /// The directory.
        path: OsString,
    },
    /// A new /proc, which shows the processes of the new PID namespace.
    Proc {
        /// Where.
        path: OsString,
    },
    /// A new /dev with the harmless devices and terminals of its own.
    Dev {
        /// Where.
        path: OsString,
    },
    /// A private directory in memory that everybody inside may write.
    Tmp {
        /// Where.
        path: OsString,
        /// The most it holds, in bytes.
        bytes: u64,
    },
    /// Makes a mount of an earlier step read-only; nothing can be added to it from here on.
    Freeze {
        /// The mount point.
        path: OsString,
    },
}

/// The devices that [`Step::Dev`] shows of the host; bwrap has no option to leave one out.
pub const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// What a file is covered with. Its mount has no working devices, so opening it is EACCES even where a
/// Landlock rule is on the device.
pub const MASK: &str = "/dev/null";

/// The most arguments one bwrap takes (`MAX_ARGS`, the same in all versions from 0.2 to 0.11); no plan has more,
/// whoever carries it out: the table of mounts is read again and again.
pub const MOST_ARGUMENTS: usize = 9_000;

/// The most protected names that get a mount of their own: bwrap takes longer with each, and its arguments end
/// somewhere. The rest is undone after the command, as names that do not exist are.
pub const MOST_PROTECTED: usize = 512;

impl MountPlan {
    /// The private directory in memory, if there is one.
    pub fn private_directory(&self) -> Option<&OsStr> {
        self.steps.iter().find_map(|step| match step {
            Step::Tmp { path, .. } => Some(path.as_os_str()),
            Step::Bind { .. }
            | Step::Copy { .. }
            | Step::MaskDirectory { .. }
            | Step::MaskFile { .. }
            | Step::Symlink { .. }
            | Step::Directory { .. }
            | Step::Proc { .. }
            | Step::Dev { .. }
            | Step::Freeze { .. } => None,
        })
    }

    /// The private copies: where they are shown, device and inode, and what they are.
    pub fn copies(&self) -> impl Iterator<Item = (&OsStr, (u64, u64), Beneath)> {
        self.steps.iter().filter_map(|step| match step {
            Step::Copy {
                path,
                device,
                inode,
                beneath,
                ..
            } => Some((path.as_os_str(), (*device, *inode), *beneath)),
            Step::Bind { .. }
            | Step::MaskDirectory { .. }
            | Step::MaskFile { .. }
            | Step::Symlink { .. }
            | Step::Directory { .. }
            | Step::Proc { .. }
            | Step::Dev { .. }
            | Step::Tmp { .. }
            | Step::Freeze { .. } => None,
        })
    }

    /// Those that are files, by device and inode.
    pub fn copied_files(&self) -> impl Iterator<Item = (u64, u64)> {
        let files = self.copies().filter(|(.., beneath)| *beneath == Beneath::File);
        files.map(|(_, identity, _)| identity)
    }

    /// The arguments, as `--args` takes them; the command line itself is not among them.
    pub fn render(&self) -> Vec<OsString> {
        let mut argv = Argv(Vec::new());
        for namespace in ["user", "ipc", "pid", "uts", "cgroup"] {
            argv.option(&format!("--unshare-{namespace}"), []);
        }
        match self.network {
            NetworkNamespace::Own => argv.option("--unshare-net", []),
            NetworkNamespace::Host => {}
        }
        // As root, bwrap leaves every capability of the new user namespace to the command: enough to unmount a mask.
        argv.option("--cap-drop", [&"ALL".into()]);
        argv.option("--chdir", [&"/".into()]);
        for step in &self.steps {
            argv.step(step);
        }
        argv.0
    }

    /// The bytes to be read from the descriptor given as `--args`.
    pub fn bytes(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt;
        let arguments = self.render();
        let mut bytes = Vec::new();
        for argument in &arguments {
            bytes.extend_from_slice(argument.as_bytes());
            bytes.push(0);
        }
        bytes
    }
}

struct Argv(Vec<OsString>);

impl Argv {
    fn option<'a>(&mut self, name: &str, values: impl IntoIterator<Item = &'a OsString>) {
        self.0.push(name.into());
        self.0.extend(values.into_iter().cloned());
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Bind { path, access, .. } => {
                let option = match access {
                    BindAccess::ReadOnly => "--ro-bind",
                    BindAccess::Writable => "--bind",
                    BindAccess::Device => "--dev-bind",
                };
                self.option(option, [path, path]);
            }
            Step::Copy { path, source, .. } => self.option("--bind", [source, path]),
            Step::MaskDirectory { path } => {
                self.option("--perms", [&"0000".into()]);
                self.option("--tmpfs", [path]);
                self.option("--remount-ro", [path]);
            }
            Step::MaskFile { path } => self.option("--ro-bind", [&MASK.into(), path]),
            Step::Symlink { path, target } => self.option("--symlink", [target, path]),
            Step::Directory { path } => self.option("--dir", [path]),
            Step::Proc { path } => self.option("--proc", [path]),
            Step::Dev { path } => self.option("--dev", [path]),
            Step::Tmp { path, bytes } => {
                self.option("--size", [&bytes.to_string().into()]);
                self.option("--perms", [&"1777".into()]);
                self.option("--tmpfs", [path]);
            }
            Step::Freeze { path } => self.option("--remount-ro", [path]),
        }
    }
}
