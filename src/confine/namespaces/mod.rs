//! The namespaces and mounts of a plan, made by Stockade itself.
//!
//! A child of the supervisor enters a user namespace in which it may mount ([`ids`]), and
//! forks: its child is the first process of a PID namespace. That one makes the other namespaces while the plan is
//! still being made. Then it builds a tree of mounts step by step as the plan says ([`mount_tree`]), makes it its root and lets
//! go of the host's, gives up every capability, and becomes the forker. Its end is
//! the end of everything in the namespace ([`mod@enter`]), and nothing in there can stop or kill it. Outside, the process that began waits for it, as
//! bwrap's does. [`mod@probe`] does all of it once, to see whether it works.
//!
//! **Everything is held by a descriptor.** A source is opened without following a link and must be the file
//! that was surveyed; its copy gets its flags, all mounts below it included, while it is attached nowhere; a
//! destination is found from the new root alone, again without following a link, and is made only on a tmpfs
//! of the plan. So nobody on the host can have something else shown by swapping a name meanwhile, and nothing
//! is made on the host.
//!
//! **Nothing comes in later.** Mounts are private: what the host mounts or unmounts once the namespaces are made is not seen
//! inside. That is some milliseconds before the host is surveyed: where a place of the plan itself is another by then, the
//! start is refused; below it, what was mounted in between is not there.
//!
//! A step that fails is reported with its path and the system's error, and nothing runs.

mod enter;
mod ids;
mod mount_tree;
mod probe;

pub(crate) use enter::enter;
pub(crate) use probe::main as probe;
