//! What each system call is answered: the table for given settings.
//!
//! A call that no row names is allowed if its number is known, and answered `ENOSYS` if it is not.

use super::call::{Call, Verdict};
use super::number::{GAP, HIGHEST, NATIVE_ARCH};
pub use super::row::{Clause, Errno, Say, Test};
use super::row::{Row, Standing, Under};
use super::settings::{Attempts, Copies, Role, Settings};
use super::{conditions, requests, rows, watched};

/// The answers that stand under given settings, by call number.
#[derive(Debug)]
pub struct Table {
    by_number: Vec<Vec<Standing>>,
}

impl Table {
    /// The table for these settings.
    pub fn of(settings: Settings) -> Self {
        let mut by_number = vec![Vec::new(); HIGHEST as usize + 1];
        for row in rows() {
            let say = row.say(settings.role);
            if say == Say::Allow || !stands(row.under, settings) {
                continue;
            }
            for number in row.calls {
                let say = match settings.attempts {
                    Attempts::Unseen => say,
                    Attempts::Watched | Attempts::WatchedWithLooks => watched::told(*number, say),
                };
                // A row for a number past HIGHEST would be dead: the frame answers it. A test holds that there is none.
                if let Some(list) = usize::try_from(*number).ok().and_then(|index| by_number.get_mut(index)) {
                    list.push(Standing {
                        reason: row.reason,
                        say,
                    });
                }
            }
        }
        match settings.role {
            Role::Command => watched::look_at_attempts(&mut by_number, settings.attempts),
            Role::Forker => {}
        }
        Self { by_number }
    }

    /// Every number that some row speaks of, with what stands for it.
    pub fn spoken(&self) -> impl Iterator<Item = (u32, &[Standing])> {
        (0u32..)
            .zip(&self.by_number)
            .filter(|(_, list)| !list.is_empty())
            .map(|(number, list)| (number, list.as_slice()))
    }

    /// What stands for one number.
    pub fn standing(&self, number: u32) -> &[Standing] {
        usize::try_from(number)
            .ok()
            .and_then(|index| self.by_number.get(index))
            .map_or(&[], Vec::as_slice)
    }

    /// The answer to a call, with its reason.
    pub fn answer(&self, call: &Call) -> (Verdict, &'static str) {
        if call.arch != NATIVE_ARCH {
            return (
                Verdict::KillProcess,
                "another architecture's table would bypass this one",
            );
        }
        if call.nr > HIGHEST || GAP.contains(&call.nr) {
            return (Verdict::Errno(Errno::NoSys.code()), "a call this table does not know");
        }
        for standing in self.standing(call.nr) {
            let verdict = match standing.say {
                Say::Always(errno) => Verdict::Errno(errno.code()),
                Say::Notify(clauses) | Say::Told(clauses)
                    if clauses.is_empty() || clauses.iter().any(|clause| meets(call, clause)) =>
                {
                    Verdict::Notify
                }
                Say::When(errno, clauses) if clauses.iter().any(|clause| meets(call, clause)) => {
                    Verdict::Errno(errno.code())
                }
                Say::Allow | Say::When(..) | Say::Notify(_) | Say::Told(_) => continue,
            };
            return (verdict, standing.reason);
        }
        (Verdict::Allow, "nothing speaks against it")
    }
}

/// Every row, whatever the settings.
fn rows() -> impl Iterator<Item = &'static Row> {
    rows::ROWS
        .iter()
        .chain(rows::LEGACY)
        .chain(conditions::ROWS)
        .chain(conditions::LEGACY)
        .chain(requests::ROWS)
}

/// Whether some answer to a call hangs on this argument.
pub fn tests(number: u32, arg: u8) -> bool {
    let mut speaking = rows().filter(|row| row.calls.contains(&i64::from(number)));
    speaking.any(|row| {
        [row.forker, row.command].into_iter().any(|say| match say {
            Say::When(_, clauses) | Say::Notify(clauses) | Say::Told(clauses) => {
                clauses.iter().any(|clause| clause.iter().any(|test| test.arg() == arg))
            }
            Say::Allow | Say::Always(_) => false,
        })
    })
}

/// Whether a call meets every test of a clause.
fn meets(call: &Call, clause: Clause) -> bool {
    clause.iter().all(|test| test.holds(call))
}

/// Whether a row's condition on the settings is met.
fn stands(under: Under, settings: Settings) -> bool {
    match under {
        Under::Every => true,
        Under::Ip(ip) => ip == settings.ip,
        Under::Sockets(ip, domain) => ip == settings.ip && domain == settings.unix,
        Under::Copies => settings.copies == Copies::Shown,
        Under::Attributes(attributes) => attributes == settings.attributes,
    }
}
