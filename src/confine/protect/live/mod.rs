//! What holds while a command runs: mounts that cover files, and a watch on what no mount can hold.

pub(super) mod abandoned_covers;
pub(super) mod covers;
pub(super) mod placeholders;
pub(super) mod present;
pub(super) mod watch;
pub(super) mod watched_paths;
