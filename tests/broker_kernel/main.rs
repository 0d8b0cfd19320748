//! The attribute broker on the real kernel: real filters, real notifications, real tools.
//!
//! A thread stands for the runner: it gives up capabilities or root, enters a Landlock layer that knows
//! no `/proc`, and serves. A second thread, one layer deeper, has the notify filter and stands for the
//! command; programs it starts inherit all of that. Everything is done as root without capabilities and
//! as an ordinary user, where the tests may.

#![expect(unsafe_code, reason = "a command makes system calls that no wrapper would make")]

mod denials;
mod hostile;
mod races;
mod same_as_kernel;
mod tools;
mod world;
