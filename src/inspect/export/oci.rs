//! The filters as `linux.seccomp` of an OCI runtime config.
//!
//! An allow-list: what is not named fails with `ENOSYS`, and so does every number that a later kernel adds.
//! Runtimes OR the conditions of one rule that look at the same argument, so each rule has at most one
//! for each, a comparison under a mask of the low 32 bits; [`cubes`](super::cubes) says how the table's clauses become such rules.
//! Stricter than the filters of a command here: attribute changes (chmod and its kin), which a broker
//! judges here, fail; so do calls that the runtime's libseccomp has no name for. A call that is refused by an
//! argument fails with `ENOSYS`, whatever error the filters give.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cubes::{Cube, permitted};
use super::error::ExportError;
use crate::backend::landlock::rights::OLDEST_ABI;
use crate::backend::namespaces::NetworkNamespace;
use crate::backend::seccomp::table::{Action, Clause, Errno, Table};
use crate::backend::seccomp::{Attempts, Attributes, Copies, HIGHEST, IpSockets, Role, Settings, UnixDomain};
use crate::profile::Profile;
use crate::tools::explain::call_name;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: &str = "SCMP_ARCH_X86_64";
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: &str = "SCMP_ARCH_AARCH64";

/// `linux.seccomp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Seccomp {
    /// What happens to what no rule names.
    default_action: &'static str,
    /// With which error.
    default_errno_ret: u32,
    /// The one architecture; calls of any other kill.
    architectures: [&'static str; 1],
    /// The rules.
    syscalls: Vec<Syscalls>,
}

/// What some calls are answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Syscalls {
    names: Vec<&'static str>,
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno_ret: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<Argument>,
    /// For people; runtimes pass over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
}

/// One condition: `argument & value == valueTwo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    index: u32,
    value: u64,
    value_two: u64,
    op: &'static str,
}

impl Seccomp {
    /// The rules for commands under a profile.
    pub fn of(profile: &Profile) -> Result<Self, ExportError> {
        // Where it is used there may be no Landlock to tell sockets apart, so the filter has to.
        let settings = Settings {
            ip: IpSockets::of(&profile.network, NetworkNamespace::Host),
            unix: UnixDomain::of(profile.unix_sockets, OLDEST_ABI),
            role: Role::Command,
            attempts: Attempts::Unseen,
            copies: Copies::None,
            attributes: Attributes::Brokered,
        };
        Self::under(settings)
    }

