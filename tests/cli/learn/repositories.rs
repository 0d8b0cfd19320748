//! What git on the host would run later, in places that look like any other directory of the project.

use crate::common::{Fixture, as_root_and_as_user};
use crate::learn::lab::{accepted_nothing, learn, passes, read_only};

as_root_and_as_user! {
    hooks_in_every_kind_of_git_directory_stay_as_they_were ["git"];
    what_a_repository_leads_git_to_is_of_no_low_risk ["git"];
}

fn git(world: &Fixture, arguments: &[&str]) {
    world.bare("git").args(arguments).output().exits(0);
}

fn hooks_in_every_kind_of_git_directory_stay_as_they_were(world: &Fixture) {
    git(world, &["init", "-q"]);
    git(world, &["init", "-q", "--bare", ".git/modules/vendor/lib"]);
    git(world, &["init", "-q", "--bare", "bare.git"]);
    git(world, &["init", "-q", "--separate-git-dir=apart", "worktree"]);
    for directory in [".git", ".git/modules/vendor/lib", "bare.git", "apart"] {
        let hook = format!("{directory}/hooks/post-checkout");
        let config = read_only(world);
        let line =
            format!("mkdir -p {directory}/hooks; echo evil > {hook}; chmod +x {hook}; echo x > {directory}/ORIG_HEAD");
        learn(world, &config, &["--yes"], &line);
        assert!(!world.workspace().join(&hook).exists(), "{hook}");
        // What is not run is written.
        passes(world, &config, &["--yes"], &format!("echo x > {directory}/ORIG_HEAD"));
        assert!(
            world.workspace().join(directory).join("ORIG_HEAD").exists(),
            "{directory}"
        );
    }
}

fn what_a_repository_leads_git_to_is_of_no_low_risk(world: &Fixture) {
    git(world, &["init", "-q"]);
    git(world, &["init", "-q", "--separate-git-dir=apart", "worktree"]);
    for (place, repository) in [("tools", "."), ("worktree/tools", "worktree"), ("worktree", "worktree")] {
        world.write(format!("{place}/hooks/.keep"), "");
        let config = read_only(world);
        let line = format!("touch {place}/hooks/new; touch {place}/new");
        // Where git is led nowhere, it is a directory like any other.
        passes(world, &config, &["--yes"], &line);
        for (key, value) in [("core.hooksPath", "tools/hooks"), ("include.path", "../tools/inc")] {
            git(world, &["-C", repository, "config", key, value]);
            let config = read_only(world);
            let learned = learn(world, &config, &["--yes"], &format!("touch {place}/hooks/another"));
            assert!(accepted_nothing(&learned), "{place} {key}: {learned:#}");
            git(world, &["-C", repository, "config", "--unset", key]);
        }
    }
}
