//! File operations in a confined child: the parent never opens a path that an agent chose.
//!
//! [`protocol`] has the messages.

pub mod protocol;
