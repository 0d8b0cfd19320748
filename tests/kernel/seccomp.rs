//! The filters on a real kernel: calls really made, bare and under the filters, each refusal beside a twin that succeeds.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::LazyLock;

    use stockade::backend::namespaces::NetworkNamespace;
    use stockade::backend::seccomp::{
        Attempts, Attributes, Copies, IpSockets, Role, SeccompPlan, Settings, UnixDomain, lower,
    };
    use stockade::confine::layers::filter;
    use stockade::policy::{Network, UnixSockets};

    use crate::common::compiled;

    type Results = BTreeMap<String, String>;

    /// The compiled helper.
    static HELPER: LazyLock<PathBuf> = LazyLock::new(|| compiled("attempts"));

    #[expect(clippy::disallowed_methods, reason = "the test starts the helper itself")]
    fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
        Command::new(program)
    }

    #[expect(clippy::needless_pass_by_value, reason = "it reads well in a table")]
    fn settings(network: Network, unix_sockets: UnixSockets, role: Role) -> Settings {
        Settings {
            ip: IpSockets::of(&network, NetworkNamespace::Host),
            unix: UnixDomain::of(unix_sockets, 7),
            role,
            attempts: Attempts::Unseen,
            copies: Copies::None,
            attributes: Attributes::Brokered,
        }
    }

    fn attempts(plans: Vec<SeccompPlan>) -> Results {
        made(plans, &[])
    }

    /// Makes the attempts from a thread of its own: filters bind that thread and what it starts.
    fn made(plans: Vec<SeccompPlan>, more: &'static [&'static str]) -> Results {
        let helper = HELPER.clone();
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_owned();
        let output = std::thread::spawn(move || {
            // With nobody at the listening end, notified calls fail with ENOSYS (38).
            for plan in plans {
                drop(filter::install(&plan).unwrap());
            }
            command(helper).arg(place).args(more).output().unwrap()
        });
        let output = output.join().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| {
                let (name, result) = line.split_once(' ').unwrap();
                (name.to_owned(), result.to_owned())
            })
            .collect()
    }

    /// What a process of this role stands in: a command is born in the forker's filters.
    fn plans(settings: impl Fn(Role) -> Settings, role: Role) -> Vec<SeccompPlan> {
        let roles = [Role::Forker, Role::Command].into_iter().filter(|one| *one <= role);
        roles.map(|role| lower(settings(role)).unwrap()).collect()
    }

    #[expect(clippy::needless_pass_by_value, reason = "it reads well in a table")]
    fn confined(network: Network, unix_sockets: UnixSockets, role: Role) -> Results {
        attempts(plans(|role| settings(network.clone(), unix_sockets, role), role))
    }

    fn expect(results: &Results, wanted: &[(&str, &str)]) {
        for (name, want) in wanted {
            assert_eq!(
                results.get(*name).map(String::as_str),
                Some(*want),
                "{name} among {results:#?}"
            );
        }
    }

    /// Calls that every setting and role lets through, each the twin of a refused one.
    const TWINS: &[(&str, &str)] = &[
        ("socketpair-1", "ok"),
        ("socketpair-5", "ok"),
        ("sendto", "ok"),
        ("sendmsg", "ok"),
        ("sendmmsg", "ok"),
        ("clone", "ok"),
        ("unshare-files", "ok"),
        ("getpid", "ok"),
        ("personality", "ok"),
        ("personality-back", "ok"),
        ("prlimit-self", "ok"),
        ("prlimit-self-high", "ok"),
        ("setpriority-self", "ok"),
        ("getaffinity", "ok"),
        ("setaffinity-self", "ok"),
        ("pidfd_open", "ok"),
        ("pair-FIONREAD", "ok"),
        ("pair-shutdown", "ok"),
        ("lease-get", "ok"),
        ("dup", "ok"),
        ("tty-size", "ok"),
        ("tty-size-high", "ok"),
        ("file", "ok"),
        ("prctl-name", "ok"),
        ("create", "ok"),
        ("open-odd-mode", "ok"),
        ("mknod", "ok"),
        ("stat", "ok"),
        ("mkdir", "ok"),
    ];

    /// Calls that every setting and role refuses.
    const REFUSED: &[(&str, &str)] = &[
        ("listmount", "E1"),
        ("socketpair-2", "E97"),
        ("socket-family-38", "E97"),
        ("socket-family-40", "E97"),
        ("socket-packet-high", "E97"),
        ("clone-user", "E1"),
        ("clone3", "E38"),
        ("unshare-user", "E1"),
        ("unshare-user-high", "E1"),
        ("beyond", "E38"),
        ("io_uring_setup", "E38"),
        ("keyctl", "E38"),
        ("ptrace", "E1"),
        ("mount", "E1"),
        ("umount2", "E1"),
        ("chroot", "E1"),
        ("setns", "E1"),
        ("bpf", "E1"),
        ("userfaultfd", "E38"),
        ("shmget", "E38"),
        ("mq_unlink", "E38"),
        ("personality-exec", "E1"),
        ("setpriority-user", "E1"),
        ("TIOCSTI", "E1"),
        ("TIOCSTI-high", "E1"),
        ("TIOCLINUX", "E1"),
        ("SETFLAGS", "E1"),
        ("prctl-ptracer", "E1"),
        ("create-setuid", "E1"),
        ("mknod-setuid", "E1"),
    ];

    /// What comes of giving a pair a name: the kernel's own answers.
    const PAIRS_BARE: &[(&str, &str)] = &[
        ("pair-bind-abstract", "ok"),
        ("pair-bind-file", "ok"),
        ("pair-listen", "E22"),
        ("pair-accept", "E22"),
        ("pair-accept4", "E22"),
        ("pair-connect", "E111"),
    ];
    const PAIRS_NAMELESS: &[(&str, &str)] = &[
        ("pair-bind-abstract", "E95"),
        ("pair-bind-file", "E95"),
        ("pair-listen", "E95"),
        ("pair-accept", "E95"),
        ("pair-accept4", "E95"),
        ("pair-connect", "E95"),
    ];
    const INTERFACES_SHOWN: &[(&str, &str)] = &[
        ("SIOCGIFNAME", "ok"),
        ("SIOCGIFNAME-high", "ok"),
        ("SIOCGIFHWADDR", "ok"),
    ];
    const INTERFACES_HIDDEN: &[(&str, &str)] = &[
        ("SIOCGIFNAME", "E1"),
        ("SIOCGIFNAME-high", "E1"),
        ("SIOCGIFHWADDR", "E1"),
    ];
    const LEASES_TAKEN: &[(&str, &str)] = &[
        ("lease", "ok"),
        ("lease-high", "ok"),
        ("lease-end", "ok"),
        ("notify", "ok"),
        ("notify-high", "ok"),
    ];
    const LEASES_REFUSED: &[(&str, &str)] = &[
        ("lease", "E1"),
        ("lease-high", "E1"),
        ("delegation", "E1"),
        ("notify", "E1"),
        ("notify-high", "E1"),
    ];

    #[test]
    fn a_pair_takes_no_name_where_it_is_the_only_socket_and_stays_a_pair() {
        expect(&attempts(Vec::new()), PAIRS_BARE);
        for role in [Role::Forker, Role::Command] {
            for unix_sockets in [UnixSockets::None, UnixSockets::WithinRoots] {
                let results = confined(Network::Off, unix_sockets, role);
                expect(&results, PAIRS_NAMELESS);
                expect(&results, TWINS);
            }
            expect(&confined(Network::Off, UnixSockets::All, role), PAIRS_BARE);
            expect(&confined(Network::Full, UnixSockets::None, role), PAIRS_BARE);
        }
    }

    #[test]
    fn a_pair_shows_the_interfaces_of_the_machine_only_with_network() {
        expect(&attempts(Vec::new()), INTERFACES_SHOWN);
        for role in [Role::Forker, Role::Command] {
            for unix_sockets in [UnixSockets::None, UnixSockets::All] {
                expect(&confined(Network::Off, unix_sockets, role), INTERFACES_HIDDEN);
                expect(&confined(Network::Full, unix_sockets, role), INTERFACES_SHOWN);
            }
        }
    }

    #[test]
    fn a_command_holds_up_no_writer_by_a_lease() {
        expect(&attempts(Vec::new()), LEASES_TAKEN);
        for network in [Network::Off, Network::Full] {
            expect(
                &confined(network.clone(), UnixSockets::None, Role::Command),
                LEASES_REFUSED,
            );
            expect(
                &confined(network.clone(), UnixSockets::None, Role::Forker),
                LEASES_TAKEN,
            );
        }
    }

    #[test]
    fn the_attempts_reach_the_kernel_when_nothing_is_installed() {
        let bare = attempts(Vec::new());
        expect(&bare, TWINS);
        let reached = [
            "socket-family-1",
            "socket-family-2",
            "socketpair-2",
            "clone3",
            "create-setuid",
            "mknod-setuid",
        ];
        let reached = reached
            .into_iter()
            .chain(["setpriority-user", "shmget", "fchmodat", "utimensat", "openat2"]);
        for name in reached {
            assert_eq!(bare[name], "ok", "{name}");
        }
    }

    #[test]
    fn a_command_without_network_gets_what_the_table_says() {
        let results = confined(Network::Off, UnixSockets::None, Role::Command);
        expect(&results, TWINS);
        expect(&results, REFUSED);
        for family in 0..48 {
            assert_eq!(results[&format!("socket-family-{family}")], "E97");
        }
        expect(
            &results,
            &[
                ("socket-udp", "E97"),
                ("socket-inet-high", "E97"),
                ("sendto-fastopen", "E95"),
                ("sendmsg-fastopen", "E95"),
                ("sendmmsg-fastopen", "E95"),
                // The broker hears of these, and here nobody listens.
                ("prlimit-other", "E38"),
                ("setpriority-other", "E38"),
                ("setaffinity-other", "E38"),
                ("process_vm_readv", "E1"),
                ("statmount", "E1"),
                ("openat2", "E38"),
            ],
        );
    }

    #[test]
    fn a_command_with_network_gets_ip_and_route_netlink_and_nothing_else() {
        let results = confined(Network::Full, UnixSockets::None, Role::Command);
        expect(&results, TWINS);
        expect(&results, REFUSED);
        expect(
            &results,
            &[
                ("socket-family-2", "ok"),
                ("socket-family-16", "ok"),
                ("socket-udp", "ok"),
                ("socket-inet-high", "ok"),
                ("socket-family-1", "E97"),
                ("socket-family-17", "E97"),
                ("socket-netlink-audit", "E97"),
                ("socket-mptcp", "E93"),
                ("socket-sctp", "E93"),
            ],
        );
    }

    #[test]
    fn unix_sockets_are_made_only_where_all_of_them_are_permitted() {
        let all = confined(Network::Off, UnixSockets::All, Role::Command);
        expect(&all, &[("socket-family-1", "ok"), ("socket-family-2", "E97")]);
        let within_roots = confined(Network::Off, UnixSockets::WithinRoots, Role::Command);
        expect(&within_roots, &[("socket-family-1", "E97"), ("socketpair-1", "ok")]);
    }

    #[test]
    fn attribute_calls_of_a_command_fail_when_nobody_listens_and_those_of_the_forker_work() {
        let command = confined(Network::Off, UnixSockets::None, Role::Command);
        let forker = confined(Network::Off, UnixSockets::None, Role::Forker);
        for name in ["fchmodat", "fchmod", "fchownat", "utimensat"] {
            assert_eq!((command[name].as_str(), forker[name].as_str()), ("E38", "ok"), "{name}");
        }
        assert_eq!(command["fremovexattr"], "E38");
        assert_ne!(forker["fremovexattr"], "E38");
    }

    #[test]
    fn the_forker_keeps_what_its_broker_needs_and_loses_the_rest() {
        let forker = confined(Network::Off, UnixSockets::None, Role::Forker);
        expect(&forker, TWINS);
        expect(&forker, REFUSED);
        expect(
            &forker,
            &[
                ("process_vm_readv", "ok"),
                ("prlimit-other", "ok"),
                ("setpriority-other", "ok"),
                ("setaffinity-other", "ok"),
                ("openat2", "ok"),
            ],
        );
        // The kernel's own answer to a request that cannot be read, or that it does not know.
        assert!(["E14", "E38"].contains(&forker["statmount"].as_str()), "{forker:#?}");
    }

    #[test]
    fn a_commands_filters_stack_on_the_forkers() {
        let forker = lower(settings(Network::Off, UnixSockets::None, Role::Forker)).unwrap();
        let command = lower(settings(Network::Off, UnixSockets::None, Role::Command)).unwrap();
        let stacked = std::thread::spawn(move || {
            filter::install(&forker).unwrap();
            filter::install(&command).unwrap().is_some()
        });
        assert!(stacked.join().unwrap());
    }

    /// Here the runner's listener is closed already, which is when the kernel itself would permit another.
    #[test]
    fn a_command_takes_filters_of_its_own_but_no_listener() {
        let filters = ["filter", "filter-for-all-threads", "filter-by-prctl"].map(|name| (name, "ok"));
        let listeners = ["listener", "listener-high", "listener-with-more"];
        let under = |role| plans(|role| settings(Network::Off, UnixSockets::None, role), role);
        for plans in [Vec::new(), under(Role::Forker)] {
            let free = made(plans, &["filters"]);
            expect(&free, &filters);
            expect(&free, &listeners.map(|name| (name, "ok")));
        }
        let command = made(under(Role::Command), &["filters"]);
        expect(&command, &filters);
        expect(&command, &listeners.map(|name| (name, "E16")));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_other_call_tables_of_the_machine_are_closed() {
        let results = confined(Network::Full, UnixSockets::All, Role::Command);
        // 31 is SIGSYS.
        expect(&results, &[("int80", "S31"), ("x32-getpid", "E38"), ("getpid", "ok")]);
    }
}
