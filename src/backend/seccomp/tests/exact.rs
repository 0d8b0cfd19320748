//! Untouched filters answer exactly as the table.

use super::*;
use crate::policy::UnixSockets;

#[test]
fn the_filters_answer_every_number_exactly_as_the_table() {
    for settings in all_settings() {
        let whole = Lowered::under(settings);
        let filters = read(whole.stack()).unwrap();
        let table = Table::of(settings);
        for call in plain_calls() {
            assert_eq!(stacked(&filters, &call), table.answer(&call).0, "{settings:?}: {call}");
        }
    }
}

#[test]
fn the_filters_answer_awkward_arguments_exactly_as_the_table() {
    for settings in all_settings() {
        let whole = Lowered::under(settings);
        let filters = read(whole.stack()).unwrap();
        let table = Table::of(settings);
        let bits = |call: Call| {
            (0..64).map(move |bit| Call {
                args: call.args.map(|arg| arg ^ (1 << bit)),
                ..call
            })
        };
        let edges = awkward_calls(&table)
            .chain(socket_calls())
            .chain(combined_calls(&table));
        for call in edges.chain(awkward_calls(&table).flat_map(bits)) {
            assert_eq!(stacked(&filters, &call), table.answer(&call).0, "{settings:?}: {call}");
        }
    }
}

#[test]
fn every_lowered_plan_is_found_valid() {
    for settings in all_settings() {
        assert_eq!(Lowered::under(settings).validate(settings), Ok(()), "{settings:?}");
    }
}

#[test]
fn every_clause_can_be_met() {
    for settings in all_settings() {
        for (number, active_rows) in Table::of(settings).entries() {
            for clause in clauses(active_rows) {
                for test in clause {
                    assert!(test.passes(meeting_value(clause, test.arg())), "{number}: {clause:?}");
                }
            }
        }
    }
}

#[test]
fn every_row_speaks_of_known_numbers() {
    let rows: Vec<&Row> = [
        rows::ROWS,
        rows::LEGACY,
        conditions::ROWS,
        conditions::LEGACY,
        ioctl::ROWS,
    ]
    .into_iter()
    .flatten()
    .collect();
    for row in rows {
        for number in row.calls {
            let number = u32::try_from(*number).unwrap();
            assert!(number <= HIGHEST && !GAP.contains(&number), "{}: {number}", row.reason);
        }
    }
}

#[test]
fn the_forker_may_do_all_that_a_command_may() {
    for command in all_settings()
        .into_iter()
        .filter(|settings| settings.role == Role::Command)
    {
        let forker = Settings {
            role: Role::Forker,
            ..command
        };
        let (command, forker) = (Table::of(command), Table::of(forker));
        for call in plain_calls()
            .chain(combined_calls(&command))
            .chain(combined_calls(&forker))
        {
            assert!(command.answer(&call).0.at_least(forker.answer(&call).0), "{call}");
        }
    }
}

#[test]
fn calls_of_daily_life_are_allowed_whatever_their_arguments() {
    for settings in unseen_settings() {
        let whole = Lowered::under(settings);
        for number in [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_close,
            libc::SYS_execve,
            libc::SYS_futex,
            libc::SYS_mmap,
            libc::SYS_newfstatat,
            libc::SYS_getdents64,
            libc::SYS_statx,
            libc::SYS_pidfd_open,
            libc::SYS_memfd_create,
            libc::SYS_execveat,
            libc::SYS_inotify_add_watch,
            libc::SYS_setsid,
            libc::SYS_flock,
        ] {
            let call = Call {
                arch: NATIVE_ARCH,
                nr: u32::try_from(number).unwrap(),
                args: [0; 6],
            };
            for filter in read(whole.stack()).unwrap() {
                assert_eq!(filter.enter(&call).constant(), Some(Verdict::Allow), "{number}");
            }
        }
    }
}

