//! What the documents tell people to write is held against what reads it: the real argument parser, the real reader
//! of configs, and the readers of each language.
#![allow(missing_docs, reason = "a test file")]
#![expect(clippy::disallowed_methods, reason = "the documents are held against real programs")]

#[cfg(test)]
mod cli;
#[cfg(test)]
mod kubernetes;
#[cfg(test)]
mod snippets;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use clap::error::ErrorKind;
    use clap::{CommandFactory as _, Parser as _};
    use serde_json::Value;
    use stockade::cli::Arguments;

    use crate::documents::cli::reference;
    use crate::documents::kubernetes::{Object, command, containers, objects};
    use crate::documents::snippets::{blocks, in_language, inline, lines, read_by_python, words};

    fn project() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR"))
    }

    fn document(name: &str) -> String {
        fs::read_to_string(project().join(name)).unwrap()
    }

    /// The words of `stockade SUBCOMMAND …` in a line, whatever starts it (`docker run … stockade mcp …`).
    fn command_line(words: &[String]) -> Option<&[String]> {
        let names: Vec<String> = Arguments::command()
            .get_subcommands()
            .map(|sub| sub.get_name().to_owned())
            .collect();
        let place = words
            .windows(2)
            .rposition(|pair| pair[0] == "stockade" && names.contains(&pair[1]))?;
        Some(&words[place..])
    }

    /// Fails unless the real parser takes them.
    #[track_caller]
    fn is_accepted(words: &[String], place: &str) {
        if let Err(error) = Arguments::try_parse_from(words) {
            let is_answer = !error.use_stderr();
            assert!(is_answer, "{place}: {words:?} is not accepted: {error}");
        }
    }

    /// Fails unless there are such flags; in running text one may be named without its value.
    #[track_caller]
    fn is_known(words: &[String], place: &str) {
        if let Err(error) = Arguments::try_parse_from(words) {
            let is_unknown = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
            assert!(!is_unknown, "{place}: {words:?} is not known: {error}");
        }
    }

    /// Every command line of the document that is set apart, with where it is.
    fn command_lines(name: &str) -> Vec<(String, Vec<String>)> {
        let text = document(name);
        let mut found = Vec::new();
        for block in blocks(&text) {
            if !["", "sh", "console"].contains(&block.language.as_str()) {
                continue;
            }
            for line in lines(&block.text) {
                // What stands far off is said of the command.
                let command = line.trim_start().split("   ").next().unwrap_or_default();
                if let Some(words) = command_line(&words(command)) {
                    found.push((format!("{name}:{}", block.line), words.to_vec()));
                }
            }
        }
        found
    }

    #[test]
    fn every_command_line_in_the_documents_is_accepted_by_the_parser() {
        for name in [
            "README.md",
            "docs/tutorial.md",
            "docs/run.md",
            "docs/mcp.md",
            "docs/mcp-http.md",
            "docs/upstream.md",
            "docs/audit.md",
            "docs/agents.md",
            "docs/containers.md",
            "docs/production.md",
            "docs/learn.md",
            "docs/explain.md",
            "docs/calls.md",
            "Dockerfile",
        ] {
            let found = if name == "Dockerfile" {
                let comments = document(name).replace("#   ", "    ");
                let words = lines(&comments).iter().map(|line| words(line)).collect::<Vec<_>>();
                words
                    .iter()
                    .filter_map(|words| command_line(words))
                    .map(|words| (name.to_owned(), words.to_vec()))
                    .collect()
            } else {
                command_lines(name)
            };
            assert!(!found.is_empty(), "{name} has no command line at all");
            for code in inline(&document(name)) {
                if let Some(words) = command_line(&words(&code)) {
                    is_known(words, &format!("{name}: `{code}`"));
                }
            }
            for (place, words) in found {
                is_accepted(&words, &place);
            }
        }
    }

    #[test]
    fn a_command_line_that_the_parser_does_not_know_is_found() {
        let line = "docker run -i stockade mcp --no-such-flag";
        let words = words(line);
        let words = command_line(&words).unwrap();
        assert_eq!(words[0], "stockade");
        assert!(Arguments::try_parse_from(words).is_err());
    }

    /// The arguments of every server in there whose command is `stockade`.
    fn servers(value: &Value, found: &mut Vec<Vec<String>>) {
        match value {
            Value::Object(members) => {
                if members.get("command").is_some_and(|command| command == "stockade") {
                    let arguments = members["args"].as_array().unwrap();
                    let arguments = arguments.iter().map(|argument| argument.as_str().unwrap().to_owned());
                    found.push(["stockade".to_owned()].into_iter().chain(arguments).collect());
                }
                members.values().for_each(|member| servers(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| servers(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn every_json_and_toml_snippet_for_clients_is_well_formed_and_starts_a_server_that_there_is() {
        let blocks = blocks(&document("docs/agents.md"));
        let mut found = Vec::new();
        for block in in_language(&blocks, "json") {
            let value: Value = serde_json::from_str(&block.text)
                .unwrap_or_else(|error| panic!("docs/agents.md:{}: {error}", block.line));
            servers(&value, &mut found);
        }
        for block in in_language(&blocks, "toml") {
            let value = read_by_python("toml", &block.text)
                .unwrap_or_else(|error| panic!("docs/agents.md:{}: {error}", block.line));
            servers(&value, &mut found);
        }
        assert!(found.len() >= 4, "only {} servers are described", found.len());
        for words in found {
            is_accepted(&words, "docs/agents.md");
        }
    }

    #[test]
    fn every_python_snippet_for_clients_compiles_and_starts_a_server_that_there_is() {
        let blocks = blocks(&document("docs/agents.md"));
        let mut count = 0;
        for block in in_language(&blocks, "python") {
            let lists = read_by_python("python", &block.text)
                .unwrap_or_else(|error| panic!("docs/agents.md:{}: {error}", block.line));
            for list in lists.as_array().unwrap() {
                let words: Vec<String> = serde_json::from_value(list.clone()).unwrap_or_default();
                if words.first().is_some_and(|first| first == "mcp") {
                    let words: Vec<String> = ["stockade".to_owned()].into_iter().chain(words).collect();
                    is_accepted(&words, &format!("docs/agents.md:{}", block.line));
                    count += 1;
                }
            }
        }
        assert!(count >= 2, "only {count} servers are started");
    }

    #[test]
    fn the_rust_program_in_the_documents_is_an_example_that_compiles() {
        let example = include_str!("../../../examples/embed.rs");
        let document = document("docs/calls.md");
        let blocks = blocks(&document);
        let snippets = in_language(&blocks, "rust");
        assert_eq!(snippets.len(), 1);
        for snippet in snippets {
            assert!(example.ends_with(&snippet.text), "docs/calls.md:{}", snippet.line);
        }
    }

    #[test]
    fn a_snippet_that_is_not_well_formed_is_found() {
        assert!(read_by_python("toml", "[mcp_servers.stockade\n").is_err());
        assert!(read_by_python("toml", "[mcp_servers.stockade]\n").is_ok());
        assert!(read_by_python("python", "async with x\n").is_err());
        assert!(read_by_python("python", "x = ['mcp']\n").is_ok());
    }

    #[test]
    fn every_yaml_snippet_in_the_documents_is_a_config_that_the_program_takes() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "README.md",
            "docs/tutorial.md",
            "docs/agents.md",
            "docs/mcp.md",
            "docs/production.md",
            "docs/containers.md",
        ] {
            let blocks = blocks(&document(name));
            for block in in_language(&blocks, "yaml") {
                passes_check(folder.path(), &block.text, &format!("{name}:{}", block.line));
            }
        }
    }

    /// Fails unless `stockade check` has nothing against the config, with a workspace where it wants one.
    #[track_caller]
    fn passes_check(folder: &Path, text: &str, place: &str) {
        let root = folder.join("workspace");
        fs::create_dir_all(&root).unwrap();
        let config = folder.join("agent.yaml");
        fs::write(&config, text.replace("/workspace", root.to_str().unwrap())).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_stockade"))
            .arg("check")
            .arg(&config)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{place}: {said}");
    }

    #[test]
    fn the_list_of_protected_names_in_the_documents_is_the_one_that_is_built_in() {
        use stockade::policy::protected::TOOLS;
        let row = |tool: &stockade::policy::protected::Tool| {
            let names: Vec<String> = tool.reads.iter().map(|name| format!("`{name}`")).collect();
            format!("| {} | {} | {} |\n", tool.name, tool.runs, names.join(" "))
        };
        let rows: String = TOOLS.iter().map(row).collect();
        let text = document("docs/protected.md");
        let (_, found) = text.split_once("|---|---|---|\n").unwrap();
        assert_eq!(found, rows, "write this as the table of docs/protected.md");
    }

    #[test]
    fn the_reference_of_the_command_line_is_what_the_parser_takes() {
        let expected = reference();
        if document("docs/cli.md") != expected {
            let generated = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli.md");
            fs::write(&generated, expected).unwrap();
            panic!("docs/cli.md is out of date: cp {} docs/cli.md", generated.display());
        }
    }

    #[test]
    fn every_relative_link_in_the_documents_leads_to_a_file_that_there_is() {
        let mut pages: Vec<PathBuf> = fs::read_dir(project().join("docs"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "md"))
            .collect();
        pages.extend(["README.md", "SECURITY.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(|name| project().join(name)));
        let mut count = 0;
        for page in pages {
            let text = fs::read_to_string(&page).unwrap();
            for rest in text.split("](").skip(1) {
                let target = rest.split([')', '#']).next().unwrap();
                if target.is_empty() || target.contains(':') || target.contains(char::is_whitespace) {
                    continue;
                }
                let leads = page.parent().unwrap().join(target);
                assert!(leads.exists(), "{}: {target}", page.display());
                count += 1;
            }
        }
        assert!(count > 50, "only {count} links");
    }

    fn manifests() -> Vec<Object> {
        objects(&project().join("deploy/kubernetes"))
    }

    #[test]
    fn manifests_speak_the_current_version_of_each_kind() {
        for object in manifests() {
            let version = match object.kind() {
                "ConfigMap" => "v1",
                "Sandbox" => "agents.x-k8s.io/v1beta1",
                "SandboxTemplate" | "SandboxWarmPool" | "SandboxClaim" => "extensions.agents.x-k8s.io/v1beta1",
                other => panic!("{}: nobody knows {other}", object.file),
            };
            assert_eq!(object.value["apiVersion"], version, "{} {}", object.file, object.name());
        }
    }

    #[test]
    fn every_pod_meets_the_restricted_pod_security_standard() {
        let mut count = 0;
        for object in manifests() {
            let Some(pod) = object.pod() else { continue };
            let place = format!("{} {}", object.file, object.name());
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{place}");
            assert_eq!(
                pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault",
                "{place}"
            );
            assert_eq!(pod["automountServiceAccountToken"], false, "{place}");
            for shared in ["hostNetwork", "hostPID", "hostIPC"] {
                assert!(pod[shared].is_null(), "{place}: {shared}");
            }
            for container in containers(pod) {
                let context = &container["securityContext"];
                let place = format!("{place} {}", container["name"]);
                assert_eq!(context["allowPrivilegeEscalation"], false, "{place}");
                assert_eq!(context["readOnlyRootFilesystem"], true, "{place}");
                assert_eq!(context["capabilities"], serde_json::json!({"drop": ["ALL"]}), "{place}");
                for loosened in ["privileged", "runAsUser", "runAsNonRoot", "seccompProfile", "procMount"] {
                    assert!(context[loosened].is_null(), "{place}: {loosened}");
                }
                count += 1;
            }
            for volume in pod["volumes"].as_array().unwrap() {
                assert!(volume["hostPath"].is_null(), "{place}: {volume}");
            }
        }
        assert!(count >= 4, "only {count} containers");
    }

    #[test]
    fn every_pod_mounts_only_volumes_that_it_has_and_every_config_as_a_file() {
        for object in manifests() {
            let Some(pod) = object.pod() else { continue };
            let mut volumes: Vec<&str> = pod["volumes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|volume| volume["name"].as_str().unwrap())
                .collect();
            let claims = object.value["spec"]["volumeClaimTemplates"]
                .as_array()
                .into_iter()
                .flatten();
            volumes.extend(claims.map(|claim| claim["metadata"]["name"].as_str().unwrap()));
            for container in containers(pod) {
                for mount in container["volumeMounts"].as_array().into_iter().flatten() {
                    let name = mount["name"].as_str().unwrap();
                    assert!(volumes.contains(&name), "{}: there is no volume {name}", object.file);
                    assert!(
                        name != "config" || mount["subPath"].is_string(),
                        "{}: {mount}",
                        object.file
                    );
                }
            }
        }
    }

    #[test]
    fn every_config_in_a_manifest_is_one_that_the_program_takes() {
        let folder = tempfile::tempdir().unwrap();
        let mut count = 0;
        for object in manifests().iter().filter(|object| object.kind() == "ConfigMap") {
            for text in object.value["data"].as_object().unwrap().values() {
                passes_check(folder.path(), text.as_str().unwrap(), &object.file);
                count += 1;
            }
        }
        assert_eq!(count, 2);
    }

    #[test]
    fn every_container_of_a_manifest_starts_what_the_parser_accepts() {
        let mut count = 0;
        for object in manifests() {
            for container in object.pod().map(containers).unwrap_or_default() {
                let words = command(container);
                if words.first().is_some_and(|first| first == "stockade") {
                    is_accepted(&words, &object.file);
                    count += 1;
                }
            }
        }
        assert!(count >= 1, "no container starts stockade");
    }

    #[test]
    fn a_claim_names_a_pool_that_there_is_and_the_pool_a_template() {
        let objects = manifests();
        let has = |kind: &str, name: &Value| {
            objects
                .iter()
                .any(|object| object.kind() == kind && object.name() == name)
        };
        let mut count = 0;
        for object in &objects {
            let spec = &object.value["spec"];
            match object.kind() {
                "SandboxClaim" => assert!(has("SandboxWarmPool", &spec["warmPoolRef"]["name"])),
                "SandboxWarmPool" => assert!(has("SandboxTemplate", &spec["sandboxTemplateRef"]["name"])),
                _ => continue,
            }
            count += 1;
        }
        assert_eq!(count, 2);
    }

    /// The files and folders that `docker build` is given.
    fn given_to_docker() -> Vec<PathBuf> {
        let ignored = document(".dockerignore");
        ignored
            .lines()
            .filter_map(|line| line.strip_prefix('!'))
            .map(PathBuf::from)
            .collect()
    }

    #[test]
    fn the_image_is_built_from_files_that_there_are_and_are_enough_for_cargo() {
        let given = given_to_docker();
        for path in &given {
            assert!(project().join(path).exists(), "{} is not there", path.display());
        }
        let folder = tempfile::tempdir().unwrap();
        for path in &given {
            let status = Command::new("cp")
                .arg("-r")
                .arg(project().join(path))
                .arg(folder.path())
                .status()
                .unwrap();
            assert!(status.success());
        }
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--no-deps", "--offline", "--locked", "--format-version=1"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8(output.stderr).unwrap());
    }

    #[test]
    fn the_image_runs_as_the_user_that_the_manifests_name() {
        let file = document("Dockerfile");
        let after = |word: &str| file.lines().find_map(|line| line.strip_prefix(word)).unwrap();
        assert_eq!(after("USER "), "${UID}:${GID}");
        for object in manifests() {
            let Some(pod) = object.pod() else { continue };
            for (built, name) in [
                ("ARG UID=", "runAsUser"),
                ("ARG GID=", "runAsGroup"),
                ("ARG GID=", "fsGroup"),
            ] {
                let number: u64 = after(built).parse().unwrap();
                assert_ne!(number, 0);
                assert_eq!(pod["securityContext"][name], number, "{} {name}", object.file);
            }
        }
    }
}
