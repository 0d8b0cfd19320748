//! The process behind a connection, for display only.
//!
//! Its command line is under its own control, so no decision depends on it, nor on whether the process is found.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{read, read_dir, read_link};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::policy::path::escape;

/// The most processes of the machine that are looked through.
const MOST_PROCESSES: usize = 16 * 1024;
/// The most of a command's that are, and the most descriptors of each.
const MOST_OF_COMMAND: usize = 512;
const MOST_DESCRIPTORS: usize = 1024;
/// The most bytes of a command line that are shown.
const SHOWN: usize = 200;

/// The process that has the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientProcess {
    /// Its pid on the host.
    pub pid: u32,
    /// Its command line, or its name; escaped.
    pub command_line: String,
}

impl fmt::Display for ClientProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.command_line, self.pid)
    }
}

/// The process below `supervisor` that has the socket with this address in a network namespace of its own; `None` where it is
/// gone, or cannot be found out.
pub fn client_process(supervisor: u32, client: SocketAddr) -> Option<ClientProcess> {
    let host = read_link("/proc/self/ns/net").ok()?;
    let tree = descendants(supervisor);
    let inside = |pid: &&u32| read_link(proc_path(**pid, "ns/net")).is_ok_and(|namespace| namespace != host);
    let table = if client.is_ipv4() { "net/tcp" } else { "net/tcp6" };
    let first = tree.iter().find(inside)?;
    let inode = inode(&read(proc_path(*first, table)).ok()?, client)?;
    let socket = PathBuf::from(format!("socket:[{inode}]"));
    let has_socket = |pid: &&u32| {
        let Ok(descriptors) = read_dir(proc_path(**pid, "fd")) else {
            return false;
        };
        let mut few = descriptors.take(MOST_DESCRIPTORS).flatten();
        few.any(|entry| read_link(entry.path()).is_ok_and(|target| target == socket))
    };
    // The innermost one that has it: a shell passes its sockets on, and its child uses them.
    let pid = *tree.iter().rev().find(has_socket)?;
    Some(ClientProcess {
        pid,
        command_line: command_line(pid)?,
    })
}

fn proc_path(pid: u32, what: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{what}"))
}

/// The processes below one, parents first.
fn descendants(root: u32) -> Vec<u32> {
    let Ok(entries) = read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in numbers.take(MOST_PROCESSES) {
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let left = MOST_OF_COMMAND.saturating_sub(found.len());
        found.extend(children.remove(&pid).into_iter().flatten().take(left));
    }
    found.split_off(1)
}

/// The parent of a process, from the fourth word of its `stat`; its name may hold blanks and brackets.
fn parent(pid: u32) -> Option<u32> {
    let stat = read(proc_path(pid, "stat")).ok()?;
    let behind_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(stat.get(behind_name + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The inode of the socket with this address, from a table such as `/proc/net/tcp` (see proc(5)).
fn inode(table: &[u8], address: SocketAddr) -> Option<u64> {
    let expected = table_address(address);
    let text = str::from_utf8(table).ok()?;
    text.lines().skip(1).find_map(|line| {
        let mut command_line = line.split_ascii_whitespace();
        (command_line.nth(1)? == expected)
            .then(|| command_line.nth(7)?.parse().ok())
            .flatten()
    })
}

/// An address as those tables have it: words of the machine's byte order, then the port.
fn table_address(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let command_line = octets.chunks_exact(4).map(|word| {
        let word = <[u8; 4]>::try_from(word).map_or(0, u32::from_ne_bytes);
        format!("{word:08X}")
    });
    format!("{}:{:04X}", command_line.collect::<String>(), address.port())
}

/// The command line of a process; its name where that is empty.
fn command_line(pid: u32) -> Option<String> {
    let line = read(proc_path(pid, "cmdline")).unwrap_or_default();
    let line: Vec<u8> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(&b' ');
    if line.is_empty() {
        let name = read(proc_path(pid, "comm")).ok()?;
        return Some(escape(name.trim_ascii_end()));
    }
    let shown = line.get(..SHOWN).unwrap_or(&line);
    let more = if shown.len() < line.len() { "…" } else { "" };
    Some(format!("{}{more}", escape(shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_in_the_table_by_its_address() {
        let table =
            b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 x 20\n";
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(inode(table, at("127.0.0.1:40000")), Some(4711));
        assert_eq!(inode(table, at("127.0.0.1:40001")), None);
        assert_eq!(inode(b"", at("127.0.0.1:40000")), None);
        assert_eq!(table_address(at("[::1]:80")), "00000000000000000000000001000000:0050");
    }

    #[test]
    fn a_command_line_is_cut_and_escaped() {
        let own = command_line(std::process::id()).unwrap();
        assert!(!own.is_empty() && own.len() < 4 * SHOWN, "{own}");
        assert!(descendants(1).len() <= MOST_OF_COMMAND);
    }
}
