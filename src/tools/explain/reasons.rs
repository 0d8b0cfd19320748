//! Why something was denied: the clause, its line, and what would have to change.

use std::net::SocketAddr;

use super::answer::Permitted;
use super::denials::{Denial, by_directory};
use super::explained::{Blocked, Layer, Subject, Wanted};
use super::forker_plan::ForkerPlan;
use super::judge::operation;
use super::probes::is_own_proc;
use crate::backend::seccomp::table::Table;
use crate::backend::seccomp::{Attempts, Call, Copies, NATIVE_ARCH, Role, Verdict};
use crate::config::amend::Writing;
use crate::confine::wire::attempted::{Arguments, Node};
use crate::policy::path::{display, escape};
use crate::policy::{AbsPath, Network, Operation, UnixSockets};
use crate::profile::Profile;
use crate::tools::filters;

const DNS: u16 = 53;

impl ForkerPlan {
    pub(super) fn reasons(&self, denial: Denial, times: u64, writing: Writing) -> Blocked {
        match denial {
            Denial::File {
                wanted,
                path,
                checked_path,
                by,
            } => Blocked {
                times,
                ..self.of_file(wanted, &path, &checked_path, by, writing)
            },
            Denial::Node { node, path, by } => of_node(node, &path, by, times),
            Denial::Unix(path) => Blocked {
                clause: Some(format!("unix_sockets {}", self.profile.unix_sockets)),
                origin: self.line("shell.unix_sockets"),
                change: vec![
                    "`shell: {unix_sockets: all}`, and a root that holds the socket, would let it be reached"
                        .to_owned(),
                ],
                ..plainly(
                    Wanted::Connect,
                    shown(&path),
                    Subject::UnixSocket(path.clone()),
                    times,
                    self.outermost(),
                )
            },
            Denial::Address(address) => self.of_address(address, times),
            Denial::Call { number, arguments } => self.of_call(number, arguments, times),
        }
    }

    fn of_file(&self, wanted: Wanted, path: &AbsPath, checked_path: &AbsPath, by: Layer, writing: Writing) -> Blocked {
        let subject = |permitted| Subject::File(path.clone(), permitted);
        let blocked = plainly(wanted, shown(path), Subject::Nothing, 1, by);
        if by == Layer::Capabilities {
            return Blocked {
                notes: vec![
                    "its owner and mode refuse it: root has no capabilities here, and no config gives them".to_owned(),
                ],
                ..blocked
            };
        }
        if by == Layer::Landlock && is_own_proc(path) {
            return Blocked {
                change: vec![
                    "in the `namespaces` regime (`--backend namespaces`) a command sees what the kernel says of itself; Bun, the JVM and \
                     debuggers need that"
                        .to_owned(),
                ],
                notes: vec!["Landlock cannot give a command its own part of /proc without those of others".to_owned()],
                ..blocked
            };
        }
        let operation = operation(wanted).unwrap_or(Operation::Read);
        let answer = self.permissions().answer(operation, checked_path, writing, &self.plan);
        let missed = self.approved.explain(operation, checked_path);
        let missed = missed
            .missed
            .first()
            .map(|grant| (grant.to_string(), grant.origin.to_string()));
        let decides = answer
            .clause
            .as_ref()
            .map(|clause| (clause.text.clone(), clause.origin.clone()));
        let stricter = match answer.permitted {
            Permitted::Yes => self.stricter(wanted, operation, path),
            Permitted::Approved | Permitted::No => None,
        };
        let limiting = stricter.as_ref().map(|line| (line.clause.clone(), line.origin.clone()));
        let (clause, origin) = limiting.or(decides).or(missed).unzip();
        let mut notes = answer.notes.clone();
        if wanted == Wanted::Attributes && answer.permitted == Permitted::Yes {
            notes.push(
                "no config permits this: set-uid and set-gid bits, and extended attributes other than `user.*`, access lists that let others \
                 in, and another group than its own"
                    .to_owned(),
            );
        }
        let change = match answer.permitted {
            Permitted::No => self.opening(wanted, operation, path, writing),
            Permitted::Approved => vec!["a command that was asked about and approved may".to_owned()],
            // The profile gives it and the backend blocks more.
            Permitted::Yes => {
                let details = answer.backends.iter().filter_map(|backend| backend.detail.clone());
                match stricter {
                    None => details.collect(),
                    Some(line) => {
                        notes.extend(details);
                        line.change
                    }
                }
            }
        };
        Blocked {
            clause,
            origin,
            change,
            notes,
            subject: subject(answer.permitted),
            ..blocked
        }
    }

    /// What a person would edit for something that the config does not give. A name that was asked about in the place of
    /// another is nobody's to grant, so it is not looked at.
    fn opening(&self, wanted: Wanted, operation: Operation, path: &AbsPath, writing: Writing) -> Vec<String> {
        // A name comes and goes by its directory, and a root must be there before what is made in it.
        let around = path.parent().filter(|_| by_directory(wanted));
        let paths = [around.as_ref(), Some(path)].into_iter().flatten();
        let mut answers = paths.map(|path| self.permissions().answer(operation, path, writing, &self.plan));
        let closed = answers.find(|answer| answer.permitted == Permitted::No);
        closed.map(|answer| answer.change).unwrap_or_default()
    }

