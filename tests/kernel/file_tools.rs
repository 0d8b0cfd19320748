//! The file tools, end to end: what the config permits is done exactly, and everything else is refused and left alone.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;

    use serde_json::{Value, json};

    use crate::common::{Fixture, Snapshot, assert_nothing_left_behind, in_both_regimes};

    in_both_regimes! {
        a_file_is_read_in_lines_with_its_totals [];
        what_lies_outside_every_root_is_neither_read_nor_written [];
        a_symlink_is_judged_by_where_it_leads [];
        a_read_only_root_is_not_written [];
        only_files_of_the_suffixes_are_written_and_read [];
        a_file_over_the_size_of_its_root_is_not_written [];
        a_denied_path_is_neither_read_nor_written_nor_listed_nor_searched [];
        a_protected_name_is_not_written [];
        an_edit_keeps_the_mode_the_line_ends_and_other_names_of_the_file [];
        an_edit_that_does_not_match_says_what_is_nearest_and_changes_nothing [];
        a_path_of_another_spelling_is_named_where_it_may_be_listed [];
        a_patch_of_several_files_is_applied_whole_or_not_at_all [];
        pipes_devices_and_directories_are_no_files [];
        files_are_moved_and_deleted_and_roots_are_not [];
        hostile_names_are_listed_and_searched_unharmed [];
        a_search_honours_ignore_files_unless_told_otherwise [];
        a_custom_tool_runs_its_program_and_nothing_else [];
        a_custom_tool_writes_only_where_its_paths_lie [];
        a_huge_file_is_read_and_searched_and_a_wide_directory_listed [];
        nothing_is_left_behind [];
        a_tool_that_can_never_be_allowed_is_not_listed [];
        arguments_that_are_wrong_are_an_error_that_shows_what_is_right [];
    }

    const CONFIG: &str = "\
extends: [system]
sandbox:
  protect_fallback: undo
  deny_fallback: decompose
  paths:
    work: {root: ./work, mode: rw, write_approval: false}
    library: {root: ./library, mode: ro}
    notes: {root: ./notes, mode: rw, write_approval: false, suffixes: [.md, .txt], max_file_bytes: 100}