#[test]
fn the_stack_stays_small() {
    for settings in all_settings() {
        let plan = lower(settings).unwrap();
        let total: usize = plan
            .programs
            .iter()
            .chain(&plan.notify)
            .map(|program| program.len() + 4)
            .sum();
        // Of the forker's calls that are refused there is nobody to tell; they are notified all the same.
        let programs = match (settings.attempts, settings.role) {
            (Attempts::Unseen, _) | (_, Role::Command) => 1,
            (Attempts::Watched | Attempts::WatchedWithLooks, Role::Forker) => 2,
        };
        // What each command installs; the forker does it once.
        let most = match (settings.attempts, settings.role) {
            (Attempts::Unseen, Role::Command) => 280,
            (Attempts::Watched | Attempts::WatchedWithLooks, Role::Command) | (_, Role::Forker) => 1200,
        };
        assert!(
            plan.programs.len() == programs && total < most,
            "{settings:?}: {} programs, {total}",
            plan.programs.len()
        );
    }
}

#[test]
fn a_call_through_another_architecture_kills_and_an_x32_number_does_not_exist() {
    let whole = Lowered::under(strict(Role::Command));
    let filters = read(whole.stack()).unwrap();
    let i386 = Call {
        arch: 0x4000_0003,
        nr: 1,
        args: [0; 6],
    };
    let x32 = Call {
        arch: NATIVE_ARCH,
        nr: 0x4000_0000,
        args: [0; 6],
    };
    let native = Call { nr: 1, ..x32 };
    assert_eq!(stacked(&filters, &i386), Verdict::KillProcess);
    assert_eq!(stacked(&filters, &x32), Verdict::Errno(38));
    assert_eq!(stacked(&filters, &native), Verdict::Allow);
}

#[test]
fn high_bits_hide_nothing() {
    let off = strict(Role::Command);
    assert_eq!(answer(off, libc::SYS_ioctl, &[0, 0x1_0000_5412]), Verdict::Errno(1));
    assert_eq!(answer(off, libc::SYS_ioctl, &[0, 0x5401]), Verdict::Allow);
    assert_eq!(
        answer(open(Role::Command), libc::SYS_socket, &[0x11 | 1 << 32, 3, 0]),
        Verdict::Errno(97)
    );
    assert_eq!(
        answer(open(Role::Command), libc::SYS_socket, &[2 | 1 << 32, 1, 0]),
        Verdict::Allow
    );
    assert_eq!(answer(off, libc::SYS_prlimit64, &[1 | 1 << 32]), Verdict::Notify);
    assert_eq!(answer(off, libc::SYS_prlimit64, &[1 << 32]), Verdict::Allow);
}

#[test]
fn a_pair_takes_no_name_exactly_where_no_other_socket_can_be() {
    for settings in all_settings() {
        let made = |family| answer(settings, libc::SYS_socket, &[family, 1, 0]) == Verdict::Allow;
        let expected = if made(1) || made(2) {
            None
        } else {
            Some(refused(settings, 95))
        };
        for number in [
            libc::SYS_bind,
            libc::SYS_listen,
            libc::SYS_accept,
            libc::SYS_accept4,
            libc::SYS_connect,
        ] {
            let is_attempt = [libc::SYS_bind, libc::SYS_connect].contains(&number);
            let watched = settings.attempts != Attempts::Unseen && settings.role == Role::Command;
            let permitted = if is_attempt && watched {
                Verdict::Notify
            } else {
                Verdict::Allow
            };
            let expected = expected.unwrap_or(permitted);
            assert_eq!(answer(settings, number, &[3, 0, 0]), expected, "{settings:?}: {number}");
        }
        for number in [libc::SYS_shutdown, libc::SYS_getsockname, libc::SYS_setsockopt] {
            assert_eq!(
                answer(settings, number, &[3, 0, 0]),
                Verdict::Allow,
                "{settings:?}: {number}"
            );
        }
    }
}

#[test]
fn interfaces_are_shown_only_with_network() {
    for settings in all_settings() {
        let asked = |request: u64| answer(settings, libc::SYS_ioctl, &[3, request]);
        let expected = match settings.ip {
            IpSockets::Refused => refused(settings, 1),
            IpSockets::Allowed => Verdict::Allow,
        };
        // SIOCGIFNAME, SIOCGIFHWADDR, SIOCGSTAMP_NEW with its size, SIOCGIWNAME; the second under high bits.
        for request in [0x8910, 0x7_0000_8927, 0x8010_8906, 0x8B01] {
            assert_eq!(asked(request), expected, "{settings:?}: {request:#x}");
        }
        // FIONREAD, TIOCOUTQ, FIONBIO, and the types beside.
        for request in [0x541B, 0x5411, 0x5421, 0x8810, 0x8A10, 0x8C01] {
            assert_eq!(asked(request), Verdict::Allow, "{settings:?}: {request:#x}");
        }
    }
}

