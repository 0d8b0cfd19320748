//! The status of protected names in a regime.

use super::Regime;
use super::namespaces::MOST_PROTECTED;
use super::status::{ClauseStatus, Refusal, Status};
use crate::policy::{Protect, ProtectFallback, Residuals};

/// The status of protected names in a regime, or why the config does not admit it.
///
/// Without a mount namespace nothing can prevent writes to part of a writable tree, so all of them are
/// undone. With one, what the host runs at once is covered where it exists, or all that exists is read-only where the config
/// says `prevent`; the rest is undone there too.
pub(crate) fn protected(
    protect: &Protect,
    fallback: ProtectFallback,
    residuals: Residuals,
    regime: Regime,
) -> Result<Vec<ClauseStatus>, Refusal> {
    let Some(files) = protect.files() else {
        return Ok(Vec::new());
    };
    let what = match regime {
        Regime::None | Regime::Landlock => PROTECTED,
        // Nothing restores them on a Mac yet.
        Regime::Seatbelt => {
            return Err(Refusal::Unprotected {
                what: PROTECTED,
                regime: regime.name(),
            });
        }
        Regime::Namespaces => match protect {
            Protect::None | Protect::Default(_) => NOT_COVERED,
            Protect::Prevent(_) => PROTECTED_REST,
        },
    };
    match (protect, regime) {
        // Only mounts prevent.
        (Protect::Prevent(_), Regime::None | Regime::Landlock) => {
            return Err(Refusal::Prevent { regime: regime.name() });
        }
        (Protect::None | Protect::Default(_) | Protect::Prevent(_), _) => {}
    }
    match (fallback, residuals) {
        // What is undone has a window, so it is a residual as well.
        (ProtectFallback::Undo, Residuals::Report) => {}
        (ProtectFallback::Refuse | ProtectFallback::Undo, Residuals::Refuse | Residuals::Report) => {
            return Err(Refusal::Protected {
                what,
                regime: regime.name(),
            });
        }
    }
    let clause = |what: String, status| ClauseStatus {
        clause: format!("protect {what}"),
        origin: "sandbox.protect".to_owned(),
        status,
    };
    let names = |status| clause(PROTECTED.to_owned(), status);
    let (mut clauses, present) = match regime {
        Regime::None | Regime::Landlock | Regime::Seatbelt => (vec![names(Status::Undone)], Status::Undone),
        Regime::Namespaces => {
            let (enforced, rest) = match protect {
                Protect::None | Protect::Default(_) => (COVERED, NOT_COVERED),
                Protect::Prevent(_) => (PROTECTED, PROTECTED_REST),
            };
            let enforced = clause(enforced.to_owned(), Status::Enforced);
            let rest = clause(rest.to_owned(), Status::Undone);
            (vec![enforced, rest], Status::Enforced)
        }
    };
    clauses.extend(files.iter().map(|file| clause(file.to_string(), present.clone())));
    Ok(clauses)
}

/// The names that mounts do not protect; [`MOST_PROTECTED`] is the number.
const PROTECTED_REST: &str = "git hooks and config, shell rc files, editor and agent settings that do not exist yet, \
    are links, or come after the first 512";
const _: () = assert!(MOST_PROTECTED == 512, "what PROTECTED_REST says");

/// What the host runs or obeys at once.
const COVERED: &str = "git config and hooks";
/// What is restored after a command even where mounts can be made.
const NOT_COVERED: &str = "shell rc files, editor and agent settings, and git config and hooks that do not exist yet, \
    are links, come after the first 512, or are of a repository that a command made";

const PROTECTED: &str = "git hooks and config, shell rc files, editor and agent settings";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::AbsPath;

    #[test]
    fn protected_names_are_undone_only_where_the_config_admits_it() {
        let file = AbsPath::new("/srv/stockade.yaml").unwrap();
        let protect = Protect::Default(vec![file]);
        let ask = |fallback, residuals| protected(&protect, fallback, residuals, Regime::Landlock);
        let undone = ask(ProtectFallback::Undo, Residuals::Report).unwrap();
        assert_eq!(undone.len(), 2);
        assert!(undone.iter().all(|clause| clause.status == Status::Undone));
        assert!(ask(ProtectFallback::Undo, Residuals::Refuse).is_err());
        assert!(ask(ProtectFallback::Refuse, Residuals::Report).is_err());
    }

    #[test]
    fn names_that_exist_are_enforced_in_namespaces_and_those_that_do_not_are_undone() {
        let file = AbsPath::new("/srv/stockade.yaml").unwrap();
        let protect = Protect::Default(vec![file]);
        let ask = |fallback, residuals| protected(&protect, fallback, residuals, Regime::Namespaces);
        let enforced = ask(ProtectFallback::Undo, Residuals::Report).unwrap();
        let statuses: Vec<&Status> = enforced.iter().map(|clause| &clause.status).collect();
        assert_eq!(statuses, [&Status::Enforced, &Status::Undone, &Status::Enforced]);
        assert!(ask(ProtectFallback::Undo, Residuals::Refuse).is_err());
        assert!(ask(ProtectFallback::Refuse, Residuals::Report).is_err());
    }

    #[test]
    fn names_that_nothing_restores_are_refused_whatever_the_config_admits() {
        let protect = Protect::Default(Vec::new());
        let error = protected(&protect, ProtectFallback::Undo, Residuals::Report, Regime::Seatbelt).unwrap_err();
        assert!(error.to_string().contains("`sandbox.protect: none`"), "{error}");
        let none = protected(
            &Protect::None,
            ProtectFallback::Refuse,
            Residuals::Refuse,
            Regime::Seatbelt,
        );
        assert_eq!(none.unwrap(), []);
    }
}