    /// The rules for these settings.
    pub fn under(settings: Settings) -> Result<Self, ExportError> {
        let table = Table::of(settings);
        let mut plain = Vec::new();
        let mut refused: BTreeMap<(u32, &'static str), Vec<&'static str>> = BTreeMap::new();
        let mut judged = Vec::new();
        for number in 0..=HIGHEST {
            let Some(name) = call_name(number) else { continue };
            let active_rows = table.rows_for(number);
            let mut clauses: Vec<Clause> = Vec::new();
            let mut always = None;
            let mut reasons = Vec::new();
            for one in active_rows {
                match one.action {
                    Action::Allow => {}
                    Action::Notify([]) | Action::Report([]) => always = always.or(Some((Errno::Perm, one.reason))),
                    Action::Error(errno) => always = always.or(Some((errno, one.reason))),
                    Action::ErrorIf(_, more) | Action::Notify(more) | Action::Report(more) => {
                        clauses.extend(more);
                        reasons.push(one.reason);
                    }
                }
            }
            if let Some((errno, reason)) = always {
                if errno != Errno::NoSys {
                    refused.entry((errno.code().into(), reason)).or_default().push(name);
                }
            } else if clauses.is_empty() {
                plain.push(name);
            } else {
                judged.extend(permitted(&clauses).map_err(ExportError::Filter)?.iter().map(|cube| {
                    Syscalls::allow(
                        vec![name],
                        cube,
                        Some(format!("not where it {}", reasons.join("; or "))),
                    )
                }));
            }
        }
        plain.sort_unstable();
        let mut syscalls = vec![Syscalls::allow(plain, &Cube::default(), None)];
        syscalls.extend(judged);
        syscalls.extend(refused.into_iter().map(|((errno, reason), mut names)| {
            names.sort_unstable();
            Syscalls {
                names,
                action: "SCMP_ACT_ERRNO",
                errno_ret: Some(errno),
                args: Vec::new(),
                comment: Some(reason.to_owned()),
            }
        }));
        Ok(Self {
            default_action: "SCMP_ACT_ERRNO",
            default_errno_ret: Errno::NoSys.code().into(),
            architectures: [ARCHITECTURE],
            syscalls,
        })
    }
}

impl Syscalls {
    fn allow(names: Vec<&'static str>, cube: &Cube, comment: Option<String>) -> Self {
        let args = cube.iter().map(|(index, mask, value)| Argument {
            index,
            value: mask.into(),
            value_two: value.into(),
            op: "SCMP_CMP_MASKED_EQ",
        });
        Self {
            names,
            action: "SCMP_ACT_ALLOW",
            errno_ret: None,
            args: args.collect(),
            comment,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::backend::seccomp::table::Test;
    use crate::backend::seccomp::{Call, NATIVE_ARCH, Verdict};

    /// Whether a runtime would let the call pass.
    fn lets_pass(seccomp: &Seccomp, number: u32, args: [u64; 6]) -> bool {
        let Some(name) = call_name(number) else { return false };
        seccomp.syscalls.iter().any(|rule| {
            let meets = |arg: &Argument| args[arg.index as usize] & arg.value == arg.value_two;
            rule.action == "SCMP_ACT_ALLOW" && rule.names.contains(&name) && rule.args.iter().all(meets)
        })
    }

    fn all_settings() -> Vec<Settings> {
        let mut all = Vec::new();
        for ip in [IpSockets::Refused, IpSockets::Allowed] {
            for unix in [UnixDomain::Refused, UnixDomain::Allowed] {
                all.push(Settings {
                    ip,
                    unix,
                    role: Role::Command,
                    attempts: Attempts::Unseen,
                    copies: Copies::None,
                    attributes: Attributes::Brokered,
                });
            }
        }
        all
    }

    /// Values on both sides of every test of a call.
    fn awkward(table: &Table, number: u32) -> Vec<u32> {
        let mut values = vec![0, 1, u32::MAX];
        for active_row in table.rows_for(number) {
            if let Action::ErrorIf(_, clauses) = active_row.action {
                for test in clauses.iter().copied().flatten() {
                    match *test {
                        Test::Is(_, v) | Test::IsNot(_, v) => values.extend([v, v ^ 1, v.wrapping_add(1)]),
                        Test::Bits(_, mask, v) => {
                            values.extend([v, v | !mask, !v & mask, v ^ (mask & mask.wrapping_neg())]);
                        }
                    }
                }
            }
        }
        values
    }

    fn agrees(seccomp: &Seccomp, table: &Table, number: u32, args: [u64; 6]) -> Result<(), String> {
        let call = Call {
            arch: NATIVE_ARCH,
            nr: number,
            args,
        };
        let (verdict, _) = table.answer(&call);
        let (expected, passes) = (verdict == Verdict::Allow, lets_pass(seccomp, number, args));
        // What has no name is refused; all else is let pass exactly where the filters let it pass.
        if passes == (expected && call_name(number).is_some()) {
            Ok(())
        } else {
            Err(format!("{call}: {verdict} here, passes there: {passes}"))
        }
    }

    #[test]
    fn the_rules_let_pass_exactly_what_the_filters_let_pass_at_every_border() {
        for settings in all_settings() {
            let (seccomp, table) = (Seccomp::under(settings).unwrap(), Table::of(settings));
            for number in 0..1024 {
                let values = awkward(&table, number);
                for a in &values {
                    for b in &values {
                        for args in [[*a, *b, 0], [0, *a, *b], [*a, 0, *b], [*a, *a, *b]] {
                            let [x, y, z] = args.map(u64::from);
                            agrees(&seccomp, &table, number, [x, y, z, x, 0, 0]).unwrap();
                            agrees(&seccomp, &table, number, [x | 1 << 32, y, z | 1 << 40, y, 0, 0]).unwrap();
                        }
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_rules_agree_with_the_filters_on_any_arguments(
            number in prop_oneof![0..470_u32, Just(16_u32), Just(41), Just(56), Just(72), Just(257)],
            args in proptest::array::uniform6(prop_oneof![any::<u64>(), 0..64_u64]),
        ) {
            for settings in all_settings() {
                let agreed = agrees(&Seccomp::under(settings).unwrap(), &Table::of(settings), number, args);
                prop_assert_eq!(agreed, Ok(()));
            }
        }
    }

    #[test]
    fn no_call_is_named_in_two_ways() {
        for settings in all_settings() {
            let seccomp = Seccomp::under(settings).unwrap();
            let mut plain: Vec<&str> = Vec::new();
            let mut judged: std::collections::BTreeSet<&str> = std::collections::BTreeSet::new();
            for rule in &seccomp.syscalls {
                if rule.args.is_empty() {
                    plain.extend(&rule.names);
                } else {
                    judged.extend(&rule.names);
                }
            }
            let unique: std::collections::BTreeSet<&str> = plain.iter().copied().collect();
            assert_eq!(plain.len(), unique.len());
            assert!(unique.is_disjoint(&judged), "libseccomp would drop the conditions");
        }
    }
}