shell: {default: {allowed: true, approval: none}}
";

    struct Tools<'a> {
        world: &'a Fixture,
    }

    impl<'a> Tools<'a> {
        fn new(world: &'a Fixture, config: &str) -> Self {
            for folder in ["work", "library", "notes"] {
                world.write(format!("{folder}/.keep"), "");
            }
            world.write("stockade-test.yaml", config);
            Self { world }
        }

        /// The answers to these requests, made in one session.
        #[track_caller]
        fn ask(&self, requests: &[Value]) -> Vec<Value> {
            let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
            let run = self
                .world
                .stockade(&["call", "-q", "--config", "stockade-test.yaml", "--stream"])
                .stdin(lines.join("\n").into_bytes())
                .output();
            let out = run.out();
            let answers: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(answers.len(), requests.len(), "{out}\n{}", run.err());
            answers
        }

        #[track_caller]
        fn call(&self, tool: &str, args: impl Into<Value>) -> Value {
            let args = args.into();
            self.ask(&[json!({"call": {"tool": tool, "args": args}})]).remove(0)
        }

        #[track_caller]
        fn done(&self, tool: &str, args: impl Into<Value>) -> Value {
            let answer = self.call(tool, args);
            assert_eq!(answer["status"], "done", "{answer}");
            answer
        }

        /// Each of these calls is answered so, with this in the reason.
        #[track_caller]
        fn refused(&self, status: &str, calls: &[(&str, Value, &str)]) {
            let requests: Vec<Value> = calls
                .iter()
                .map(|(tool, args, _)| json!({"call": {"tool": tool, "args": args}}))
                .collect();
            for (answer, call) in self.ask(&requests).iter().zip(calls) {
                assert_eq!(answer["status"], status, "{call:?}: {answer}");
                let reason = answer["reason"].as_str().unwrap();
                assert!(reason.contains(call.2), "{call:?}: {reason}");
            }
        }

        fn text(&self, path: &str) -> String {
            fs::read_to_string(self.world.workspace().join(path)).unwrap()
        }

        fn exists(&self, path: &str) -> bool {
            fs::symlink_metadata(self.world.workspace().join(path)).is_ok()
        }
    }

    fn a_file_is_read_in_lines_with_its_totals(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        let lines: Vec<String> = (1..=1000).map(|number| format!("line {number}")).collect();
        world.write("library/long", lines.join("\n"));
        let answer = tools.done(
            "read_file",
            json!({"path": "library:long", "first_line": 10, "lines": 2}),
        );
        assert_eq!(answer["data"]["content"], "line 10\nline 11\n");
        assert_eq!(answer["data"]["total_lines"], 1000);
        let beyond = tools.done("read_file", json!({"path": "library/long", "first_line": 5000}));
        assert_eq!(beyond["data"]["content"], "");
        world.write("library/odd", b"a\r\nb\xff");
        let odd = tools.done("read_file", json!({"path": "library/odd"}));
        assert_eq!(odd["data"]["content"], "a\r\nb\u{fffd}");
    }

    fn what_lies_outside_every_root_is_neither_read_nor_written(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        let secret = world.outside().join("secret");
        let secret = secret.to_str().unwrap();
        let up = "work:../../outside/secret";
        tools.refused(
            "blocked",
            &[
                ("read_file", json!({"path": secret}), "lies in no root"),
                ("read_file", json!({"path": "/etc/passwd"}), "lies in no root"),
                ("read_file", json!({"path": up}), "out of the root `work`"),
                ("write_file", json!({"path": secret, "content": "x"}), "lies in no root"),
                ("delete_file", json!({"path": secret}), "lies in no root"),
                (
                    "move_file",
                    json!({"from": "work:.keep", "to": secret}),
                    "lies in no root",
                ),
                ("list_files", json!({"path": world.outside()}), "lies in no root"),
                (
                    "search_files",
                    json!({"path": "/etc", "pattern": "root"}),
                    "lies in no root",
                ),
            ],
        );
        assert!(fs::read_to_string(secret).unwrap().starts_with("the-private"));
        world.write("work/inside", "yes");
        assert_eq!(tools.done("read_file", json!({"path": "work:inside"}))["text"], "yes");
    }

    fn a_symlink_is_judged_by_where_it_leads(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        world.write("library/book", "words");
        let link = |to: &Path, at: &str| symlink(to, world.workspace().join(at)).unwrap();
        link(&world.outside().join("secret"), "work/out");
        link(Path::new("../library/book"), "work/book");
        link(&world.outside(), "work/folder");
        link(Path::new("round"), "work/round");
        assert_eq!(tools.done("read_file", json!({"path": "work/book"}))["text"], "words");
        tools.refused(
            "blocked",
            &[
                ("read_file", json!({"path": "work/out"}), "outside/secret"),
                (
                    "write_file",
                    json!({"path": "work/out", "content": "x"}),
                    "lies in no root",
                ),
                (
                    "write_file",
                    json!({"path": "work/book", "content": "x"}),
                    "does not give it",
                ),
                (
                    "write_file",
                    json!({"path": "work/folder/new", "content": "x"}),
                    "lies in no root",
                ),
            ],
        );
        tools.refused("failed", &[("read_file", json!({"path": "work/round"}), "symlinks")]);
        assert_eq!(tools.text("library/book"), "words");
        // Where the link leads does not exist in namespaces, so that there is nothing to come back from.
        let back = tools.call("read_file", json!({"path": "work/folder/../outside/secret"}));
        assert_ne!(back["status"], "done", "{back}");
        assert!(!back.to_string().contains("the-private"), "{back}");
        // A link is deleted itself, not what it leads to.
        tools.done("delete_file", json!({"path": "work/out"}));
        assert!(!tools.exists("work/out") && world.outside().join("secret").exists());
    }

    fn a_read_only_root_is_not_written(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        world.write("library/book", "words");
        let edit = json!({"path": "library/book", "edits": [{"old": "words", "new": "lies"}]});
        tools.refused(
            "blocked",
            &[
                (
                    "write_file",
                    json!({"path": "library/new", "content": "x"}),
                    "`mode: rw` there would allow it",
                ),
                ("edit_file", edit, "library"),
                ("delete_file", json!({"path": "library/book"}), "library"),
                (
                    "move_file",
                    json!({"from": "library/book", "to": "work/book"}),
                    "library",
                ),
                ("make_directory", json!({"path": "library/new"}), "library"),
            ],
        );
        assert_eq!(tools.text("library/book"), "words");
        tools.done("write_file", json!({"path": "work/new", "content": "x"}));
        assert_eq!(tools.text("work/new"), "x");
    }

    fn only_files_of_the_suffixes_are_written_and_read(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        world.write("notes/key.pem", "key");
        tools.done(
            "write_file",
            json!({"path": "notes:deep/er/a.md", "content": "hello\n"}),
        );
        assert_eq!(tools.text("notes/deep/er/a.md"), "hello\n");
        tools.done(
            "write_file",
            json!({"path": "notes:deep/er/a.md", "content": "again\n"}),
        );
        assert_eq!(
            tools.done("read_file", json!({"path": "notes:deep/er/a.md"}))["text"],
            "again\n"
        );
        tools.refused(
            "blocked",
            &[
                (
                    "write_file",
                    json!({"path": "notes/a.sh", "content": "x"}),
                    "[.md, .txt]",
                ),
                ("read_file", json!({"path": "notes/key.pem"}), "[.md, .txt]"),
                (
                    "move_file",
                    json!({"from": "notes/deep/er/a.md", "to": "notes/a.sh"}),
                    "[.md, .txt]",
                ),
                ("delete_file", json!({"path": "notes/key.pem"}), "[.md, .txt]"),
            ],
        );
        let found = tools.done("search_files", json!({"path": "notes", "pattern": "key|again"}));
        assert_eq!(found["data"]["matches"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(tools.text("notes/key.pem"), "key");
    }

    fn a_file_over_the_size_of_its_root_is_not_written(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        let large = "x".repeat(101);
        world.write("work/large.md", &large);
        world.write("notes/a.md", "x".repeat(99));
        let grow = json!({"path": "notes/a.md", "edits": [{"old": "xx", "new": "yyyy", "all": true}]});
        for (tool, args) in [
            ("write_file", json!({"path": "notes/new.md", "content": large})),
            ("edit_file", grow),
            ("move_file", json!({"from": "work/large.md", "to": "notes/large.md"})),
        ] {
            let answer = tools.call(tool, args);
            assert_ne!(answer["status"], "done", "{answer}");
            assert!(
                answer["reason"].as_str().unwrap().contains("the most is 100"),
                "{answer}"
            );
        }
        assert!(!tools.exists("notes/new.md") && !tools.exists("notes/large.md"));
        assert_eq!(tools.text("notes/a.md").len(), 99);
        tools.done(
            "write_file",
            json!({"path": "notes/new.md", "content": "x".repeat(100)}),
        );
    }

    fn a_denied_path_is_neither_read_nor_written_nor_listed_nor_searched(world: &Fixture) {
        let config = CONFIG.replace(
            "work: {root: ./work, mode: rw, write_approval: false}",
            "work: {root: ./work, mode: ro, deny: [./secret]}",
        );
        let tools = Tools::new(world, &config);
        world.write("work/secret/key", "needle");
        world.write("work/open/key", "needle");
        tools.refused(
            "blocked",
            &[
                ("read_file", json!({"path": "work/secret/key"}), "a deny at"),
                ("list_files", json!({"path": "work/secret"}), "a deny at"),
                (
                    "search_files",
                    json!({"path": "work/secret", "pattern": "x"}),
                    "a deny at",
                ),
            ],
        );
        let found = tools.done("search_files", json!({"path": "work/open", "pattern": "needle"}));
        assert_eq!(found["data"]["matches"].as_array().unwrap().len(), 1, "{found}");
        let all = tools.call("search_files", json!({"path": "work", "pattern": "needle"}));
        assert!(!all.to_string().contains("secret/key"), "{all}");
    }

    fn a_protected_name_is_not_written(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        tools.refused(
            "blocked",
            &[
                (
                    "write_file",
                    json!({"path": "work/.envrc", "content": "x"}),
                    "is protected",
                ),
                (
                    "write_file",
                    json!({"path": "work/.git/hooks/pre-commit", "content": "x"}),
                    "is protected",
                ),
                (
                    "write_file",
                    json!({"path": "work/a/.vscode/tasks.json", "content": "{}"}),
                    "is protected",
                ),
                (
                    "move_file",
                    json!({"from": "work/.keep", "to": "work/.bashrc"}),
                    "is protected",
                ),
            ],
        );
        assert!(!tools.exists("work/.envrc") && !tools.exists("work/.git") && !tools.exists("work/.bashrc"));
        tools.done("write_file", json!({"path": "work/envrc", "content": "x"}));
    }

    fn an_edit_keeps_the_mode_the_line_ends_and_other_names_of_the_file(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        let script = world.write("work/run.sh", "one\r\ntwo\r\nthree");
        fs::set_permissions(&script, PermissionsExt::from_mode(0o751)).unwrap();
        fs::hard_link(&script, world.workspace().join("work/other")).unwrap();
        let edit = json!({"path": "work/run.sh", "edits": [{"old": "two\n", "new": "2\nzwei\n"}]});
        tools.done("edit_file", edit);
        assert_eq!(tools.text("work/run.sh"), "one\r\n2\r\nzwei\r\nthree");
        assert_eq!(fs::metadata(&script).unwrap().mode() & 0o7777, 0o751);
        assert_eq!(tools.text("work/other"), "one\r\ntwo\r\nthree");
    }

    fn an_edit_that_does_not_match_says_what_is_nearest_and_changes_nothing(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        world.write("work/a.rs", "fn main() {\n\tlet x = 1;\n\tlet x = 1;\n}\n");
        let edit = |old: &str| json!({"path": "work/a.rs", "edits": [{"old": "fn main", "new": "fn other"}, {"old": old, "new": "y"}]});
        tools.refused(
            "failed",
            &[
                ("edit_file", edit("    let x = 1;\n}"), "line 3"),
                ("edit_file", edit("let x = 1;"), "2 times, at lines 2, 3"),
                ("edit_file", edit(""), "edit 2"),
                (
                    "edit_file",
                    json!({"path": "work/none", "edits": [{"old": "a", "new": "b"}]}),
                    "does not exist",
                ),
            ],
        );
        assert_eq!(tools.text("work/a.rs"), "fn main() {\n\tlet x = 1;\n\tlet x = 1;\n}\n");
    }

    fn a_path_of_another_spelling_is_named_where_it_may_be_listed(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        for directory in ["work", "outside"] {
            world.write(format!("{directory}/cafe\u{301}/Note.md"), "there\n");
        }
        let asked = "caf\u{e9}/note.md";
        let there = world.workspace().join("work/cafe\u{301}/Note.md");
        let edits = json!([{"old": "a", "new": "b"}]);
        let work = format!("work/{asked}");
        tools.refused(
            "failed",
            &[
                ("read_file", json!({"path": work}), there.to_str().unwrap()),
                (
                    "edit_file",
                    json!({"path": work, "edits": edits}),
                    there.to_str().unwrap(),
                ),
                ("list_files", json!({"path": "work/caf\u{e9}"}), "cafe\u{301} does"),
                ("read_file", json!({"path": "work/other"}), "does not exist"),
            ],
        );
        let outside = json!({"path": format!("outside/{asked}")});
        let answer = tools.call("read_file", outside);
        assert!(!answer.to_string().contains("Note.md"), "{answer}");
        // What is to be made is made as it is spelled.
        tools.done("write_file", json!({"path": work, "content": "new\n"}));
        assert_eq!(tools.text(&work), "new\n");
    }

    fn a_patch_of_several_files_is_applied_whole_or_not_at_all(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        world.write("work/a", "one\ntwo\n");
        world.write("work/b", "three\n");
        let patch = |second: &str| {
            format!(
                "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-{second}\n+3\n--- /dev/null\n+++ b/c/new\n@@ -0,0 +1 @@\n+new\n"
            )
        };
        let call = |second: &str| json!({"directory": "work", "patch": patch(second)});
        tools.refused("failed", &[("patch_file", call("four"), "hunk 1")]);
        assert_eq!(
            (tools.text("work/a"), tools.exists("work/c")),
            ("one\ntwo\n".to_owned(), false)
        );
        tools.done("patch_file", call("three"));
        assert_eq!(
            (tools.text("work/a"), tools.text("work/b")),
            ("1\ntwo\n".to_owned(), "3\n".to_owned())
        );
        assert_eq!(tools.text("work/c/new"), "new\n");
        // One file outside takes the whole patch with it.
        let outside = patch("3").replace("b/c/new", "../library/new");
        tools.refused(
            "blocked",
            &[("patch_file", json!({"directory": "work", "patch": outside}), "library")],
        );
        assert_eq!(tools.text("work/a"), "1\ntwo\n");
    }

    fn pipes_devices_and_directories_are_no_files(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        let fifo = world.workspace().join("work/fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
        fs::set_permissions(&fifo, PermissionsExt::from_mode(0o666)).unwrap();
        tools.refused(
            "failed",
            &[
                ("read_file", json!({"path": "work/fifo"}), "named pipe"),
                ("write_file", json!({"path": "work/fifo", "content": "x"}), "named pipe"),
                ("read_file", json!({"path": "work"}), "directory"),
                (
                    "write_file",
                    json!({"path": "work/fifo/x", "content": "x"}),
                    "no directory",
                ),
            ],
        );
        let found = tools.done("search_files", json!({"path": "work", "pattern": "x", "hidden": true}));
        assert!(
            !found["text"].as_str().unwrap().contains("the time was over"),
            "{found}"
        );
    }

    fn files_are_moved_and_deleted_and_roots_are_not(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        world.write("work/from/a", "a");
        world.write("work/from/b", "b");
        tools.done("move_file", json!({"from": "work/from", "to": "work/to/deep"}));
        assert_eq!(
            (tools.text("work/to/deep/a"), tools.exists("work/from")),
            ("a".to_owned(), false)
        );
        tools.refused(
            "failed",
            &[
                (
                    "move_file",
                    json!({"from": "work/to/deep/a", "to": "work/to/deep/b"}),
                    "exists already",
                ),
                ("delete_file", json!({"path": "work/to/deep"}), "not empty"),
            ],
        );
        tools.refused(
            "blocked",
            &[
                (
                    "delete_file",
                    json!({"path": "work", "recursive": true}),
                    "is the root `work`",
                ),
                (
                    "move_file",
                    json!({"from": "work:", "to": "work/sub"}),
                    "is the root `work`",
                ),
            ],
        );
        tools.done("delete_file", json!({"path": "work/to/deep", "recursive": true}));
        assert!(tools.exists("work/to") && !tools.exists("work/to/deep"));
        tools.done("make_directory", json!({"path": "work/x/y/z"}));
        assert!(tools.exists("work/x/y/z"));
    }

    fn hostile_names_are_listed_and_searched_unharmed(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        for name in [
            &b"-rf"[..],
            b"a b\nc",
            b"quo'te\"",
            b"\xff\xfe",
            "\u{202e}txt".as_bytes(),
        ] {
            let mut path = b"work/".to_vec();
            path.extend_from_slice(name);
            world.write(Path::new(std::ffi::OsStr::from_bytes(&path)), "needle\n");
        }
        let listed = tools.done("list_files", json!({"path": "work"}));
        assert_eq!(listed["data"]["entries"].as_array().unwrap().len(), 5, "{listed}");
        let text = listed["text"].as_str().unwrap();
        assert!(!text.contains('\u{202e}') && text.contains("\\u{202e}txt"), "{text}");
        assert!(text.contains("\\xff\\xfe") && text.contains("a b\\nc"), "{text}");
        let found = tools.done("search_files", json!({"path": "work", "pattern": "needle"}));
        assert_eq!(found["data"]["matches"].as_array().unwrap().len(), 5, "{found}");
        tools.done("write_file", json!({"path": "work/-rf", "content": "x"}));
        assert_eq!(tools.text("work/-rf"), "x");
    }

    fn a_search_honours_ignore_files_unless_told_otherwise(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        world.write("work/.gitignore", "target/\n*.log\n");
        world.write("work/target/x", "needle");
        world.write("work/a.log", "needle");
        world.write("work/src/a.rs", "one\nneedle\nthree\n");
        let count = |args: Value| tools.done("search_files", args)["data"]["total"].clone();
        assert_eq!(count(json!({"path": "work", "pattern": "needle"})), 1);
        assert_eq!(count(json!({"path": "work", "pattern": "needle", "ignored": true})), 3);
        assert_eq!(
            count(json!({"path": "work", "pattern": "NEEDLE", "ignore_case": true, "glob": "*.rs"})),
            1
        );
        let with = tools.done(
            "search_files",
            json!({"path": "work", "pattern": "needle", "context": 1}),
        );
        assert_eq!(with["data"]["matches"][0]["lines"], json!(["one", "needle", "three"]));
        tools.refused(
            "failed",
            &[("search_files", json!({"path": "work", "pattern": "("}), "work")],
        );
    }

    fn a_custom_tool_runs_its_program_and_nothing_else(world: &Fixture) {
        let custom = "\
custom_tools:
  count: {description: Count lines, command: [wc, -l, '{path}'], args: {path: {type: path, root: work}}, approval: none}
  say: {description: Say, sandbox_paths: [work], command: [echo, '{text}', '{number}', '{kind}'], args: {text: {type: string}, number: {type: integer}, kind: {type: choice, choices: [a, b]}}, approval: none}
";
        let tools = Tools::new(world, &format!("{CONFIG}{custom}"));
        world.write("work/lines", "1\n2\n");
        // The working directory lies in no root: it starts in the root that its path is bound to.
        let counted = tools.done("count", json!({"path": "work/lines"}));
        assert!(counted["text"].as_str().unwrap().starts_with("2 "), "{counted}");
        let said = tools.done("say", json!({"text": "$(id); x", "number": 3, "kind": "b"}));
        assert_eq!(said["text"], "$(id); x 3 b\n");
        tools.refused(
            "blocked",
            &[(
                "count",
                json!({"path": world.outside().join("secret")}),
                "lies in no root",
            )],
        );
        tools.refused(
            "failed",
            &[
                (
                    "say",
                    json!({"text": "-n", "number": 3, "kind": "b"}),
                    "may not begin with `-`",
                ),
                (
                    "say",
                    json!({"text": "x", "number": 3.5, "kind": "b"}),
                    "a whole number",
                ),
                ("say", json!({"text": "x", "number": 3, "kind": "c"}), "one of a, b"),
                ("say", json!({"text": "x", "number": 3}), "`kind` is missing"),
                (
                    "say",
                    json!({"text": "x", "number": 3, "kind": "a", "more": 1}),
                    "unknown argument `more`",
                ),
            ],
        );
    }

    fn a_custom_tool_writes_only_where_its_paths_lie(world: &Fixture) {
        let custom = "\
custom_tools:
  put: {description: Put, command: [cp, '{from}', '{to}'], args: {from: {type: path}, to: {type: path, root: work}}, approval: none}
  away: {description: Away, command: [touch, /SPACE/work/away], approval: none}
  there: {description: There, command: [touch, /SPACE/work/there], sandbox_paths: [work], approval: none}
";
        let custom = custom.replace("/SPACE", world.workspace().to_str().unwrap());
        let config = format!("{CONFIG}{custom}").replace("./library, mode: ro", "., mode: ro");
        let tools = Tools::new(world, &config);
        world.write("work/from", "x");
        tools.done("put", json!({"from": "work/from", "to": "work:to"}));
        assert_eq!(tools.text("work/to"), "x");
        let away = tools.call("away", json!({}));
        assert_eq!(away["status"], "failed", "{away}");
        assert!(!tools.exists("work/away"));
        tools.done("there", json!({}));
        assert!(tools.exists("work/there"));
    }

    fn a_huge_file_is_read_and_searched_and_a_wide_directory_listed(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        let huge = world.write("library/huge", "first\nsecond\n");
        fs::File::options()
            .write(true)
            .open(&huge)
            .unwrap()
            .set_len(1 << 30)
            .unwrap();
        let wide = world.workspace().join("library/wide");
        fs::create_dir(&wide).unwrap();
        for number in 0..20_000 {
            fs::write(wide.join(number.to_string()), "").unwrap();
        }
        let read = tools.call("read_file", json!({"path": "library/huge", "lines": 2}));
        assert!(
            read.to_string().contains("first") || read.to_string().contains("is no text"),
            "{read}"
        );
        let listed = tools.done("list_files", json!({"path": "library/wide", "limit": 10}));
        assert_eq!(listed["data"]["entries"].as_array().unwrap().len(), 10);
        assert_eq!(listed["data"]["total"], 20_000);
        let edit = json!({"path": "library/huge", "pattern": "first"});
        tools.done("search_files", edit);
    }

    fn nothing_is_left_behind(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        let before = Snapshot::of(world);
        tools.done("write_file", json!({"path": "work/a", "content": "x"}));
        tools.refused(
            "failed",
            &[(
                "edit_file",
                json!({"path": "work/a", "edits": [{"old": "q", "new": "r"}]}),
                "edit 1",
            )],
        );
        let mut names: Vec<_> = fs::read_dir(world.workspace().join("work"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, [".keep", "a"]);
        assert_nothing_left_behind(&before, world);
    }

    fn a_tool_that_can_never_be_allowed_is_not_listed(world: &Fixture) {
        let config = "\
extends: [system]
sandbox: {paths: {library: {root: ./library, mode: ro}}}
shell: {default: {allowed: false}}
tools: {search_files: {approval: deny}}
";
        let tools = Tools::new(world, config);
        let run = world
            .stockade(&["call", "-q", "--json", "--config", "stockade-test.yaml"])
            .output();
        let listed: Value = serde_json::from_str(&run.out()).unwrap();
        let names: Vec<&str> = listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["read_file", "list_files"]);
        tools.refused(
            "refused",
            &[
                (
                    "write_file",
                    json!({"path": "library/x", "content": ""}),
                    "no tool `write_file`",
                ),
                ("shell", json!({"command": "true"}), "no tool `shell`"),
            ],
        );
    }

    fn arguments_that_are_wrong_are_an_error_that_shows_what_is_right(world: &Fixture) {
        let tools = Tools::new(world, CONFIG);
        tools.refused(
            "failed",
            &[
                ("read_file", json!({"file": "x"}), "unknown field `file`"),
                ("read_file", json!({}), "missing field `path`"),
                ("read_file", json!({"path": "a\u{0}b"}), "NUL"),
                ("read_file", json!({"path": ""}), "empty path"),
                (
                    "shell",
                    json!({"command": "true", "argv": ["true"]}),
                    "either `command`",
                ),
                ("patch_file", json!({"patch": "hello"}), "`---`, `+++` and `@@` lines"),
            ],
        );
        let run = world
            .stockade(&[
                "call",
                "-q",
                "--config",
                "stockade-test.yaml",
                "read_file",
                "{\"file\": 1}",
            ])
            .output();
        assert_eq!(run.code(), 125);
        let told = String::from_utf8(run.stderr).unwrap();
        assert!(told.contains("\n      `path` (string, required): The file"), "{told}");
        assert!(told.contains("\n      `lines` (integer): How many lines"), "{told}");
        let edits = world
            .stockade(&["call", "-q", "--config", "stockade-test.yaml", "edit_file", "{}"])
            .output();
        let told = String::from_utf8(edits.stderr).unwrap();
        assert!(told.contains("\n        `old` (string, required): The text"), "{told}");
    }
}
