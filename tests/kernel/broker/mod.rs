//! The attribute broker on the real kernel: real filters, real notifications, real tools.
//!
//! A thread stands for the runner: it gives up capabilities or root, enters a Landlock layer that knows
//! no `/proc`, and serves. A second thread, one layer deeper, has the notify filter and stands for the
//! command; programs it starts inherit all of that. Everything is done as root without capabilities and
//! as an ordinary user, where the tests may.

#![expect(unsafe_code, reason = "a command makes system calls that no wrapper would make")]
#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "a register is a register"
)]

#[cfg(test)]
mod denials;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod races;
#[cfg(test)]
mod same_as_kernel;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod world;
