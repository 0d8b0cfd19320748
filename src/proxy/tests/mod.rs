//! The proxy over real sockets of loopback, with a gate, a resolver and servers of the tests' own.

mod connects;
mod detection;
mod file_budget;
mod heads;
mod hellos;
mod life;
mod plain;
mod refused;
mod socks;
mod stage;
mod tunnels;
