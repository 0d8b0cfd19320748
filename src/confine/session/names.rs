//! What lies in a session directory.

/// The file whose lock says that a session is alive.
pub(crate) const LOCK: &str = "lock";
/// The private HOME.
pub(super) const HOME: &str = "home";
/// The private TMPDIR.
pub(super) const TMP: &str = "tmp";
/// The canary that nothing may open.
pub(crate) const CLOSED: &str = "closed";
/// The canary that may be read and not written.
pub(crate) const READABLE: &str = "readable";