#[test]
fn a_command_takes_no_lease_and_no_notification_by_signal() {
    for settings in all_settings() {
        let asked = |request: u64| answer(settings, libc::SYS_fcntl, &[3, request]);
        let expected = match settings.role {
            Role::Forker => Verdict::Allow,
            Role::Command => refused(settings, 1),
        };
        for request in [0x400, 0x402, 0x410, 0x400 | 1 << 32, 0x402 | 1 << 63, 0x410 | 1 << 32] {
            assert_eq!(asked(request), expected, "{settings:?}: {request:#x}");
        }
        for request in (0..48).chain(1025..1040).filter(|request| *request != 1026) {
            assert_eq!(asked(request), Verdict::Allow, "{settings:?}: {request}");
        }
    }
}

#[test]
fn a_command_gets_no_listener_and_any_other_filter() {
    for settings in all_settings() {
        let asked = |operation, flags| answer(settings, libc::SYS_seccomp, &[operation, flags]);
        let expected = match settings.role {
            Role::Forker => Verdict::Allow,
            Role::Command => Verdict::Errno(16),
        };
        for flags in [8, 8 | 0x20, 8 | 0x11, 0xFFFF_FFFF, 8 | 1 << 32] {
            assert_eq!(asked(1, flags), expected, "{settings:?}: {flags:#x}");
            assert_eq!(asked(1 | 1 << 32, flags), expected, "{settings:?}: {flags:#x}");
        }
        // Strict mode, the questions, and filters with other flags.
        for (operation, flags) in [(0, 0), (2, 0), (3, 0), (1, 0), (1, 0x37), (1, 8 << 32)] {
            assert_eq!(
                asked(operation, flags),
                Verdict::Allow,
                "{settings:?}: {operation} {flags:#x}"
            );
        }
    }
}

#[test]
fn unix_sockets_within_roots_wait_for_a_landlock_that_holds_them() {
    let settings = |abi| Settings {
        unix: UnixDomain::of(UnixSockets::WithinRoots, abi),
        ..strict(Role::Command)
    };
    assert_eq!(answer(settings(8), libc::SYS_socket, &[1, 1, 0]), Verdict::Errno(97));
    assert_eq!(answer(settings(9), libc::SYS_socket, &[1, 1, 0]), Verdict::Allow);
}

#[test]
fn attribute_calls_go_to_the_broker_and_the_forker_makes_them() {
    for number in [
        libc::SYS_fchmodat,
        libc::SYS_fchownat,
        libc::SYS_utimensat,
        libc::SYS_fsetxattr,
        452,
        463,
        466,
    ] {
        assert_eq!(answer(strict(Role::Command), number, &[]), Verdict::Notify);
        assert_eq!(answer(strict(Role::Forker), number, &[]), Verdict::Allow);
    }
}

#[test]
fn a_set_uid_mode_counts_only_where_a_file_is_made() {
    let command = strict(Role::Command);
    assert_eq!(
        answer(command, libc::SYS_openat, &[0, 0, 0o101, 0o4755]),
        Verdict::Errno(1)
    );
    assert_eq!(
        answer(command, libc::SYS_openat, &[0, 0, 0o20_200_001, 0o2755]),
        Verdict::Errno(1)
    );
    assert_eq!(answer(command, libc::SYS_openat, &[0, 0, 0o101, 0o755]), Verdict::Allow);
    assert_eq!(answer(command, libc::SYS_openat, &[0, 0, 0, 0o4755]), Verdict::Allow);
}

#[test]
fn a_plan_survives_the_wire() {
    let plan = lower(strict(Role::Command)).unwrap();
    let bytes = postcard::to_stdvec(&plan).unwrap();
    assert_eq!(postcard::from_bytes::<SeccompPlan>(&bytes).unwrap(), plan);
}

#[test]
fn tests_look_at_low_halves_only() {
    let call = Call {
        arch: NATIVE_ARCH,
        nr: 0,
        args: [7 | 9 << 32, 0, 0, 0, 0, 0],
    };
    assert!(Test::Is(0, 7).holds(&call));
    assert!(!Test::IsNot(0, 7).holds(&call));
    assert!(Test::Bits(0, 4, 4).holds(&call));
    assert!(Action::Allow != Action::Notify(&[]));
}
