//! The proxy over real sockets of loopback, with a gate, a resolver and servers of the tests' own.

mod connects;
mod heads;
mod hellos;
mod life;
mod looks;
mod plain;
mod refused;
mod shares;
mod socks;
mod stage;
mod tunnels;
