//! What lies in a home directory and is nobody else's: keys, tokens and what was typed.
//!
//! A root that is a home directory, or lies around one, gives none of it away by the way. A config that wants one of these names
//! gives it a root of its own.

use super::context::Context;
use super::denies;
use super::error::Diagnostic;
use super::looks::Looks;
use super::source::Place;
use crate::policy::{AbsPath, BasePath, Deny, Origin, Rights, Root, Scope};

/// The names, relative to a home directory.
const NAMES: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".password-store",
    ".pki",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".vault-token",
    ".boto",
    ".s3cfg",
    ".terraform.d",
    ".terraformrc",
    ".authinfo",
    ".authinfo.gpg",
    ".Xauthority",
    ".ICEauthority",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".local/share/fish/fish_history",
    ".local/share/keyrings",
    ".lesshst",
    ".viminfo",
    ".mozilla",
    ".thunderbird",
    ".config/chromium",
    ".config/google-chrome",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".config/containers/auth.json",
    ".config/rclone",
    ".config/hub",
    ".local/share/uv/credentials",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".zhistory",
    ".histfile",
];

/// Denies what is there of them in roots that do not name it; a warning for each such root.
pub(crate) fn deny(
    roots: &mut [Root],
    base: &[BasePath],
    context: &Context,
    looks: &Looks,
    place_of: impl Fn(&Origin) -> Option<Place>,
) -> Vec<Diagnostic> {
    let mut homes: Vec<AbsPath> = context
        .home
        .iter()
        .cloned()
        .chain(context.path_variable("HOME"))
        .collect();
    homes.sort();
    homes.dedup();
    let mut found: Vec<(usize, String, AbsPath)> = Vec::new();
    let mut warnings = Vec::new();
    for home in &homes {
        for name in NAMES {
            let there = home.as_path().join(name);
            if std::fs::symlink_metadata(&there).is_err() {
                continue;
            }
            // Where it leads, it is to be denied as well.
            // One whose way cannot be followed is denied under its own name.
            let led = denies::resolve(&there, looks).map(|(path, _)| path);
            let Ok(path) = led.or_else(|_| AbsPath::new(&there)) else {
                continue;
            };
            let speaker = roots
                .iter()
                .enumerate()
                .filter(|(_, root)| root.scope != Scope::File && path.is_within(&root.path))
                .max_by_key(|(_, root)| root.path.as_bytes().len());
            let Some((at, root)) = speaker else { continue };
            let gives_home = looks.holds(&root.path, home) && !root.rights.is_empty();
            if !gives_home {
                continue;
            }
            match named_by(roots, base, &path) {
                Named::Itself => {}
                Named::Not => found.push((at, (*name).to_owned(), path)),
                Named::Inside(place) => {
                    let told = format!(
                        "root `{}` gives all of {path}, because {place} is granted in it",
                        root.name
                    );
                    let hint = format!(
                        "for {place} alone, leave it out of roots and `base` and copy it elsewhere; or deny the rest"
                    );
                    warnings.push(*Diagnostic::warning(told).hint(hint));
                }
            }
        }
    }
    for (at, root) in roots.iter_mut().enumerate() {
        let own: Vec<&(usize, String, AbsPath)> = found.iter().filter(|(of, ..)| *of == at).collect();
        if own.is_empty() {
            continue;
        }
        let names: Vec<&str> = own.iter().map(|(_, name, _)| name.as_str()).collect();
        let told = format!(
            "root `{}` gives a home directory; what is private in it is denied there: {}",
            root.name,
            names.join(", ")
        );
        let warning = Diagnostic::warning(told);
        let warning = match place_of(&root.origin) {
            Some(place) => warning.at(place, "a home directory, or around one"),
            None => warning,
        };
        warnings.push(*warning.hint("a root of its own gives one of them, such as `keys: {root: ~/.ssh}`"));
        let origin = Origin::Builtin("what is private in a home directory");
        for (_, _, path) in own {
            root.denies.push(Deny::tree(path.clone(), Rights::ALL, origin.clone()));
        }
        root.denies.sort();
        root.denies.dedup();
    }
    warnings
}

/// Whether a root or a base grant is this place, or lies in it: below a deny nothing is granted.
fn named_by(roots: &[Root], base: &[BasePath], path: &AbsPath) -> Named {
    let mut places = roots
        .iter()
        .map(|root| &root.path)
        .chain(base.iter().map(|base| &base.grant.path));
    let mut inside = places.clone().filter(|place| place.is_below(path));
    if places.any(|place| place == path) {
        Named::Itself
    } else {
        inside.next().map_or(Named::Not, |place| Named::Inside(place.clone()))
    }
}

/// How a config speaks of a name.
enum Named {
    /// It does not.
    Not,
    /// By a grant of just that.
    Itself,
    /// By a grant of something in it.
    Inside(AbsPath),
}
