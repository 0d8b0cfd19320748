//! The action for each system call: the table for given settings.
//!
//! A call that no row names is allowed if its number is known, and answered `ENOSYS` if it is not.

use super::call::{Call, Verdict};
use super::number::{GAP, HIGHEST, NATIVE_ARCH};
pub use super::row::{Action, Clause, Errno, Test};
use super::row::{ActiveRow, Condition, Row};
use super::settings::{Attempts, Copies, Role, Settings};
use super::{attempts, conditions, ioctl, rows};

/// The rows that apply under given settings, by call number.
#[derive(Debug)]
pub struct Table {
    by_number: Vec<Vec<ActiveRow>>,
}

impl Table {
    /// The table for these settings.
    pub fn of(settings: Settings) -> Self {
        let mut by_number = vec![Vec::new(); HIGHEST as usize + 1];
        for row in rows() {
            let action = row.action(settings.role);
            if action == Action::Allow || !applies(row.condition, settings) {
                continue;
            }
            for number in row.calls {
                let action = match settings.attempts {
                    Attempts::Unseen => action,
                    Attempts::Watched | Attempts::WatchedWithLooks => attempts::reported_action(*number, action),
                };
                // A row for a number past HIGHEST would be dead: the frame answers it. A test holds that there is none.
                if let Some(list) = usize::try_from(*number).ok().and_then(|index| by_number.get_mut(index)) {
                    list.push(ActiveRow {
                        reason: row.reason,
                        action,
                    });
                }
            }
        }
        match settings.role {
            Role::Command => attempts::notify_attempts(&mut by_number, settings.attempts),
            Role::Forker => {}
        }
        Self { by_number }
    }

    /// Every number with a row, and its rows.
    pub fn entries(&self) -> impl Iterator<Item = (u32, &[ActiveRow])> {
        (0u32..)
            .zip(&self.by_number)
            .filter(|(_, list)| !list.is_empty())
            .map(|(number, list)| (number, list.as_slice()))
    }

    /// The rows of a number.
    pub fn rows_for(&self, number: u32) -> &[ActiveRow] {
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
        for active_row in self.rows_for(call.nr) {
            let verdict = match active_row.action {
                Action::Error(errno) => Verdict::Errno(errno.code()),
                Action::Notify(clauses) | Action::Report(clauses)
                    if clauses.is_empty() || clauses.iter().any(|clause| meets(call, clause)) =>
                {
                    Verdict::Notify
                }
                Action::ErrorIf(errno, clauses) if clauses.iter().any(|clause| meets(call, clause)) => {
                    Verdict::Errno(errno.code())
                }
                Action::Allow | Action::ErrorIf(..) | Action::Notify(_) | Action::Report(_) => continue,
            };
            return (verdict, active_row.reason);
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
        .chain(ioctl::ROWS)
}

/// Whether some row of a call tests this argument.
pub fn tests(number: u32, arg: u8) -> bool {
    let mut speaking = rows().filter(|row| row.calls.contains(&i64::from(number)));
    speaking.any(|row| {
        [row.forker, row.command].into_iter().any(|action| match action {
            Action::ErrorIf(_, clauses) | Action::Notify(clauses) | Action::Report(clauses) => {
                clauses.iter().any(|clause| clause.iter().any(|test| test.arg() == arg))
            }
            Action::Allow | Action::Error(_) => false,
        })
    })
}

/// Whether a call meets every test of a clause.
fn meets(call: &Call, clause: Clause) -> bool {
    clause.iter().all(|test| test.holds(call))
}

/// Whether a row's condition on the settings is met.
fn applies(condition: Condition, settings: Settings) -> bool {
    match condition {
        Condition::Every => true,
        Condition::Ip(ip) => ip == settings.ip,
        Condition::Sockets(ip, domain) => ip == settings.ip && domain == settings.unix,
        Condition::Copies => settings.copies == Copies::Shown,
        Condition::Attributes(attributes) => attributes == settings.attributes,
    }
}
