//! What may be reached beyond the file system.

use std::fmt;

/// Reach over IP. Ordered: less is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Network {
    /// No socket that could leave the sandbox.
    Off,
    /// Every address.
    Full,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Full => "full",
        })
    }
}

/// Reach over Unix sockets; it never follows [`Network`]. Ordered: less is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnixSockets {
    /// None but anonymous pairs between the command's own processes.
    None,
    /// Sockets whose path lies in a writable root.
    WithinRoots,
    /// Every pathname socket, the desktop's and the container engine's included.
    All,
}

impl fmt::Display for UnixSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::WithinRoots => "within_roots",
            Self::All => "all",
        })
    }
}
