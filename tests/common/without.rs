//! Running the binary on a machine that lacks something, or has it in an older version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use super::process::Invocation;
use super::world::Fixture;

/// The compiled helper.
static HELPER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/helpers/without.c");
    // Made beside its place and moved there: another test may be copying it.
    let fresh = folder.join(format!("without-{}", std::process::id()));
    #[expect(clippy::disallowed_methods, reason = "the tests compile their helper")]
    let status = Command::new("cc")
        .arg("-O1")
        .arg("-o")
        .arg(&fresh)
        .arg(source)
        .status()
        .unwrap();
    assert!(status.success(), "cc could not compile the helper");
    let binary = folder.join("without");
    fs::rename(fresh, &binary).unwrap();
    binary
});

/// `stockade ARGS` on a machine that lacks `what`, or whose Landlock has that version.
pub(crate) fn without(world: &Fixture, what: &str, args: &[&str]) -> Invocation {
    // A copy, because the target directory may be closed to the actor.
    let helper = world.base().join("without");
    if !helper.exists() {
        fs::copy(&*HELPER, &helper).unwrap();
    }
    world.bare(helper).args([what]).args([world.binary()]).args(args)
}
