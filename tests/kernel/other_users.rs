//! What other users of the machine may do with protected names that a command leaves: no more than before, or than the umask permits.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    use nix::unistd::geteuid;

    use crate::common::{Fixture, Run, in_both_regimes};

    in_both_regimes! {
        a_tracked_file_is_opened_to_nobody ["git"];
        a_tracked_file_that_holds_the_same_keeps_its_mode ["git"];
        a_directory_that_is_made_again_is_as_closed_as_it_was ["git"];
        a_checkout_with_an_ordinary_umask_passes_without_a_word ["git"];
        a_list_on_a_tracked_file_is_no_wider_and_the_tree_comes_to_rest ["git"];
        a_list_that_a_checkout_dropped_is_there_again ["git"];
        new_tracked_files_bring_no_list_and_no_group_along ["git"];
        what_moves_with_its_work_tree_has_its_access_again ["git"];
        a_new_git_directory_is_opened_to_nobody ["git"];
        a_tree_that_a_command_shut_is_open_to_its_owner_again ["git"];
        a_list_that_is_taken_from_a_file_of_head_is_not_told_as_the_old_file ["git"];
    }

    const ACCESS: &str = "system.posix_acl_access";
    const DEFAULT: &str = "system.posix_acl_default";

    /// `main`, and a branch `other` in which the two protected files hold something else and a third is new.
    const REPOSITORY: &str = "git init -q -b main . && git config user.name n && git config user.email e && umask 022 && \
        mkdir .vscode && echo '{}' > .vscode/tasks.json && echo a > .envrc && echo x > f && git add -A && git commit -qm one && \
        git checkout -qb other && echo '[]' > .vscode/tasks.json && echo b > .envrc && mkdir .husky && \
        echo '#!/bin/sh' > .husky/pre-push && chmod 755 .husky/pre-push && git add -A && git commit -qm two && git checkout -q main";

    fn sh(world: &Fixture, line: &str) -> String {
        world.bare("/bin/sh").args(["-c", line]).output().ok()
    }

    /// Runs the line where the umask of Stockade is this.
    fn run(world: &Fixture, umask: &str, line: &str) -> Run {
        let outer = format!("umask {umask}; exec \"$0\" \"$@\"");
        let run = world.bare("/bin/sh").args(["-c", &outer]).args([world.binary()]);
        run.args(world.arguments(&["run", "-c", line])).output().exits(0)
    }

    fn mode(world: &Fixture, path: &str) -> u32 {
        fs::symlink_metadata(world.workspace().join(path)).unwrap().mode() & 0o7777
    }

    fn set_mode(world: &Fixture, path: &str, mode: u32) {
        fs::set_permissions(world.workspace().join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// What the owner, another user, the group, the mask and all others get.
    fn list(world: &Fixture, rights: [u16; 5]) -> Vec<u8> {
        let tags = [
            (1_u16, u32::MAX),
            (2, world.actor.uid() + 7),
            (4, u32::MAX),
            (16, u32::MAX),
            (32, u32::MAX),
        ];
        let entry = |((tag, id), rights): ((u16, u32), u16)| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let all: Vec<Vec<u8>> = tags.into_iter().zip(rights).map(entry).collect();
        [2_u32.to_le_bytes().to_vec(), all.concat()].concat()
    }

    fn lists(world: &Fixture, path: &str) -> [Option<Vec<u8>>; 2] {
        [ACCESS, DEFAULT].map(|name| xattr::get(world.workspace().join(path), name).unwrap())
    }

    /// A directory `dl`, in which others get all of what is made, and its group where the tests may give that.
    fn open_directory(world: &Fixture) {
        world.write("dl/kept", "");
        let path = world.workspace().join("dl");
        xattr::set(&path, DEFAULT, &list(world, [7, 7, 7, 7, 0])).unwrap();
        if geteuid().is_root() {
            chown(&path, None, Some(4)).unwrap();
        }
        set_mode(world, "dl", 0o2775);
    }

    /// Nobody but the owner writes there, and it has the group of the workspace or of its owner.
    fn assert_closed(world: &Fixture, path: &str, said: &Run) {
        let found = fs::symlink_metadata(world.workspace().join(path)).unwrap();
        assert_eq!(found.mode() & 0o022, 0, "{path}: {:o} {}", found.mode(), said.err());
        assert_eq!(lists(world, path), [None, None], "{path}: {}", said.err());
        let above = fs::metadata(world.workspace()).unwrap().gid();
        let own = if geteuid().is_root() { world.actor.uid() } else { above };
        assert!(
            [above, own].contains(&found.gid()),
            "{path}: {} {}",
            found.gid(),
            said.err()
        );
    }

    fn assert_told(said: &Run, path: &str) {
        let line = said.err();
        let line = line.lines().find(|line| line.contains(&format!("{path} is protected")));
        let line = line.unwrap_or_else(|| panic!("{path}: {}", said.err()));
        assert!(line.contains("who may use it was changed"), "{line}");
    }

    fn a_tracked_file_is_opened_to_nobody(world: &Fixture) {
        sh(world, REPOSITORY);
        sh(world, "git checkout -q other");
        let line = "chmod 775 .husky/pre-push; chmod 660 .envrc; chmod 464 .vscode/tasks.json; chmod 664 f";
        let said = run(world, "022", line);
        let now = [".husky/pre-push", ".envrc", ".vscode/tasks.json", "f"].map(|path| mode(world, path));
        assert_eq!(now, [0o755, 0o644, 0o644, 0o664], "{}", said.err());
        // With another content as well: that is what the branch has, and stays.
        let line = "git checkout -q main; chmod 666 .envrc; chmod 664 .vscode/tasks.json; chmod 666 f";
        let said = run(world, "022", line);
        for path in [".envrc", ".vscode/tasks.json"] {
            assert_eq!(mode(world, path) & 0o022, 0, "{path}: {}", said.err());
            assert_told(&said, path);
        }
        assert_eq!(mode(world, "f"), 0o666);
        assert_eq!(
            sh(world, "git status --porcelain --untracked-files=no; cat .envrc"),
            "a\n"
        );
    }

    fn a_tracked_file_that_holds_the_same_keeps_its_mode(world: &Fixture) {
        sh(world, REPOSITORY);
        sh(
            world,
            "git checkout -qb with main; git checkout -q other -- .husky; git commit -qm hook",
        );
        set_mode(world, ".envrc", 0o600);
        set_mode(world, ".husky", 0o700);
        for wider in ["644", "666", "700", "755", "400"] {
            let line = format!("chmod {wider} .envrc f; chmod 755 .husky");
            let said = run(world, "022", &line);
            let now = [mode(world, ".envrc"), mode(world, ".husky")];
            assert_eq!(now, [0o600, 0o700], "{wider}: {}", said.err());
            // It is told as a change where the executable bit is none that git has there.
            assert!(said.err().contains(".envrc is protected"), "{wider}: {}", said.err());
            assert_eq!(format!("{:o}", mode(world, "f")), wider);
        }
        // Git makes it anew with the umask, there and back; on the branch it has another content.
        let said = run(world, "022", "git checkout -q other; git checkout -q with");
        assert_eq!(mode(world, ".envrc"), 0o600, "{}", said.err());
        let said = run(world, "022", "git checkout -q other");
        assert_eq!(mode(world, ".envrc"), 0o644, "{}", said.err());
        assert!(!said.err().contains(".envrc is protected"), "{}", said.err());
    }

    fn a_directory_that_is_made_again_is_as_closed_as_it_was(world: &Fixture) {
        sh(world, REPOSITORY);
        world.write(".aws/credentials", "mine");
        sh(world, "git add -A && git commit -qm more");
        for folder in [".aws", ".vscode"] {
            set_mode(world, folder, 0o700);
        }
        let said = run(world, "022", "rm -rf .aws .vscode");
        for (folder, file) in [(".aws", ".aws/credentials"), (".vscode", ".vscode/tasks.json")] {
            assert!(world.workspace().join(file).exists(), "{file}: {}", said.err());
            assert_eq!(mode(world, folder), 0o700, "{folder}: {}", said.err());
        }
    }

    fn a_checkout_with_an_ordinary_umask_passes_without_a_word(world: &Fixture) {
        sh(world, REPOSITORY);
        for umask in ["022", "002", "027"] {
            for branch in ["other", "main"] {
                let line = format!(
                    "git checkout -q {branch}; git init -q new; git worktree add -q --detach wt; rm -rf new; git worktree remove wt"
                );
                let said = run(world, umask, &line);
                assert!(!said.err().contains("is protected"), "{umask} {branch}: {}", said.err());
            }
        }
        sh(world, "git checkout -q other");
        let said = run(world, "002", "git checkout -q main; git checkout -q other");
        // What holds the same as before has the mode it had before.
        assert_told(&said, ".envrc");
        assert_eq!([mode(world, ".envrc"), mode(world, ".husky/pre-push")], [0o644, 0o755]);
        set_mode(world, ".envrc", 0o664);
        // Where it was open, another umask of Stockade's changes nothing.
        let said = run(world, "022", "chmod 644 .envrc; chmod 664 .envrc; true");
        assert!(!said.err().contains("is protected"), "{}", said.err());
        assert_eq!(mode(world, ".envrc"), 0o664);
    }

    fn a_list_on_a_tracked_file_is_no_wider_and_the_tree_comes_to_rest(world: &Fixture) {
        sh(world, REPOSITORY);
        let had = list(world, [6, 6, 4, 4, 4]);
        for path in [".vscode/tasks.json", "f"] {
            xattr::set(world.workspace().join(path), ACCESS, &had).unwrap();
        }
        for umask in ["022", "002"] {
            let said = run(world, umask, "chmod 664 .vscode/tasks.json; chmod 664 f");
            assert_eq!(
                lists(world, ".vscode/tasks.json")[0].as_ref(),
                Some(&had),
                "{umask}: {}",
                said.err()
            );
            assert_eq!(mode(world, ".vscode/tasks.json"), 0o644, "{umask}: {}", said.err());
            assert_ne!(lists(world, "f")[0].as_ref(), Some(&had));
        }
    }

    fn a_list_that_a_checkout_dropped_is_there_again(world: &Fixture) {
        sh(world, REPOSITORY);
        let had = list(world, [6, 6, 4, 4, 4]);
        xattr::set(world.workspace().join(".vscode/tasks.json"), ACCESS, &had).unwrap();
        let said = run(world, "022", "git checkout -q other");
        assert_eq!(
            lists(world, ".vscode/tasks.json")[0].as_ref(),
            Some(&had),
            "{}",
            said.err()
        );
        assert_eq!(sh(world, "cat .vscode/tasks.json"), "[]\n");
        assert_told(&said, ".vscode/tasks.json");
    }

    fn new_tracked_files_bring_no_list_and_no_group_along(world: &Fixture) {
        sh(world, REPOSITORY);
        open_directory(world);
        let line = "umask 0; git checkout -q other; mkdir dl/h; cp .husky/pre-push dl/h/; chmod 775 dl/h/pre-push; rm -r .husky; \
                    mv dl/h .husky; cp f dl/twin";
        let said = run(world, "022", line);
        assert_eq!(
            sh(
                world,
                "git status --porcelain --untracked-files=no; cat .husky/pre-push"
            ),
            "#!/bin/sh\n"
        );
        for path in [".husky", ".husky/pre-push"] {
            assert_closed(world, path, &said);
        }
        assert_told(&said, ".husky");
        assert_ne!(lists(world, "dl/twin"), [None, None]);
        // A single one, too.
        sh(
            world,
            "git checkout -q main; git checkout -qb third; git rm -q .envrc; git commit -qm gone",
        );
        let line = "git checkout -q main; cp .envrc dl/e; chmod 660 dl/e; mv dl/e .envrc";
        let said = run(world, "022", line);
        assert_closed(world, ".envrc", &said);
        assert_told(&said, ".envrc");
        assert_eq!(sh(world, "cat .envrc"), "a\n");
    }

    fn what_moves_with_its_work_tree_has_its_access_again(world: &Fixture) {
        sh(world, REPOSITORY);
        let hook = "mkdir .husky && echo mine > .husky/mine && chmod 664 .husky/mine";
        sh(
            world,
            &format!("git worktree add -q --detach wt main && cd wt && umask 022 && {hook}"),
        );
        open_directory(world);
        let line = "git worktree move wt wt2 && cp wt2/.husky/mine dl/p && chmod 664 dl/p && mv dl/p wt2/.husky/mine && cp f dl/twin";
        let said = run(world, "022", line);
        assert_eq!(sh(world, "cat wt2/.husky/mine"), "mine\n", "{}", said.err());
        assert_eq!(lists(world, "wt2/.husky/mine"), [None, None], "{}", said.err());
        assert_eq!(mode(world, "wt2/.husky/mine"), 0o664);
        assert_ne!(
            fs::metadata(world.workspace().join("wt2/.husky/mine")).unwrap().gid(),
            4
        );
        assert_told(&said, "wt2/.husky/mine");
        assert_ne!(lists(world, "dl/twin"), [None, None]);
    }

    fn a_new_git_directory_is_opened_to_nobody(world: &Fixture) {
        sh(world, REPOSITORY);
        let line = "git init -q sub; chmod 666 sub/.git/config; chmod 777 sub/.git sub/.git/hooks; git worktree add -q --detach wt; \
                    chmod 666 wt/.git .git/worktrees/wt/gitdir .git/worktrees/wt/commondir; echo 3.12 > .python-version; \
                    chmod 666 .python-version; printf '[submodule \"s\"]\\n\\tpath = s\\n\\turl = https://example.org/s\\n' > .gitmodules; \
                    chmod 666 .gitmodules; echo x > twin; chmod 666 twin";
        let said = run(world, "022", line);
        for path in [
            "sub/.git",
            "sub/.git/config",
            "sub/.git/hooks",
            "wt/.git",
            ".git/worktrees/wt/gitdir",
            ".git/worktrees/wt/commondir",
            ".python-version",
            ".gitmodules",
        ] {
            assert_closed(world, path, &said);
        }
        for path in ["sub/.git", "wt/.git", ".python-version", ".gitmodules"] {
            assert_told(&said, path);
        }
        assert!(!said.err().contains("sub/.git/config"), "{}", said.err());
        assert_eq!(mode(world, "twin"), 0o666);
    }

    fn a_tree_that_a_command_shut_is_open_to_its_owner_again(world: &Fixture) {
        sh(world, REPOSITORY);
        let before = [".", ".git", ".envrc"].map(|path| mode(world, path));
        // The supervisor looks while it runs.
        let said = run(world, "022", "chmod 000 .git .envrc f; chmod 000 .; sleep 1");
        assert!(!said.err().contains("elsewhere"), "{}", said.err());
        let now = [".", ".git", ".envrc"].map(|path| mode(world, path));
        assert_eq!(now, before, "{}", said.err());
        assert_eq!(mode(world, "f"), 0);
    }

    fn a_list_that_is_taken_from_a_file_of_head_is_not_told_as_the_old_file(world: &Fixture) {
        sh(world, REPOSITORY);
        open_directory(world);
        let line = "git checkout -q other; cp .envrc dl/t; mv dl/t .envrc; chmod 644 .envrc";
        let said = run(world, "022", line);
        assert_eq!(sh(world, "cat .envrc"), "b\n", "{}", said.err());
        assert_told(&said, ".envrc");
        assert!(!said.err().contains("HEAD"), "{}", said.err());
        // Of what is put back as a whole it is said.
        let said = run(
            world,
            "022",
            "git checkout -qb evil; echo evil > .envrc; git commit -qam evil",
        );
        assert!(said.err().contains("HEAD"), "{}", said.err());
    }
}
