//! The house is as it says: floors, the one place for `unsafe`, the size of files, the purity of `policy/`.
//!
//! Every rule is a function of source text (`architecture/rules.rs`). Each is held against the real tree, and beside
//! that against made-up sources that break it, so that a rule which has gone blind fails too.

#[cfg(test)]
mod circles;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod scan;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::circles::circles;
    use super::rules::{
        LONGEST_FILE, Source, folders_without_story, imports_that_climb, impurity, test_only, too_long,
        unexplained_dependencies, unsafe_code,
    };
    use super::scan::{Named, paths, tokens};

    /// Every `.rs` file below `src/`.
    fn house() -> Vec<Source> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut sources, mut folders) = (Vec::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                    sources.push(Source::new(name, &fs::read_to_string(&path).unwrap()));
                }
            }
        }
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        sources
    }

    /// The house without the files that are compiled for tests alone.
    fn shipped() -> Vec<Source> {
        let mut sources = house();
        let tests = test_only(&sources);
        let is_test = |path: &str| {
            tests.iter().any(|test| {
                if test.ends_with('/') {
                    path.starts_with(test)
                } else {
                    path == test
                }
            })
        };
        sources.retain(|source| !is_test(&source.path));
        sources
    }

    #[track_caller]
    fn assert_clean(found: &[String]) {
        assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    }

    #[track_caller]
    fn assert_found(found: &[String], what: &str) {
        assert!(
            found.len() == 1 && found[0].contains(what),
            "expected `{what}`, got {found:#?}"
        );
    }

    fn climbs(path: &str, text: &str) -> Vec<String> {
        imports_that_climb(&Source::new(path, text))
    }

    // Floors.

    #[test]
    fn imports_only_go_down() {
        assert_clean(&house().iter().flat_map(imports_that_climb).collect::<Vec<_>>());
    }

    #[test]
    fn the_scan_sees_the_imports_that_are_there() {
        let sources = house();
        assert!(sources.len() > 50, "only {} files", sources.len());
        let session = sources.iter().find(|source| source.path == "confine/mod.rs").unwrap();
        let moved = Source::new("policy/mod.rs", &session.text);
        assert_clean(&imports_that_climb(&moved));
        let plan = sources
            .iter()
            .find(|source| source.path == "confine/layers/ruleset.rs")
            .unwrap();
        let moved = imports_that_climb(&Source::new("policy/ruleset.rs", &plan.text));
        assert!(
            moved.iter().any(|found| found.contains("policy/ reaches backend/")),
            "{moved:?}"
        );
    }

    #[test]
    fn an_import_from_a_floor_above_is_found() {
        assert_found(
            &climbs("policy/x.rs", "use crate::config::Config;"),
            "x.rs:1: policy/ reaches config/",
        );
        assert_found(
            &climbs("backend/x.rs", "\n\nuse crate::tools::Outcome;"),
            "x.rs:3: backend/ reaches tools/",
        );
        assert_found(
            &climbs("tools/x.rs", "use crate::inspect::Inspection;"),
            "tools/ reaches inspect/",
        );
        assert_clean(&climbs(
            "tools/x.rs",
            "use crate::backend::Plan;\nuse crate::policy::Policy;",
        ));
    }

    #[test]
    fn an_import_from_another_folder_of_the_same_floor_is_found() {
        assert_found(
            &climbs("config/x.rs", "use crate::profile::derive;"),
            "config/ reaches profile/",
        );
        assert_found(
            &climbs("confine/x.rs", "use crate::approval::Memory;"),
            "confine/ reaches approval/",
        );
        assert_found(
            &climbs("learn/x.rs", "use crate::inspect::Inspection;"),
            "learn/ reaches inspect/",
        );
        assert_clean(&climbs("config/x.rs", "use crate::config::raw::Raw;"));
    }

    #[test]
    fn the_command_line_reaches_confinement_through_tools_only() {
        assert_found(
            &climbs("cli/x.rs", "use crate::confine::Session;"),
            "other than through tools/",
        );
        assert_found(
            &climbs("mcp/x.rs", "fn f() { crate::backend::host::probe(); }"),
            "other than through tools/",
        );
        assert_clean(&climbs(
            "cli/x.rs",
            "use crate::{tools::Outcome, config, approval::Memory};",
        ));
    }

    #[test]
    fn an_import_hidden_in_a_group_is_found() {
        let text = "use crate::{\n    policy::{Right, Rights},\n    confine::{self, Session as S},\n};";
        let found = climbs("backend/x.rs", text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found
                .iter()
                .all(|found| found.contains("x.rs:3: backend/ reaches confine/")),
            "{found:?}"
        );
    }

    #[test]
    fn an_import_by_way_of_super_is_found() {
        assert_found(
            &climbs("policy/x.rs", "use super::super::config::Config;"),
            "policy/ reaches config/",
        );
        assert_found(
            &climbs("policy/shell/mod.rs", "use super::super::{cli};"),
            "policy/ reaches cli/",
        );
        assert_clean(&climbs("policy/shell/x.rs", "use super::super::right::Right;"));
        assert_clean(&climbs("policy/x.rs", "mod tests { use super::super::right::Right; }"));
    }

    #[test]
    fn a_path_in_the_middle_of_the_code_is_found() {
        let text = "fn f() -> Result<(), crate::cli::Complaint> { Ok(()) }";
        assert_found(&climbs("tools/x.rs", text), "tools/ reaches cli/");
        assert_found(
            &climbs("tools/x.rs", "macro_rules! m { () => { $crate::cli::f() } }"),
            "tools/ reaches cli/",
        );
        assert_found(
            &climbs("policy/x.rs", "type T = Vec::<crate::cli::T>;"),
            "policy/ reaches cli/",
        );
    }

    #[test]
    fn comments_and_literals_are_not_imports() {
        let text = r###"
            // use crate::cli::a;
            /// See [`crate::cli`]. /* " */
            /* use crate::cli::b; /* nested */ use crate::cli::c; */
            const A: &str = "use crate::cli::d; \" crate::cli::e";
            const B: &str = r##"use crate::cli::f; "# crate::cli::g"##;
            const C: &[u8] = b"crate::cli::h";
            const D: [char; 3] = ['"', '\'', '\\'];
            const E: &'static str = r#"crate::cli::"#;
        "###;
        assert_clean(&climbs("policy/x.rs", text));
        let after = format!("{text} use crate::cli::i;");
        assert_found(&climbs("policy/x.rs", &after), "policy/ reaches cli/");
    }

    #[test]
    fn a_detour_around_the_use_lines_is_found() {
        for (text, what) in [
            ("use crate as house;", "another name"),
            ("extern crate self as house;", "another name"),
            ("use crate::*;", "names the crate itself"),
            ("use crate::{self as house};", "names the crate itself"),
            ("use super::super as house;", "names the crate itself"),
            ("#[path = \"../cli/args.rs\"]\nmod args;", "pulls in a file"),
            ("include!(\"../cli/args.rs\");", "pulls in a file"),
        ] {
            assert_found(&climbs("policy/x.rs", text), what);
        }
        assert_clean(&climbs(
            "policy/x.rs",
            "const P: &str = include_str!(\"p.yaml\"); pub(crate) fn path() {}",
        ));
    }

    #[test]
    fn a_file_or_folder_outside_the_floors_is_found() {
        assert_found(&climbs("helpers.rs", ""), "lies in no folder");
        assert_found(&climbs("utils/mod.rs", ""), "on no floor");
        assert_found(&climbs("tools/x.rs", "use crate::utils::f;"), "on no floor");
        assert_clean(&climbs("main.rs", "use crate::whatever::f;"));
    }

    #[test]
    fn groups_are_spelled_out() {
        let spelled: Vec<String> = paths(&tokens("use a::{b, c::{d as e, self}, r#f::*};"))
            .into_iter()
            .map(|Named { segments, .. }| segments.join("::"))
            .collect();
        assert_eq!(spelled, ["a::b", "a::c::d", "a::c::self", "a::f::*"]);
    }

    // Circles.

    #[test]
    fn no_files_import_each_other_in_a_circle() {
        assert_clean(&circles(&shipped()));
    }

    #[test]
    fn a_circle_is_found_however_a_file_names_the_next() {
        let one = |text: &str| {
            let other = Source::new("policy/b.rs", "use super::a::A;\npub(crate) struct B;");
            let parent = Source::new("policy/mod.rs", "mod a;\nmod b;\npub(crate) use b::B;");
            circles(&[parent, Source::new("policy/a.rs", text), other])
        };
        for text in [
            "use super::b::B;",
            "use super::{b::B as C};",
            "use super::B;",
            "use crate::policy::{B};",
            "use super::b;\nfn f() -> b::B { b::B }",
            "fn f() -> super::b::B { super::b::B }",
            "type T = Vec<crate::policy::B>;",
            // A module, or a function that is called like it.
            "use super::b;",
        ] {
            let found = one(text);
            assert!(found.len() == 1 && found[0].starts_with("2 files"), "{text}: {found:?}");
        }
        for text in [
            "struct A;",
            "mod inner {\n    use super::A;\n}\nstruct A;",
            "#[cfg(test)]\nmod tests {\n    use super::super::b::B;\n}",
            "// use super::b::B;",
        ] {
            assert_clean(&one(text));
        }
        // What a parent defines itself ties it to the children that use it.
        let parent = Source::new("policy/mod.rs", "mod a;\npub(crate) use a::A;\npub(crate) struct P;");
        assert_found(
            &circles(&[parent, Source::new("policy/a.rs", "use super::P;\nstruct A;")]),
            "policy/a -> policy",
        );
    }

    // Unsafe.

    #[test]
    fn unsafe_is_in_one_place() {
        assert_clean(&house().iter().flat_map(unsafe_code).collect::<Vec<_>>());
    }

    #[test]
    fn unsafe_elsewhere_is_found() {
        let block = "fn f() {\n    unsafe { g() }\n}";
        assert_found(
            &unsafe_code(&Source::new("confine/forker/serve.rs", block)),
            "serve.rs:2: unsafe",
        );
        assert_found(
            &unsafe_code(&Source::new("confine/system.rs", "unsafe impl Send for T {}")),
            "unsafe",
        );
        assert_found(
            &unsafe_code(&Source::new("main.rs", "#![allow(unsafe_code)]")),
            "unsafe",
        );
        assert_clean(&unsafe_code(&Source::new("confine/sys.rs", block)));
        assert_clean(&unsafe_code(&Source::new("confine/sys/process.rs", block)));
        assert_clean(&unsafe_code(&Source::new(
            "confine/forker/serve.rs",
            "// unsafe\nconst A: &str = \"unsafe\";",
        )));
    }

    // Size.

    #[test]
    fn files_are_short() {
        assert_clean(&shipped().iter().flat_map(too_long).collect::<Vec<_>>());
    }

    #[test]
    fn a_long_file_is_found_and_its_tests_are_not_counted() {
        let code = "fn f() {}\n".repeat(LONGEST_FILE);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    fn t() {}\n".repeat(300));
        assert_clean(&too_long(&Source::new("policy/x.rs", &format!("{code}{tests}"))));
        assert_found(
            &too_long(&Source::new("policy/x.rs", &format!("{code}fn g() {{}}\n{tests}"))),
            "401 lines",
        );
        assert_found(
            &too_long(&Source::new("policy/x.rs", &format!("{tests}{code}"))),
            "703 lines",
        );
    }

    #[test]
    fn only_a_declaration_for_tests_makes_a_test_file() {
        let parent = Source::new(
            "policy/shell/mod.rs",
            "mod judge;\n#[cfg(test)]\nmod laws;\nmod walk;\n",
        );
        let found: Vec<String> = test_only(&[parent]).into_iter().collect();
        assert_eq!(found, ["policy/shell/laws.rs", "policy/shell/laws/"]);
    }

    // Purity.

    #[test]
    fn the_policy_knows_no_system() {
        assert_clean(&shipped().iter().flat_map(impurity).collect::<Vec<_>>());
    }

    #[test]
    fn a_policy_that_knows_a_system_is_found() {
        for (text, what) in [
            ("use std::fs;", "`std::fs`"),
            ("use std::{collections::BTreeMap, process::Command};", "`std::process`"),
            ("fn f() { std::env::var(\"X\"); }", "`std::env`"),
            ("#[derive(serde::Serialize)] struct A;", "`serde`"),
            ("use libc::c_int;", "`libc`"),
            ("use nix::unistd::Pid;", "`nix`"),
            ("fn f(path: &Path) -> bool { path.exists() }", "`.exists()`"),
        ] {
            assert_found(&impurity(&Source::new("policy/x.rs", text)), what);
            assert_clean(&impurity(&Source::new("confine/x.rs", text)));
        }
        assert_clean(&impurity(&Source::new(
            "policy/x.rs",
            "use std::path::Path; // no serde, no std::fs",
        )));
    }

    // Stories.

    #[test]
    fn every_folder_tells_its_story() {
        assert_clean(&folders_without_story(&house()));
    }

    #[test]
    fn a_folder_without_a_story_is_found() {
        let told = Source::new("policy/mod.rs", "//! The vocabulary.\n");
        let mute = Source::new("policy/shell/mod.rs", "mod judge;\n//! Late.\n");
        let empty = Source::new("policy/path/mod.rs", "//! \n");
        let lone = Source::new("policy/grant/x.rs", "//! A file.\n");
        let beside = [
            Source::new("policy/sys.rs", "//! Calls.\n"),
            Source::new("policy/sys/x.rs", ""),
        ];
        assert_clean(&folders_without_story(&[vec![told.clone()], beside.to_vec()].concat()));
        assert_found(
            &folders_without_story(&[told.clone(), mute]),
            "policy/shell/: does not start",
        );
        assert_found(
            &folders_without_story(&[told.clone(), empty]),
            "policy/path/: does not start",
        );
        assert_found(&folders_without_story(&[told, lone]), "policy/grant/: has no mod.rs");
    }

    // Dependencies.

    #[test]
    fn every_dependency_has_a_reason() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_clean(&unexplained_dependencies(&fs::read_to_string(manifest).unwrap()));
    }

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        for manifest in [
            "[dependencies]\nnix = \"1\"\nleft-pad = \"1\"\n",
            "[dev-dependencies]\nleft-pad = { version = \"1\" }\n",
            "[target.'cfg(unix)'.dependencies]\nleft-pad = \"1\"\n",
            "[dependencies.left-pad]\nversion = \"1\"\n",
            "# About something else.\n\n[dependencies]\nleft-pad = \"1\"\n",
        ] {
            assert_found(&unexplained_dependencies(manifest), "left-pad");
        }
        for manifest in [
            "[dependencies]\nleft-pad = \"1\" # pads\n",
            "[dependencies]\n# Pads.\nleft-pad = \"1\"\n",
            "[package]\nname = \"x\"\n[lints.rust]\nunsafe_code = \"deny\"\n",
        ] {
            assert_clean(&unexplained_dependencies(manifest));
        }
    }
}
