//! Whether what happens is recorded, and where.

use std::fmt;

use super::path::AbsPath;

/// The default size limit of a log file.
const MOST_BYTES: u64 = 64 << 20;

/// `audit:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Where the log lies.
    pub log: AuditLog,
    /// How large one of its files grows before the next one is begun, in bytes.
    pub max_bytes: u64,
    /// How many earlier files are kept; `None`: all.
    pub keep: Option<u64>,
}

/// `audit.log`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditLog {
    /// There is none. In a ceiling: it demands none.
    Off,
    /// In the user's state directory. In a ceiling: it demands a log, wherever.
    Default,
    /// At this path.
    At(AbsPath),
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            log: AuditLog::Off,
            max_bytes: MOST_BYTES,
            keep: None,
        }
    }
}

impl Audit {
    /// Whether there is a log.
    pub fn is_on(&self) -> bool {
        match self.log {
            AuditLog::Off => false,
            AuditLog::Default | AuditLog::At(_) => true,
        }
    }

    /// Turns the log on if `most` demands one.
    pub(super) fn and(&mut self, most: &Self) {
        match (&self.log, &most.log) {
            (AuditLog::Off, AuditLog::Default | AuditLog::At(_)) => self.log = AuditLog::Default,
            (AuditLog::Off, AuditLog::Off) | (AuditLog::Default | AuditLog::At(_), _) => {}
        }
    }
}

impl fmt::Display for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Default => f.write_str("default"),
            Self::At(path) => path.fmt(f),
        }
    }
}
