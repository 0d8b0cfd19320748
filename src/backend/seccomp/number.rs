//! System call numbers: the ones `libc` does not name yet, and where the known ones end.
//!
//! Numbers from 424 on are the same on every architecture.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the system call table is written for x86_64 and aarch64");

/// The last number whose call was judged; every later one is answered `ENOSYS`.
pub const HIGHEST: u32 = 469;

/// The numbers no call had when the table was written, though later ones are taken.
#[cfg(target_arch = "x86_64")]
pub(super) const GAP: std::ops::RangeInclusive<u32> = 337..=423;
/// The numbers no 64-bit call had when the table was written, though later ones are taken.
#[cfg(target_arch = "aarch64")]
pub(super) const GAP: std::ops::RangeInclusive<u32> = 295..=423;

/// `AUDIT_ARCH_*` of this build; a call through any other table kills the process.
#[cfg(target_arch = "x86_64")]
pub const NATIVE_ARCH: u32 = 0xC000_003E;
/// `AUDIT_ARCH_*` of this build; a call through any other table kills the process.
#[cfg(target_arch = "aarch64")]
pub const NATIVE_ARCH: u32 = 0xC000_00B7;

pub(super) const FCHMODAT2: i64 = 452;
pub(crate) const STATMOUNT: i64 = 457;
pub(super) const LISTMOUNT: i64 = 458;
pub(super) const SETXATTRAT: i64 = 463;
pub(super) const REMOVEXATTRAT: i64 = 466;
pub(super) const OPEN_TREE_ATTR: i64 = 467;
pub(super) const FILE_SETATTR: i64 = 469;

#[cfg(target_arch = "x86_64")]
pub(super) const CREATE_MODULE: i64 = 174;
#[cfg(target_arch = "x86_64")]
pub(super) const GET_KERNEL_SYMS: i64 = 177;
#[cfg(target_arch = "x86_64")]
pub(super) const QUERY_MODULE: i64 = 178;