    fn of_address(&self, address: SocketAddr, times: u64) -> Blocked {
        let proxy =
            "what is listed is reached through the proxy that HTTPS_PROXY and its kin name, and by nothing else";
        let notes = match &self.profile.network {
            Network::Hosts(_) => vec![proxy.to_owned()],
            Network::Off | Network::Full => Vec::new(),
        };
        let change = if address.port() == DNS {
            "the proxy resolves the names of the hosts that `shell: {network: {allow: [\"HOST:PORT\"]}}` lists"
                .to_owned()
        } else {
            format!(
                "`shell: {{network: {{allow: [\"{address}\"]}}}}` or `--net {address}` would let a program reach it through the proxy"
            )
        };
        Blocked {
            clause: Some(format!("network {}", self.profile.network)),
            origin: self.line("shell.network"),
            change: vec![change],
            notes,
            ..plainly(
                Wanted::Connect,
                address.to_string(),
                Subject::Address(address),
                times,
                if self.is_in_namespaces() {
                    Layer::NetworkNamespace
                } else {
                    Layer::Landlock
                },
            )
        }
    }

    fn of_call(&self, number: u32, arguments: Arguments, times: u64) -> Blocked {
        let name = call_name(number).map_or_else(|| format!("number {number}"), str::to_owned);
        let [first, kind, protocol, _] = arguments;
        let family = i32::try_from(first & u64::from(u32::MAX)).unwrap_or(-1);
        let is_socket = i64::from(number) == libc::SYS_socket;
        match family {
            libc::AF_INET | libc::AF_INET6
                if is_socket && is_plain(kind) && self.profile.network != Network::Full =>
            {
                Blocked {
                clause: Some(format!("network {}", self.profile.network)),
                origin: self.line("shell.network"),
                change: vec![
                    "`shell: {network: {allow: [\"HOST:PORT\"]}}`, or `--net HOST:PORT`, would let it reach that host, where \
                     namespaces work; `network: true` every host"
                        .to_owned(),
                ],
                ..plainly(Wanted::Socket, "IP".to_owned(), Subject::IpSockets, times, Layer::Seccomp)
                }
            }
            libc::AF_UNIX if is_socket && self.profile.unix_sockets != UnixSockets::All => Blocked {
                clause: Some(format!("unix_sockets {}", self.profile.unix_sockets)),
                origin: self.line("shell.unix_sockets"),
                change: vec!["`shell: {unix_sockets: all}` would permit it".to_owned()],
                ..plainly(Wanted::Socket, "Unix".to_owned(), Subject::UnixSockets, times, Layer::Seccomp)
            },
            _ => {
                let mut args = [0; 6];
                args[..arguments.len()].copy_from_slice(&arguments);
                let call = Call {
                    arch: NATIVE_ARCH,
                    nr: number,
                    args,
                };
                let settings = |profile: &Profile| filters::settings(profile, Role::Command, Attempts::Unseen, Copies::None, self.options);
                // What would be said with the network on is what no config can change.
                let open = Profile {
                    network: Network::Full,
                    ..self.profile.clone()
                };
                let (verdict, reason) = Table::of(settings(&open)).answer(&call);
                let opens = is_socket && self.profile.network != Network::Full && verdict == Verdict::Allow;
                let (wanted, what) = if is_socket {
                    let of_protocol = match protocol & u64::from(u32::MAX) {
                        0 => String::new(),
                        protocol => format!(", protocol {protocol}"),
                    };
                    (Wanted::Socket, format!("family {family}{of_protocol}"))
                } else {
                    (Wanted::Call, name)
                };
                let (clause, origin, change, notes) = if opens {
                    (
                        Some(format!("network {}", self.profile.network)),
                        self.line("shell.network"),
                        vec!["`shell: {network: true}` would permit it".to_owned()],
                        Vec::new(),
                    )
                } else {
                    (None, None, Vec::new(), vec![format!("no config permits it ({reason})")])
                };
                Blocked {
                    clause,
                    origin,
                    change,
                    notes,
                    ..plainly(wanted, what, Subject::Nothing, times, Layer::Seccomp)
                }
            }
        }
    }

    fn outermost(&self) -> Layer {
        if self.is_in_namespaces() {
            Layer::Mounts
        } else {
            Layer::Landlock
        }
    }

    pub(super) fn line(&self, key: &str) -> Option<String> {
        let origin = self.policy.ceilings.lines.get(key)?;
        Some(escape(origin.to_string().as_bytes()))
    }
}

/// What is never made has no clause, wherever it was to be.
fn of_node(node: Node, path: &AbsPath, by: Layer, times: u64) -> Blocked {
    let (what, why) = match node {
        Node::Device => (
            "device node",
            "no config permits it: whoever opens a device node reaches the device itself, whatever the clauses say of its path; \
             a device that is there already can be given by `sandbox: {base: {read_write: [PATH]}}`",
        ),
        Node::Whiteout => (
            "whiteout",
            "no config permits it: it is a device node, and Landlock lets none be made",
        ),
    };
    Blocked {
        notes: vec![why.to_owned()],
        ..plainly(
            Wanted::Make,
            format!("{what} {}", shown(path)),
            Subject::Nothing,
            times,
            by,
        )
    }
}

/// Whether this kind of socket is of TCP or UDP; the rest is raw packets and what nothing here serves.
fn is_plain(kind: u64) -> bool {
    let kind = i32::try_from(kind & 0xf).unwrap_or(-1);
    kind == libc::SOCK_STREAM || kind == libc::SOCK_DGRAM
}

/// The name of a system call, where it has one.
pub(crate) fn call_name(number: u32) -> Option<&'static str> {
    let number = usize::try_from(number).ok()?;
    syscalls::Sysno::new(number).map(|call| call.name())
}

fn shown(path: &AbsPath) -> String {
    display(path.as_path().as_os_str())
}

fn plainly(wanted: Wanted, what: String, subject: Subject, times: u64, by: Layer) -> Blocked {
    Blocked {
        wanted,
        what,
        times,
        by,
        clause: None,
        origin: None,
        change: Vec::new(),
        notes: Vec::new(),
        subject,
    }
}
