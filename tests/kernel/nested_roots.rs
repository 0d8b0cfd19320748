//! Roots inside roots: the most specific one speaks, however often they alternate.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use crate::common::{Fixture, Run, in_both_regimes};

    in_both_regimes! {
        a_writable_root_in_a_read_only_one_in_a_writable_one_is_written [];
        a_single_writable_file_in_a_read_only_root_in_a_writable_one_is_written [];
        a_fourth_root_speaks_for_itself_too [];
        nothing_between_the_writable_roots_is_written_moved_or_given_another_mode [];
        a_second_name_of_a_read_only_file_in_the_inner_root_refuses_the_start [];
        the_same_by_flags [];
        a_read_only_root_in_one_that_is_executed_starts_as_it_stands [];
    }

    mod mounts {
        use super::*;
        use crate::common::in_all_namespaces;

        in_all_namespaces! {
            what_a_deny_covers_in_the_inner_root_stays_covered [];
            git_in_the_inner_root_keeps_a_harmless_setting ["git"];
        }

        fn what_a_deny_covers_in_the_inner_root_stays_covered(world: &Fixture) {
            let file = config(world, ", deny: [.env, ./no]");
            world.write("a/b/.env", "secret\n");
            world.write("a/b/no/key", "secret\n");
            for line in [
                "cat a/b/.env",
                "echo x > a/b/.env",
                "cat a/b/no/key",
                "mv a/b/no a/b/yes && cat a/b/yes/key",
            ] {
                fails(world, &file, line);
            }
            // Of a path that is not there yet nothing can be covered, so the start is refused.
            let missing = config(world, ", deny: [./later]");
            run(world, &missing, "true").exits(125);
            world.write("a/b/later/keep", "old\n");
            run(world, &missing, "echo x > a/b/later/x").assert_denied();
            run(world, &missing, "echo x > a/b/y && cat a/b/y").ok();
        }

        fn git_in_the_inner_root_keeps_a_harmless_setting(world: &Fixture) {
            let file = config(world, "");
            let repository = world.workspace().join("a/b");
            world.bare("/bin/sh").args(["-c", "git init -q a/b"]).output().ok();
            let line = "cd a/b && git config color.ui never && git config color.ui && git config core.pager x; git config core.pager";
            let ran = run(world, &file, line);
            assert!(ran.out().starts_with("never\n"), "{}", ran.err());
            let kept = fs::read_to_string(repository.join(".git/config")).unwrap();
            assert!(kept.contains("ui = never") && !kept.contains("pager"), "{kept}");
        }
    }

    /// `.` rw, `a` ro, `a/b` rw, with files at each level.
    fn config(world: &Fixture, more: &str) -> PathBuf {
        for name in [
            "top",
            "a/keep",
            "a/sub/keep",
            "a/b/inner",
            "a/b/w/keep",
            "a/b/c/keep",
            "a/one",
        ] {
            world.write(name, "old\n");
        }
        let at = world.workspace();
        let at = at.display();
        world.write(
            world.base().join("nested.yaml"),
            format!(
                "extends: [system]\nsandbox:\n  deny_fallback: {fallback}\n  protect_fallback: undo\n  paths:\n\
                 \x20   top: {{root: {at}, mode: rw, approval: {{write: none}}}}\n\
                 \x20   a: {{root: {at}/a, mode: ro}}\n\
                 \x20   b: {{root: {at}/a/b, mode: rw, approval: {{write: none}}{more}}}\n\
                 \x20   c: {{root: {at}/a/b/c, mode: ro}}\n\
                 \x20   one: {{root: {at}/a/one, mode: rw, approval: {{write: none}}}}\n\
                 shell: {{default: {{approval: none}}}}\n",
                fallback = fallback(world),
            ),
        )
    }

    /// Landlock rules what lies around a nested root entry by entry.
    fn fallback(world: &Fixture) -> &'static str {
        if world.backend.is_in_namespaces() {
            "cover_existing"
        } else {
            "decompose"
        }
    }

    fn run(world: &Fixture, config: &std::path::Path, line: &str) -> Run {
        let args = ["run", "--config", config.to_str().unwrap(), "-c", line];
        world.stockade(&args).output()
    }

    /// A mount that is moved is busy; all else is denied.
    fn fails(world: &Fixture, config: &std::path::Path, line: &str) {
        let run = run(world, config, line);
        if !run.err().contains("resource busy") || run.code() == 0 {
            run.assert_denied();
        }
    }

    fn a_writable_root_in_a_read_only_one_in_a_writable_one_is_written(world: &Fixture) {
        let file = config(world, "");
        let line = "echo new > a/b/inner && mkdir -p a/b/w/d/e && echo made > a/b/w/d/e/f && mv a/b/w/d a/b/w/g && chmod 600 a/b/inner && \
                    cat a/keep a/b/w/g/e/f && echo new >> top";
        let check = world.stockade(&["check", file.to_str().unwrap()]).output().exits(0);
        assert!(!check.err().contains("no write"), "{}", check.err());
        assert_eq!(run(world, &file, line).ok(), "old\nmade\n");
        let inner = world.workspace().join("a/b/inner");
        assert_eq!(fs::read_to_string(inner).unwrap(), "new\n");
    }

    fn a_single_writable_file_in_a_read_only_root_in_a_writable_one_is_written(world: &Fixture) {
        let file = config(world, "");
        assert_eq!(run(world, &file, "echo new > a/one && cat a/one").ok(), "new\n");
        run(world, &file, "rm a/one").assert_denied();
        run(world, &file, "echo new > a/two").assert_denied();
    }

    fn a_fourth_root_speaks_for_itself_too(world: &Fixture) {
        let file = config(world, "");
        run(world, &file, "echo new > a/b/c/keep").assert_denied();
        run(world, &file, "echo new > a/b/c/made").assert_denied();
        run(world, &file, "rm a/b/c/keep").assert_denied();
        assert_eq!(run(world, &file, "cat a/b/c/keep").ok(), "old\n");
    }

    fn nothing_between_the_writable_roots_is_written_moved_or_given_another_mode(world: &Fixture) {
        let file = config(world, "");
        for line in [
            "echo new > a/keep",
            "echo new > a/sub/keep",
            "echo new > a/made",
            "rm a/keep",
            "mv a/b a/z",
            "mv a z",
            "mv a/b/inner a/inner",
            "ln a/keep a/b/keep",
            "chmod 600 a/keep",
            "rmdir a/b/c",
        ] {
            fails(world, &file, line);
        }
        let at = |name: &str| fs::read_to_string(world.workspace().join(name)).unwrap();
        assert_eq!(
            [at("a/keep"), at("a/sub/keep"), at("a/b/inner")].concat(),
            "old\nold\nold\n"
        );
    }

    fn a_second_name_of_a_read_only_file_in_the_inner_root_refuses_the_start(world: &Fixture) {
        let file = config(world, "");
        let (kept, second) = (world.workspace().join("a/keep"), world.workspace().join("a/b/second"));
        fs::hard_link(kept, &second).unwrap();
        let refused = run(world, &file, "echo new > a/b/second").exits(125);
        assert!(refused.err().contains("a/keep"), "{}", refused.err());
        fs::remove_file(second).unwrap();
        run(world, &file, "echo new > a/b/inner").exits(0);
    }

    fn the_same_by_flags(world: &Fixture) {
        config(world, "");
        let at = |name: &str| world.workspace().join(name).display().to_string();
        let (top, a, b) = (at(""), at("a"), at("a/b"));
        let run = |line: &str| {
            let fallback = fallback(world);
            let flags = ["--rw", &top, "--ro", &a, "--rw", &b, "--deny-fallback", fallback];
            world.stockade(&[&["run"][..], &flags, &["-c", line]].concat()).output()
        };
        assert_eq!(run("echo new > a/b/inner && cat a/b/inner").ok(), "new\n");
        run("echo new > a/keep").assert_denied();
    }

    fn a_read_only_root_in_one_that_is_executed_starts_as_it_stands(world: &Fixture) {
        let run = |mode: &str, line: &str| {
            world.write("docs/note", "old\n");
            let at = world.workspace();
            let text = format!(
                "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    top: {{root: {0}, mode: {mode}, execute: true, \
                 approval: {{write: none}}}}\n    docs: {{root: {0}/docs}}\nshell: {{default: {{approval: none}}}}\n",
                at.display()
            );
            let file = world.write(world.base().join("docs.yaml"), text);
            self::run(world, &file, line)
        };
        assert_eq!(run("ro", "cat docs/note").ok(), "old\n");
        if world.backend.is_in_namespaces() {
            assert_eq!(run("rw", "echo new > made && cat docs/note").ok(), "old\n");
            run("rw", "echo new > docs/note").assert_denied();
        }
    }
}
