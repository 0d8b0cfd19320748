//! The address in a call, as the kernel reads it.

use std::ffi::CString;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// An address that leads out of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// Over IP.
    Ip(SocketAddr),
    /// A Unix socket with a path.
    Unix(CString),
}

/// A `sockaddr` as the kernel reads it.
pub(super) fn address(bytes: &[u8]) -> Option<Address> {
    let (family, rest) = bytes.split_first_chunk::<2>()?;
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => {
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let (address, _) = rest.split_first_chunk::<4>()?;
            let address = SocketAddr::from((Ipv4Addr::from(*address), u16::from_be_bytes(*port)));
            Some(Address::Ip(address))
        }
        libc::AF_INET6 => {
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let (_flow, rest) = rest.split_first_chunk::<4>()?;
            let (address, _) = rest.split_first_chunk::<16>()?;
            let address = SocketAddr::from((Ipv6Addr::from(*address), u16::from_be_bytes(*port)));
            Some(Address::Ip(address))
        }
        libc::AF_UNIX => {
            // An abstract name begins with a NUL.
            let path = rest.split(|byte| *byte == 0).next().filter(|path| !path.is_empty())?;
            Some(Address::Unix(CString::new(path).ok()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        let ip = |text: &str| Some(Address::Ip(text.parse().unwrap()));
        let four = [2, 0, 0x1f, 0x90, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(address(&four), ip("192.0.2.1:8080"));
        let mut six = vec![10, 0, 0, 80, 0, 0, 0, 0];
        six.extend(Ipv6Addr::LOCALHOST.octets());
        assert_eq!(address(&six), ip("[::1]:80"));
        let unix = |path: &std::ffi::CStr| Some(Address::Unix(path.to_owned()));
        assert_eq!(address(b"\x01\0/run/x\0junk"), unix(c"/run/x"));
        assert_eq!(address(b"\x01\0relative"), unix(c"relative"));
        for nothing in [
            b"".as_slice(),
            b"\x01\0\0abstract",
            b"\x01\0",
            b"\x02\0\0",
            b"\x10\0\0\0",
        ] {
            assert_eq!(address(nothing), None);
        }
    }
}
