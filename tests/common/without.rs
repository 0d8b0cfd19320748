//! Running the binary on a machine that lacks something, or has it in an older version.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use super::compiled::compiled;
use super::process::Invocation;
use super::world::Fixture;

/// The compiled helper.
static HELPER: LazyLock<PathBuf> = LazyLock::new(|| compiled("without"));

/// `stockade ARGS` on a machine that lacks `what`, or whose Landlock has that version.
pub(crate) fn without(world: &Fixture, what: &str, args: &[&str]) -> Invocation {
    // A copy, because the target directory may be closed to the actor.
    let helper = world.base().join("without");
    if !helper.exists() {
        fs::copy(&*HELPER, &helper).unwrap();
    }
    world.bare(helper).args([what]).args([world.binary()]).args(args)
}
