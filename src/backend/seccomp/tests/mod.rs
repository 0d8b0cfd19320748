//! The filters against the table, and the reader against filters that were tampered with.

mod attempts;
mod exact;
mod tampered;

use super::number::GAP;
use super::row::{Action, Row, Test};
use super::table::Table;
use super::validate::{awkward_calls, borders, clauses, meeting_value, plain_calls, read, socket_calls};
use super::*;

const RETURN: u16 = 0x06;
const JUMP_EQUAL: u16 = 0x15;

fn all_settings() -> Vec<Settings> {
    let mut all = Vec::new();
    for ip in [IpSockets::Refused, IpSockets::Allowed] {
        for unix in [UnixDomain::Refused, UnixDomain::Allowed] {
            for role in [Role::Forker, Role::Command] {
                for attempts in [Attempts::Unseen, Attempts::Watched, Attempts::WatchedWithLooks] {
                    for copies in [Copies::None, Copies::Shown] {
                        for attributes in [Attributes::Brokered, Attributes::Mounted] {
                            all.push(Settings {
                                ip,
                                unix,
                                role,
                                attempts,
                                copies,
                                attributes,
                            });
                        }
                    }
                }
            }
        }
    }
    all
}

pub(super) fn strict(role: Role) -> Settings {
    Settings {
        ip: IpSockets::Refused,
        unix: UnixDomain::Refused,
        role,
        attempts: Attempts::Unseen,
        copies: Copies::None,
        attributes: Attributes::Brokered,
    }
}

fn open(role: Role) -> Settings {
    Settings {
        ip: IpSockets::Allowed,
        unix: UnixDomain::Allowed,
        role,
        attempts: Attempts::Unseen,
        copies: Copies::None,
        attributes: Attributes::Brokered,
    }
}

/// The settings under which nobody looks on.
fn unseen_settings() -> impl Iterator<Item = Settings> {
    let all = all_settings().into_iter();
    all.filter(|settings| settings.attempts == Attempts::Unseen)
}

/// What is answered to a call that is refused whatever: where somebody looks on, the refusal is the listener's.
fn refused(settings: Settings, errno: u16) -> Verdict {
    match settings.attempts {
        Attempts::Unseen => Verdict::Errno(errno),
        Attempts::Watched | Attempts::WatchedWithLooks => Verdict::Notify,
    }
}

/// The filters that answer the calls of a role.
#[derive(Clone)]
pub(super) struct Lowered {
    behind: Option<SeccompPlan>,
    own: SeccompPlan,
}

impl Lowered {
    pub(super) fn under(settings: Settings) -> Self {
        let forker = Settings {
            role: Role::Forker,
            ..settings
        };
        Self {
            behind: (settings.role == Role::Command).then(|| lower(forker).unwrap()),
            own: lower(settings).unwrap(),
        }
    }

    pub(super) fn stack(&self) -> Stack<'_> {
        match &self.behind {
            None => Stack::of_forker(&self.own),
            Some(forker) => Stack::of_command(forker, &self.own),
        }
    }

    fn validate(&self, settings: Settings) -> Result<(), SeccompWitness> {
        validate(self.stack(), settings)
    }
}

fn answer(settings: Settings, number: i64, args: &[u64]) -> Verdict {
    let whole = Lowered::under(settings);
    let filters = read(whole.stack()).unwrap();
    let mut call = Call {
        arch: NATIVE_ARCH,
        nr: u32::try_from(number).unwrap(),
        args: [0; 6],
    };
    call.args[..args.len()].copy_from_slice(args);
    stacked(&filters, &call)
}

/// Every combination of border values of the tested arguments.
fn combined_calls(table: &Table) -> Vec<Call> {
    let mut calls = Vec::new();
    for (nr, active_rows) in table.entries() {
        let mut values: [Vec<u64>; 6] = std::array::from_fn(|_| vec![0]);
        for test in clauses(active_rows).flatten() {
            let slot = &mut values[usize::from(test.arg())];
            slot.extend(borders(*test).into_iter().map(u64::from));
            slot.extend([u64::MAX, 0x8000_0000, 1 << 32]);
            slot.sort_unstable();
            slot.dedup();
        }
        let mut sets: Vec<[u64; 6]> = vec![[0; 6]];
        for (index, slot) in values.iter().enumerate() {
            sets = sets
                .iter()
                .flat_map(|args| {
                    slot.iter().map(|value| {
                        let mut args = *args;
                        args[index] = *value;
                        args
                    })
                })
                .collect();
        }
        calls.extend(sets.into_iter().map(|args| Call {
            arch: NATIVE_ARCH,
            nr,
            args,
        }));
    }
    calls
}
