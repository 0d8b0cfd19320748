//! What `stockade profile export` writes, as the programs that read it meet it.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use serde_json::Value;
    use stockade::backend::seatbelt::{self, Parameter, SeatbeltPlan};
    use stockade::policy::{AbsPath, Access, Operation};

    use crate::common::audited::{CONFIG, json, plain, profile, shown, world};
    use crate::common::{Actor, Backend, Fixture, Run, find_program, world_with};

    /// The config with nothing in it that some form has no words for.
    fn plain_config(world: &Fixture) {
        let text = CONFIG.replace("deny: [.env, ./secret]", "deny: [./secret]");
        world.write(world.workspace().join("plain.yaml"), text);
    }

    fn exported(world: &Fixture, format: &str) -> Run {
        profile(world, &["export", "--config", "plain.yaml", "--format", format])
    }

    #[test]
    fn an_exported_profile_is_stable_and_permits_what_its_config_permits() {
        let world = world();
        insta::assert_snapshot!("export_json", {
            plain_config(&world);
            shown(&world, exported(&world, "json"))
        });
        let words = [
            "export",
            "--config",
            "agent.yaml",
            "--format",
            "json",
            "--output",
            "agent.json",
        ];
        assert_eq!(profile(&world, &words).ok(), "");
        assert_eq!(
            profile(&world, &["diff", "agent.json", "agent.yaml"]).ok(),
            "they permit the same\n"
        );
        assert_eq!(profile(&world, &["diff", "agent.json", "plain.yaml"]).code(), 1);
    }

    #[test]
    fn a_profile_with_names_that_are_not_text_survives_its_export() {
        let world = world();
        let name = OsStr::from_bytes(b"n\xff\n'");
        fs::create_dir(world.workspace().join(name)).unwrap();
        let run = world
            .stockade(&["profile", "export", "--format", "json", "--output", "odd.json", "--rw"])
            .args([name])
            .cwd(world.workspace())
            .output();
        run.ok();
        let report = profile(&world, &["diff", "odd.json", "system"]).exits(1);
        assert!(report.out().contains("n\\xff\\n'"), "{}", report.out());
    }

    #[test]
    fn what_is_no_exported_profile_is_refused() {
        let world = world();
        world.write(world.workspace().join("new.json"), "{\"stockade_profile\": 99}");
        assert!(
            profile(&world, &["diff", "new.json", "system"])
                .exits(125)
                .err()
                .contains("new.json")
        );
    }

    #[test]
    fn landlock_rules_are_exported_with_the_names_of_their_rights() {
        let world = world();
        plain_config(&world);
        let rules = json(&exported(&world, "landlock"));
        let handled = rules["ruleset"][0]["handledAccessFs"].as_array().unwrap();
        let tools = world.workspace().join("tools");
        let of_tools = rules["pathBeneath"]
            .as_array()
            .unwrap()
            .iter()
            .find(|rule| rule["parent"][0] == tools.to_str().unwrap())
            .unwrap();
        assert_eq!(
            of_tools["allowedAccess"],
            serde_json::json!(["execute", "read_file", "read_dir"])
        );
        for rule in rules["pathBeneath"].as_array().unwrap() {
            let allowed = rule["allowedAccess"].as_array().unwrap();
            assert!(allowed.iter().all(|right| handled.contains(right)), "{rule}");
        }
    }

    #[test]
    fn the_oci_filter_is_what_the_schema_of_the_runtime_spec_asks_for() {
        let world = world();
        plain_config(&world);
        let filter = json(&exported(&world, "seccomp-oci"));
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.set_default_draft(boon::Draft::V4);
        for file in ["config-linux.json", "defs.json", "defs-linux.json"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oci").join(file);
            let schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            compiler.add_resource(&format!("file:///oci/{file}"), schema).unwrap();
        }
        let schema = compiler
            .compile("file:///oci/config-linux.json#/linux", &mut schemas)
            .unwrap();
        let config = serde_json::json!({"seccomp": filter});
        schemas.validate(&config, schema).unwrap();
        let mut wrong = config;
        wrong["seccomp"]["defaultAction"] = "SCMP_ACT_PERHAPS".into();
        assert!(schemas.validate(&wrong, schema).is_err());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_oci_filter_is_stable_and_small_enough_for_a_kernel() {
        let world = world();
        plain_config(&world);
        let filter = json(&exported(&world, "seccomp-oci"));
        let rules = filter["syscalls"].as_array().unwrap();
        // A condition takes a handful of instructions, and a filter has at most 4,096.
        assert!(rules.len() < 500, "{}", rules.len());
        let line = |rule: &Value| {
            let args: Vec<String> = rule["args"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|a| {
                    format!(
                        "{}&{:#x}={:#x}",
                        a["index"],
                        a["value"].as_u64().unwrap(),
                        a["valueTwo"].as_u64().unwrap()
                    )
                })
                .collect();
            let names: Vec<&str> = rule["names"]
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_str().unwrap())
                .collect();
            format!(
                "{} {} {} {}\n",
                rule["action"],
                rule["errnoRet"],
                names.join(" "),
                args.join(" ")
            )
        };
        insta::assert_snapshot!("export_seccomp", rules.iter().map(line).collect::<String>());
    }

    #[test]
    fn the_drop_in_is_accepted_by_systemd() {
        let Some(world) = world_with(Actor::invoker(), Backend::Landlock, &["systemd-analyze"]) else {
            return;
        };
        for folder in ["notes", "src/secret", "tools", "private", "50% a  b"] {
            fs::create_dir_all(world.workspace().join(folder)).unwrap();
        }
        plain_config(&world);
        let drop_in = exported(&world, "systemd");
        insta::assert_snapshot!("export_systemd", shown(&world, exported(&world, "systemd")));
        let odd = profile(&world, &["export", "--format", "systemd", "--rw", "50% a  b"]).ok();
        assert!(odd.contains("/50%% a  b\""), "{odd}");
        for text in [drop_in.ok(), odd] {
            let unit = world.workspace().join("agent.service");
            world.write(&unit, format!("{text}\nExecStart=/usr/bin/true\n"));
            let judged = world
                .bare(find_program(world.actor, "systemd-analyze").unwrap())
                .args(["security", "--offline=true", "--no-pager", unit.to_str().unwrap()])
                .output();
            let (out, err) = (judged.out(), judged.err());
            judged.exits(0);
            assert!(out.contains("Overall exposure level"), "{out}");
            // Calls younger than this systemd are the one thing that it may not know.
            let unknown = |line: &&str| !line.contains("Failed to parse system call");
            assert_eq!(err.lines().find(unknown), None);
        }
    }

    /// The export in this form, of what flags say, and what is said beside it.
    fn exported_flags(world: &Fixture, format: &str, flags: &[&OsStr]) -> Run {
        let run = world.stockade(&["profile", "export", "--format", format]).args(flags);
        run.cwd(world.workspace()).output()
    }

    #[test]
    fn the_arguments_of_bwrap_are_stable_and_interpreted_by_a_reader() {
        let world = world();
        plain_config(&world);
        world.write(world.workspace().join("src/.envrc"), "");
        let run = exported(&world, "bwrap");
        assert!(run.err().contains("not held by bwrap"), "{}", run.err());
        // What the machine has for a system differs; what the config says does not.
        let own = world.workspace().to_str().unwrap().to_owned();
        let text = run.ok();
        let arguments: Vec<&str> = text.split_terminator('\0').collect();
        let (mut kept, mut before) = (String::new(), String::new());
        let mut at = 0;
        while let Some(option) = arguments.get(at) {
            let values = arguments[at + 1..].iter().take_while(|word| !word.starts_with("--"));
            let values: Vec<&str> = values.copied().collect();
            at += 1 + values.len();
            before.extend([*option, " ", &values.join(" "), "\n"]);
            // These are about the mount that comes next.
            if ["--perms", "--size"].contains(option) {
                continue;
            }
            let line = std::mem::take(&mut before);
            if values
                .iter()
                .all(|value| !value.starts_with('/') || value.starts_with(&own))
            {
                kept.push_str(&line);
            }
        }
        insta::assert_snapshot!("export_bwrap", plain(&world, &kept));
    }

    crate::common::in_namespaces! {
        the_exported_arguments_hold_in_the_real_bwrap [];
        hostile_names_survive_the_export_to_bwrap [];
    }

    /// `bwrap --args 3 -- sh -c LINE`, with what was exported.
    fn under_bwrap(world: &Fixture, flags: &[&OsStr], line: &str) -> Run {
        let file = world.workspace().join("arguments");
        let output = [OsStr::new("--output"), file.as_os_str()];
        exported_flags(world, "bwrap", &[flags, &output].concat()).ok();
        let sh = world
            .bare(Path::new("/bin/sh"))
            .args(["-c", "exec bwrap --args 3 -- /bin/sh -c \"$1\" 3<\"$0\""]);
        sh.args([file.as_os_str(), OsStr::new(line)])
            .cwd(world.workspace())
            .output()
    }

    fn the_exported_arguments_hold_in_the_real_bwrap(world: &Fixture) {
        for file in ["w/in/secret", "r/text", "w/.envrc", "beside"] {
            world.write(world.workspace().join(file), "old\n");
        }
        let flags = ["--rw", "w", "--ro", "r", "--deny", "w/in"].map(OsStr::new);
        let at = |line: &str| line.replace('@', world.workspace().to_str().unwrap());
        for (line, may) in [
            ("echo new > @/w/made", true),
            ("cat @/r/text", true),
            ("echo new > @/r/text", false),
            ("cat @/w/in/secret", false),
            ("mv @/w/in @/w/out", false),
            ("echo new > @/w/.envrc", false),
            ("mv @/w/.envrc @/w/aside", false),
            ("cat @/beside", false),
        ] {
            let run = under_bwrap(world, &flags, &at(line));
            assert_eq!(run.code() == 0, may, "{line}: {}", run.err());
            assert!(!run.err().contains("bwrap:"), "{line}: {}", run.err());
        }
        assert_eq!(fs::read_to_string(world.workspace().join("w/made")).unwrap(), "new\n");
        assert_eq!(fs::read_to_string(world.workspace().join("w/.envrc")).unwrap(), "old\n");
    }

    fn hostile_names_survive_the_export_to_bwrap(world: &Fixture) {
        for name in [&b"-x"[..], b"a b", b"a'\"\n", b"n\xff", "e\u{202e}\u{2028}x".as_bytes()] {
            let name = OsStr::from_bytes(name);
            let folder = world.workspace().join(name);
            world.write(folder.join("here"), "");
            // The name is not put into the line: the place is found by what is in it.
            let mut flag = OsStr::new("--rw=").to_owned();
            flag.push(name);
            let up = world.workspace().to_str().unwrap().to_owned();
            let run = under_bwrap(
                world,
                &[&flag],
                &format!("cd {up} && for each in ./*/; do ls \"$each/here\" && echo > \"$each/new\" || exit; done"),
            );
            assert_eq!(run.code(), 0, "{name:?}: {}", run.err());
            assert!(folder.join("new").exists(), "{name:?}");
            fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn what_mounts_alone_cannot_hold_is_refused_by_name_and_what_they_need_not_show_is_left_out() {
        let world = world();
        let words = ["export", "--format", "bwrap", "--config", "agent.yaml"];
        let run = profile(&world, &words).exits(125);
        assert!(
            run.err()
                .contains("agent.yaml:6: a bwrap without Landlock inside cannot hold `deny all .env"),
            "{}",
            run.err()
        );
        plain_config(&world);
        let text = exported(&world, "bwrap").ok();
        assert!(text.contains("/src\0") && !text.contains("/notes\0"), "{text}");
    }

    #[test]
    fn the_script_for_sandbox_exec_hands_over_a_text_that_permits_what_the_config_permits() {
        let world = world();
        plain_config(&world);
        let script = exported(&world, "seatbelt").ok();
        insta::assert_snapshot!("export_seatbelt", {
            // Where the workspace lies decides about the rest; the text has tests of its own.
            let kept = |line: &&str| line.starts_with(['#', 'e']) || line.contains("/src'") || line.starts_with("  --");
            let kept: Vec<&str> = script.lines().filter(kept).collect();
            plain(&world, &kept.join("\n")).replace("/private<workspace>", "<workspace>")
        });
        // A stand-in that says what it was told.
        let told = world.workspace().join("told");
        let stand_in = world.workspace().join("stand-in");
        world.write(
            &stand_in,
            format!("#!/bin/sh\nprintf '%s\\0' \"$@\" > '{}'\n", told.display()),
        );
        let script = script.replace("/usr/bin/sandbox-exec", &format!("sh {}", stand_in.display()));
        world.write(world.workspace().join("script"), script);
        let sh = world
            .bare(Path::new("/bin/sh"))
            .args(["script", "make", "a b", "$(false)"]);
        sh.cwd(world.workspace()).output().ok();
        let told = fs::read_to_string(told).unwrap();
        let mut words = told.split_terminator('\0');
        assert_eq!(words.next(), Some("-p"));
        let text = words.next().unwrap().to_owned();
        let words: Vec<&str> = words.collect();
        let (command, parameters) = (&words[words.len() - 4..], &words[..words.len() - 4]);
        assert_eq!(command, ["--", "make", "a b", "$(false)"]);
        let pair = |pair: &[&str]| match pair {
            ["-D", parameter] => {
                let (name, value) = parameter.split_once('=').unwrap();
                Parameter {
                    name: name.to_owned(),
                    value: value.to_owned(),
                }
            }
            other => panic!("{other:?}"),
        };
        let plan = SeatbeltPlan {
            text,
            parameters: parameters.chunks(2).map(pair).collect(),
        };
        let script = seatbelt::parse(&plan).unwrap();
        let may = |operation, path: &str| {
            let path = AbsPath::new(world.workspace().join(path)).unwrap();
            seatbelt::view::widest(&script, operation, &path) != Access::Denied
        };
        assert!(may(Operation::Write, "src/a") && may(Operation::Read, "private/a"));
        assert!(
            !may(Operation::Read, "src/secret/a") && !may(Operation::Write, "private/a") && !may(Operation::Read, "x")
        );
    }

    #[test]
    fn a_name_with_a_quote_survives_in_the_script_and_one_that_cannot_be_seen_is_refused() {
        let world = world();
        let name = "it's; $(x) \"`y`";
        fs::create_dir(world.workspace().join(name)).unwrap();
        let script = exported_flags(&world, "seatbelt", &["--rw", name].map(OsStr::new)).ok();
        assert!(script.contains("it'\\''s; $(x) \"`y`'"), "{script}");
        for name in ["a\nb", "a\u{202e}b", "a\u{2028}b", "a\u{200b}"] {
            fs::create_dir(world.workspace().join(name)).unwrap();
            let run = exported_flags(&world, "seatbelt", &["--rw", name].map(OsStr::new)).exits(125);
            assert!(run.err().contains("a character that cannot be seen"), "{}", run.err());
        }
    }

    #[test]
    fn what_cannot_be_seen_is_escaped_in_json_and_reads_back() {
        let world = world();
        let name = "a\u{202e}b\u{2028}c";
        fs::create_dir(world.workspace().join(name)).unwrap();
        for format in ["json", "landlock"] {
            let text = exported_flags(&world, format, &["--rw", name].map(OsStr::new)).ok();
            assert!(
                text.contains("a\\u202eb\\u2028c") && !text.contains('\u{202e}'),
                "{text}"
            );
            assert!(serde_json::from_str::<Value>(&text).unwrap().to_string().contains(name));
        }
    }

    #[test]
    fn what_systemd_has_no_words_for_is_refused_by_name() {
        let world = world();
        let refused = |words: &[&str], said: &str| {
            let run = profile(&world, &[&["export", "--format", "systemd"], words].concat()).exits(125);
            assert!(run.err().contains(said), "{}", run.err());
        };
        refused(
            &["--config", "agent.yaml"],
            "agent.yaml:6: a systemd drop-in cannot hold `deny all .env",
        );
        for name in ["a:b", "a\"b", "a\\b", "a\nb", "a\u{202e}b", "a\u{2028}b", "a\u{ad}b"] {
            fs::create_dir(world.workspace().join(name)).unwrap();
            refused(&["--rw", name], "cannot name");
        }
    }
}
