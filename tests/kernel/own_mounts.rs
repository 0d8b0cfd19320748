//! Mount namespaces of a test's own, in which any directory may be covered.
//!
//! The clone, its target directory and the fixture may lie anywhere, below `/var/tmp` or `/run` as well: so the program under
//! test and the world are shown in a place that nobody covers.

use std::fs;

use crate::common::{Fixture, Invocation};

/// Where the fixture is shown.
const WORLD: &str = "/srv";
/// The program under test.
pub(crate) const PROGRAM: &str = "/srv/program";

/// A line of shell of root's, in the workspace as it is shown there. The arguments that follow are the line's.
pub(crate) fn among(world: &Fixture, line: &str) -> Invocation {
    fs::write(world.base().join("program"), "").unwrap();
    // What the place of the world hides may be the way to the program, so that is bound first.
    let line = format!(
        "mount --bind \"$1\" \"$2/program\" && mount --rbind \"$2\" {WORLD} && cd {WORLD}/workspace && shift 2 && {line}"
    );
    let bare = world.bare("/usr/bin/unshare").into_command();
    let shown = Invocation::new("/usr/bin/unshare".as_ref(), None, &world.workspace());
    let shown = bare.get_envs().fold(shown, |shown, (name, value)| {
        shown.env(name.to_str().unwrap(), value.unwrap())
    });
    shown
        .env("HOME", format!("{WORLD}/home"))
        .env("XDG_RUNTIME_DIR", format!("{WORLD}/run"))
        .args(["--mount", "sh", "-c", &line, "sh"])
        .args([world.binary(), world.base()])
}
