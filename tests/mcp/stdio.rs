//! `stockade mcp` over standard input and output, in both eras of the protocol.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use nix::sys::signal::Signal;
    use nix::unistd::geteuid;
    use serde_json::{Value, json};

    use crate::common::agent::{Agent, Era, Wires, filled, forms};
    use crate::common::{
        Fixture, Snapshot, as_root_and_as_user, assert_nothing_left_behind, in_namespaces, marker, wait_for_processes,
        wait_until_gone,
    };

    in_namespaces! {
        the_tools_are_those_that_the_config_allows_in_both_eras [];
        a_file_is_read_and_one_outside_is_not [];
        a_yes_changes_the_file_and_a_no_does_not [];
        a_cancelled_command_dies_with_everything_it_started [];
        a_client_that_goes_takes_its_commands_along [];
        a_signal_ends_the_server_and_its_commands [];
        nothing_is_left_behind [];
        what_a_person_changes_while_no_command_runs_stays [];
        each_command_finds_the_hosts_git_config_whatever_another_did_to_its_copy ["git"];
    }

    as_root_and_as_user! {
        the_tools_are_those_that_the_config_allows_in_both_eras [];
        a_file_is_read_and_one_outside_is_not [];
        a_yes_changes_the_file_and_a_no_does_not [];
        a_cancelled_command_dies_with_everything_it_started [];
        a_client_that_goes_takes_its_commands_along [];
        a_signal_ends_the_server_and_its_commands [];
        nothing_is_left_behind [];
        what_a_person_changes_while_no_command_runs_stays [];
        each_command_finds_the_hosts_git_config_whatever_another_did_to_its_copy ["git"];
        everything_but_a_clear_yes_is_a_no [];
        a_yes_for_the_session_covers_the_very_same_call_and_no_other [];
        an_answer_counts_once_and_for_its_own_call [];
        what_changed_after_the_question_is_asked_about_anew [];
        a_client_that_shows_no_forms_is_told_which_rule_would_allow_it [];
        a_config_that_names_no_channel_has_nobody_asked [];
        a_question_that_nobody_answers_is_a_no_in_time [];
        a_cancelled_question_runs_nothing_whatever_is_answered_then [];
        a_long_command_holds_up_no_read_and_no_other_command [];
        a_client_that_wants_to_know_hears_of_a_long_command [];
        a_command_that_fails_is_an_error_with_its_output [];
        structured_content_has_the_shape_that_was_declared [];
        hostile_messages_leave_the_server_as_it_was [];
        a_thousand_calls_at_once_are_all_answered [];
        a_long_output_leaves_the_server_small ["head"];
        the_channel_that_answered_is_told [];
        what_a_long_command_may_write_is_in_the_form_however_long_it_is [];
        two_requests_of_one_name_are_not_both_taken [];
        parameters_that_cannot_be_read_are_said_to_be_wrong_and_methods_that_there_are_not_to_be_unknown [];
        a_client_that_reads_nothing_is_held_back_and_not_waited_for [];
        a_client_may_speak_over_pipes_or_sockets_or_one_of_each [];
        a_message_of_very_many_values_is_not_parsed [];
        an_approved_command_runs_when_nobody_else_could_change_what_it_names [];
        a_file_that_commands_could_go_on_writing_is_not_moved_to_where_a_yes_is_needed [];
        open_questions_hold_up_no_command [];
        a_yes_to_a_program_that_the_session_may_write_holds_for_its_content ["python3"];
        a_yes_that_the_tool_demands_holds_for_no_program_that_takes_the_name [];
        a_line_that_may_name_another_file_is_asked_about_each_time [];
        a_file_that_is_read_by_redirection_is_part_of_the_yes [];
        a_link_that_leads_elsewhere_is_asked_about_again [];
        a_file_behind_letters_of_options_is_part_of_the_yes [];
        a_question_that_a_form_cannot_show_whole_is_a_no [];
    }

    const ERAS: [Era; 2] = [Era::Session, Era::Stateless];

    const CONFIG: &str = "\
extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    work: {root: ./work, mode: rw, write_approval: false}
    asked: {root: ./asked, mode: rw, write_approval: true}
shell:
  default: {allowed: true, approval: required}
  rules:
    - {pattern: sleep, approval: none}
    - {pattern: sh, approval: none}
    - {pattern: head, approval: none}
    - {pattern: 'true', approval: none}
    - {pattern: setsid, approval: none}
    - {pattern: kill, approval: none}
    - {pattern: exit, approval: none}
    - {pattern: echo, approval: none}
    - {pattern: cat, approval: none}
    - {pattern: rm, allowed: false, reason: delete through delete_file}
tools:
  delete_file: {approval: deny}
";

    fn prepared(world: &Fixture, config: &str) -> String {
        for folder in ["work", "asked"] {
            world.write(format!("{folder}/there.txt"), "there\n");
        }
        let here = format!("{}/", world.workspace().display());
        let file = world.write(world.base().join("agent.yaml"), config.replace("./", &here));
        file.to_str().unwrap().to_owned()
    }

    fn agent_with(world: &Fixture, config: &str, flags: &[&str], era: Era, capabilities: Value) -> Agent {
        let config = prepared(world, config);
        let args = [&["mcp", "--config", &config, "--cwd", "work"], flags].concat();
        Agent::start(world.stockade(&args), era, capabilities)
    }

    fn agent(world: &Fixture, era: Era) -> Agent {
        agent_with(world, CONFIG, &[], era, forms())
    }

    fn text(result: &Value) -> &str {
        result["content"][0]["text"].as_str().unwrap()
    }

    #[track_caller]
    fn is_error(result: &Value, words: &[&str]) {
        assert_eq!(result["isError"], true, "{result}");
        for word in words {
            assert!(text(result).contains(word), "`{word}` is not in {result}");
        }
    }

    #[track_caller]
    fn is_done(result: &Value) {
        assert_eq!(result["isError"], false, "{result}");
    }

    fn write(name: &str) -> Value {
        json!({"path": format!("asked:{name}"), "content": "new\n"})
    }

    fn is_there(world: &Fixture, name: &str) -> bool {
        world.workspace().join("asked").join(name).exists()
    }

    fn the_tools_are_those_that_the_config_allows_in_both_eras(world: &Fixture) {
        let mut seen = Vec::new();
        for era in ERAS {
            let mut agent = agent(world, era);
            for _ in 0..2 {
                let tools = agent.ask("tools/list", json!({}))["result"]["tools"].clone();
                seen.push(tools);
            }
            assert_eq!(agent.end().0, Some(0));
        }
        assert!(seen.iter().all(|tools| *tools == seen[0]), "{seen:?}");
        let tools = seen[0].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let expected = [
            "read_file",
            "list_files",
            "search_files",
            "write_file",
            "edit_file",
            "patch_file",
            "move_file",
            "make_directory",
            "shell",
        ];
        assert_eq!(names, expected);
        let hints = |name: &str| {
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            let hints = &tool["annotations"];
            ["readOnlyHint", "destructiveHint", "openWorldHint"].map(|hint| hints[hint].as_bool().unwrap())
        };
        assert_eq!(hints("read_file"), [true, false, false]);
        assert_eq!(hints("make_directory"), [false, false, false]);
        assert_eq!(hints("write_file"), [false, true, false]);
        assert_eq!(hints("shell"), [false, true, false]);
    }

    fn a_file_is_read_and_one_outside_is_not(world: &Fixture) {
        for era in ERAS {
            let mut agent = agent(world, era);
            let read = agent.call("read_file", &json!({"path": "work:there.txt"}));
            is_done(&read);
            assert_eq!(text(&read), "there\n");
            assert_eq!(read["structuredContent"]["total_bytes"], 6);
            for (path, told) in [
                (world.outside().join("secret").to_str().unwrap(), "would allow it"),
                ("/etc/shadow", "would allow it"),
                ("work:../../outside/secret", "out of the root `work`"),
            ] {
                is_error(&agent.call("read_file", &json!({"path": path})), &["blocked", told]);
            }
            let cat = agent.call("shell", &json!({"argv": ["cat", world.outside().join("secret")]}));
            is_error(&cat, &["[exit code "]);
            assert!(!cat.to_string().contains(crate::common::SECRET), "{cat}");
        }
    }

    fn a_yes_changes_the_file_and_a_no_does_not(world: &Fixture) {
        for (era, name) in [(Era::Session, "a.txt"), (Era::Stateless, "b.txt")] {
            let mut agent = agent(world, era);
            let (message, denied) = agent.call_answering("write_file", &write(name), &filled("deny"));
            assert!(message.contains("write_file") && message.contains("new"), "{message}");
            is_error(&denied, &["permission denied: user denied write_file"]);
            assert!(!is_there(world, name));
            is_done(&agent.call_answering("write_file", &write(name), &filled("once")).1);
            assert!(is_there(world, name));
            let line = json!({"command": format!("printf x > {}", world.workspace().join("asked/c").display())});
            let (message, ran) = agent.call_answering("shell", &line, &filled("once"));
            assert!(message.contains("write ") && message.contains("asked"), "{message}");
            is_done(&ran);
            assert!(is_there(world, "c"));
            fs::remove_file(world.workspace().join("asked/c")).unwrap();
        }
    }

    fn everything_but_a_clear_yes_is_a_no(world: &Fixture) {
        let answers = [
            json!({"action": "decline"}),
            json!({"action": "cancel"}),
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "accept", "content": {"decision": "yes"}}),
            json!({"action": "accept", "content": {"decision": true}}),
            json!({"action": "accept", "content": {"decision": ["once"]}}),
            json!({"action": "accept", "content": {"decision": "once", "note": 7}}),
            json!({"action": "accept", "content": "once"}),
            json!({"action": "accept", "content": ["once", null]}),
            json!({"action": "accept", "content": {"decision": {"once": null}}}),
            json!({"action": "accept", "content": {"decision": "once", "more": "deny"}}),
            json!({"action": "Accept", "content": {"decision": "once"}}),
            json!({"action": "approve", "content": {"decision": "once"}}),
            json!({"content": {"decision": "once"}}),
            json!({}),
        ];
        for era in ERAS {
            let mut agent = agent(world, era);
            for answer in &answers {
                let (_, denied) = agent.call_answering("write_file", &write("x.txt"), answer);
                is_error(&denied, &["permission denied"]);
                assert!(!is_there(world, "x.txt"), "{answer}");
            }
            is_done(&agent.call_answering("write_file", &write("x.txt"), &filled("once")).1);
            fs::remove_file(world.workspace().join("asked/x.txt")).unwrap();
        }
    }

    fn a_yes_for_the_session_covers_the_very_same_call_and_no_other(world: &Fixture) {
        for era in ERAS {
            let mut agent = agent(world, era);
            let command = json!({"command": "printf one"});
            is_done(&agent.call_answering("shell", &command, &filled("session")).1);
            is_done(&agent.call("shell", &command));
            let (_, other) = agent.call_answering("shell", &json!({"command": "printf two"}), &filled("deny"));
            is_error(&other, &["user denied shell"]);
        }
    }

    fn an_answer_counts_once_and_for_its_own_call(world: &Fixture) {
        let mut agent = agent(world, Era::Stateless);
        let params = |name: &str, state: &Value, form: Value| {
            json!({
                "name": "write_file",
                "arguments": write(name),
                "requestState": state,
                "inputResponses": {"approval": form},
            })
        };
        let state = |agent: &mut Agent, name: &str| agent.call("write_file", &write(name))["requestState"].clone();
        let first = state(&mut agent, "a.txt");
        let other = agent.ask("tools/call", params("b.txt", &first, filled("once")));
        assert_eq!(other["error"]["code"], -32602, "{other}");
        is_done(&agent.ask("tools/call", params("a.txt", &first, filled("once")))["result"]);
        fs::remove_file(world.workspace().join("asked/a.txt")).unwrap();
        let again = agent.ask("tools/call", params("a.txt", &first, filled("once")));
        is_error(&again["result"], &["permission denied"]);
        // An answer that could not be read has used it up as well.
        let second = state(&mut agent, "a.txt");
        is_error(
            &agent.ask("tools/call", params("a.txt", &second, json!(7)))["result"],
            &["not understood"],
        );
        is_error(
            &agent.ask("tools/call", params("a.txt", &second, filled("once")))["result"],
            &["no open question"],
        );
        assert!(!is_there(world, "a.txt") && !is_there(world, "b.txt"));
    }

    fn what_changed_after_the_question_is_asked_about_anew(world: &Fixture) {
        let mut agent = agent(world, Era::Stateless);
        let edit = json!({"path": "asked:there.txt", "edits": [{"old": "there", "new": "here"}]});
        let returned = agent.call("edit_file", &edit);
        world.write("asked/there.txt", "there, and more that nobody saw\n");
        let again = json!({
            "name": "edit_file",
            "arguments": edit,
            "requestState": returned["requestState"],
            "inputResponses": {"approval": filled("once")},
        });
        let asked = agent.ask("tools/call", again)["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert!(asked.to_string().contains("nobody saw"), "{asked}");
        let content = fs::read_to_string(world.workspace().join("asked/there.txt")).unwrap();
        assert!(content.starts_with("there"), "{content}");
    }

    fn a_client_that_shows_no_forms_is_told_which_rule_would_allow_it(world: &Fixture) {
        for era in ERAS {
            for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
                let mut agent = agent_with(world, CONFIG, &[], era, capabilities);
                let denied = agent.call("shell", &json!({"command": "touch x"}));
                is_error(
                    &denied,
                    &["nobody could approve shell", "{pattern: touch x, approval: none}"],
                );
                is_error(
                    &agent.call("write_file", &write("x")),
                    &["nobody could approve", "would allow"],
                );
            }
        }
        assert!(!is_there(world, "x"));
    }

    fn a_config_that_names_no_channel_has_nobody_asked(world: &Fixture) {
        for (channels, asks) in [
            ("[]", false),
            ("[terminal]", false),
            ("[socket]", false),
            ("[elicitation]", true),
        ] {
            let config = format!("{CONFIG}approval: {{channel: {channels}}}\n");
            for era in ERAS {
                let mut agent = agent_with(world, &config, &[], era, forms());
                let command = json!({"command": "printf asked"});
                if asks {
                    is_done(&agent.call_answering("shell", &command, &filled("once")).1);
                } else {
                    is_error(&agent.call("shell", &command), &["nobody could approve shell"]);
                }
            }
        }
    }

    fn a_question_that_nobody_answers_is_a_no_in_time(world: &Fixture) {
        let mut session = agent_with(world, CONFIG, &["--approval-timeout", "1s"], Era::Session, forms());
        let id = session.begin_call("write_file", &write("late.txt"));
        let question = session.first(|message| message["method"] == "elicitation/create");
        let denied = session.answer(id);
        is_error(&denied["result"], &["nobody could approve", "no answer within 1s"]);
        session.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": filled("once")}));
        is_done(&session.call("read_file", &json!({"path": "work:there.txt"})));
        assert!(!is_there(world, "late.txt"));
        let mut stateless = agent_with(world, CONFIG, &["--approval-timeout", "1s"], Era::Stateless, forms());
        let returned = stateless.call("write_file", &write("late.txt"));
        std::thread::sleep(Duration::from_millis(1_200));
        let late = json!({
            "name": "write_file",
            "arguments": write("late.txt"),
            "requestState": returned["requestState"],
            "inputResponses": {"approval": filled("once")},
        });
        is_error(&stateless.ask("tools/call", late)["result"], &["no open question"]);
        assert!(!is_there(world, "late.txt"));
    }

    fn a_cancelled_question_runs_nothing_whatever_is_answered_then(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        // Both are read together: only by chance would the answer be taken first.
        for _ in 0..25 {
            let id = agent.begin_call("write_file", &write("x.txt"));
            let question = agent.first(|message| message["method"] == "elicitation/create");
            agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
            agent.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": filled("once")}));
        }
        is_done(&agent.call("read_file", &json!({"path": "work:there.txt"})));
        // The lane is free again.
        is_done(&agent.call_answering("write_file", &write("y.txt"), &filled("once")).1);
        assert!(is_there(world, "y.txt") && !is_there(world, "x.txt"));
    }

    fn tree(seconds: &str) -> Value {
        json!({"command": format!("sh -c 'setsid sleep {seconds} & sleep {seconds} & sleep {seconds}'")})
    }

    fn a_cancelled_command_dies_with_everything_it_started(world: &Fixture) {
        for era in ERAS {
            let mut agent = agent(world, era);
            let seconds = marker();
            let id = agent.begin_call("shell", &tree(&seconds));
            wait_for_processes(&seconds, 3);
            agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
            wait_until_gone(&seconds);
            is_done(&agent.call("shell", &json!({"argv": ["true"]})));
            assert_eq!(agent.end().0, Some(0));
        }
    }

    fn a_client_that_goes_takes_its_commands_along(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let seconds = marker();
        agent.begin_call("shell", &tree(&seconds));
        wait_for_processes(&seconds, 3);
        assert_eq!(agent.end().0, Some(0));
        wait_until_gone(&seconds);
    }

    fn a_signal_ends_the_server_and_its_commands(world: &Fixture) {
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGKILL] {
            let mut agent = agent(world, Era::Session);
            let seconds = marker();
            agent.begin_call("shell", &tree(&seconds));
            wait_for_processes(&seconds, 3);
            agent.signal(signal);
            let code = agent.wait().0;
            assert_eq!(code, (signal != Signal::SIGKILL).then_some(0), "{signal}");
            wait_until_gone(&seconds);
        }
    }

    fn a_long_command_holds_up_no_read_and_no_other_command(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let seconds = marker();
        let long = agent.begin_call("shell", &json!({"argv": ["sleep", seconds]}));
        wait_for_processes(&seconds, 1);
        let waits = agent.begin_call("write_file", &write("x.txt"));
        agent.first(|message| message["method"] == "elicitation/create");
        is_done(&agent.call("read_file", &json!({"path": "work:there.txt"})));
        is_done(&agent.call("shell", &json!({"argv": ["true"]})));
        for id in [long, waits] {
            agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
        }
        wait_until_gone(&seconds);
    }

    fn a_client_that_wants_to_know_hears_of_a_long_command(world: &Fixture) {
        for era in ERAS {
            let mut agent = agent(world, era);
            world.write("work/wait.sh", "until [ -e go ]; do sleep 0.05; done\n");
            let params = json!({
                "name": "shell",
                "arguments": {"argv": ["sh", "wait.sh"]},
                "_meta": {"progressToken": "tok"},
            });
            let id = agent.begin("tools/call", params);
            let beat = agent.first(|message| message["method"] == "notifications/progress");
            assert_eq!(beat["params"]["progressToken"], "tok");
            let go = world.write("work/go", "");
            is_done(&agent.answer(id)["result"]);
            fs::remove_file(go).unwrap();
        }
    }

    fn a_command_that_fails_is_an_error_with_its_output(world: &Fixture) {
        let mut agent = agent(world, Era::Stateless);
        let failed = agent.call(
            "shell",
            &json!({"argv": ["sh", "-c", "echo out; echo err >&2; exit 3"]}),
        );
        is_error(&failed, &["out", "err", "[exit code 3]"]);
        assert_eq!(failed["structuredContent"]["code"], 3);
        is_error(
            &agent.call("shell", &json!({"command": "rm x"})),
            &["blocked", "delete through delete_file"],
        );
    }

    fn structured_content_has_the_shape_that_was_declared(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let tools = agent.ask("tools/list", json!({}))["result"]["tools"].clone();
        let schemas: Vec<(String, Value)> = tools
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["outputSchema"].clone()))
            .collect();
        let patch = "--- a/there.txt\n+++ b/there.txt\n@@ -1 +1 @@\n-here\n+there\n";
        let calls = [
            ("read_file", json!({"path": "work:there.txt"})),
            ("list_files", json!({"path": "work:"})),
            ("list_files", json!({"path": "work:", "glob": "*.nothing"})),
            ("search_files", json!({"path": "work:", "pattern": "ther"})),
            ("search_files", json!({"path": "work:", "pattern": "nowhere"})),
            ("write_file", json!({"path": "work:b.txt", "content": "b"})),
            (
                "edit_file",
                json!({"path": "work:there.txt", "edits": [{"old": "there", "new": "here"}]}),
            ),
            ("patch_file", json!({"directory": "work:", "patch": patch})),
            ("move_file", json!({"from": "work:b.txt", "to": "work:c.txt"})),
            ("make_directory", json!({"path": "work:d"})),
            ("shell", json!({"argv": ["true"]})),
            ("shell", json!({"argv": ["sh", "-c", "kill -9 $$"]})),
            ("shell", json!({"argv": ["sleep", "infinity"], "timeout_seconds": 1})),
            ("shell", json!({"argv": ["sh", "-c", "exit 9"]})),
        ];
        for (tool, arguments) in calls {
            let result = agent.call(tool, &arguments);
            let schema = &schemas.iter().find(|(name, _)| name == tool).unwrap().1;
            let content = &result["structuredContent"];
            assert!(content.is_object(), "{tool} {result}");
            let mut compiler = boon::Compiler::new();
            let mut all = boon::Schemas::new();
            compiler.add_resource("mem:schema", schema.clone()).unwrap();
            let index = compiler.compile("mem:schema", &mut all).unwrap();
            if let Err(wrong) = all.validate(content, index) {
                panic!("{tool} {content}\n{wrong}");
            }
        }
    }

    fn hostile_messages_leave_the_server_as_it_was(world: &Fixture) {
        let config = prepared(world, CONFIG);
        let mut agent = Agent::bare(
            world.stockade(&["mcp", "--config", &config, "--cwd", "work"]),
            Era::Session,
            forms(),
        );
        let deep = format!("{}1{}\n", "[".repeat(100_000), "]".repeat(100_000));
        let long = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}\n",
            "x".repeat(20 * 1024 * 1024)
        );
        let before_the_handshake = [
            "\n",
            "not json\n",
            "{}\n",
            "[]\n",
            "null\n",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\",\"method\":\"tools/list\"}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"shell\",\"arguments\":{\"argv\":[\"true\"]}}}\n",
            &deep,
            &long,
        ];
        for message in before_the_handshake {
            agent.raw(message.as_bytes());
        }
        agent.raw(b"\xff\xfe\x00{\n");
        let hello =
            json!({"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "", "version": ""}});
        agent.send(&json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello}));
        let answer = agent.first(|message| message["id"] == "hello");
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        for message in before_the_handshake {
            agent.raw(message.as_bytes());
        }
        let wrong = [
            json!({"name": "shell"}),
            json!({"name": "shell", "arguments": {"command": 7}}),
            json!({"name": "shell", "arguments": {"command": "true", "argv": ["true"]}}),
            json!({"name": "shell", "arguments": {"command": "true", "environment": {"LD_PRELOAD": "/x"}}}),
            json!({"name": "read_file", "arguments": {"path": "work:\u{0}there.txt"}}),
            json!({"name": "read_file", "arguments": {"path": "a/".repeat(100_000)}}),
            json!({"name": "delete_file", "arguments": {"path": "work:there.txt"}}),
            json!({"name": "../../shell", "arguments": {}}),
            json!({"name": "\u{1b}[2J", "arguments": {}}),
            json!({"arguments": {}}),
        ];
        for params in wrong {
            let answer = agent.ask("tools/call", params);
            assert!(
                answer.get("error").is_some() || answer["result"]["isError"] == true,
                "{answer}"
            );
        }
        is_done(&agent.call("read_file", &json!({"path": "work:there.txt"})));
        assert!(world.workspace().join("work/there.txt").exists());
        let (code, said) = agent.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(!said.contains("panic"), "{said}");
    }

    fn a_thousand_calls_at_once_are_all_answered(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let ids: Vec<u64> = (0..1_000)
            .map(|index| match index % 50 {
                0 => agent.begin_call("shell", &json!({"argv": ["true"]})),
                _ => agent.begin_call("read_file", &json!({"path": "work:there.txt"})),
            })
            .collect();
        for id in ids {
            is_done(&agent.answer(id)["result"]);
        }
    }

    fn a_long_output_leaves_the_server_small(world: &Fixture) {
        let peak = |agent: &Agent| -> u64 {
            let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            peak.trim().trim_end_matches(" kB").parse().unwrap()
        };
        let mut agent = agent(world, Era::Session);
        is_done(&agent.call("shell", &json!({"argv": ["true"]})));
        let before = peak(&agent);
        let result = agent.call("shell", &json!({"argv": ["head", "-c", "67108864", "/dev/zero"]}));
        is_done(&result);
        assert_eq!(result["structuredContent"]["output_bytes"], 1 << 26);
        // benches/mcp.rs does the same with a gigabyte, and with the program as it is shipped.
        let grown = peak(&agent) - before;
        assert!(grown < 16 * 1024, "{grown} KiB more than before");
    }

    fn a_client_may_speak_over_pipes_or_sockets_or_one_of_each(world: &Fixture) {
        let config = prepared(world, CONFIG);
        let long = "line\n".repeat(200_000);
        world.write("work/long.txt", &long);
        for wires in [Wires::Pipes, Wires::Sockets, Wires::SocketIn, Wires::SocketOut] {
            let invocation = world.stockade(&["mcp", "--config", &config, "--cwd", "work"]);
            let mut agent = Agent::start_over(wires, invocation, Era::Session, forms());
            let read = agent.call("read_file", &json!({"path": "work:there.txt"}));
            assert_eq!(text(&read), "there\n", "{wires:?}");
            // A pipe of another user's cannot be opened anew.
            if matches!(wires, Wires::Sockets | Wires::SocketIn) || world.actor.uid() == geteuid().as_raw() {
                assert!(!a_thread_waits_for_stdin(agent.pid()), "{wires:?}");
            }
            // More than a socket or a pipe holds, to and fro.
            let written = json!({"path": "work:long.txt", "content": long});
            is_done(&agent.call("write_file", &written));
            let read = agent.call("read_file", &json!({"path": "work:long.txt"}));
            assert!(text(&read).len() > 64 * 1024, "{wires:?}: {}", text(&read).len());
            let seconds = marker();
            agent.begin_call("shell", &tree(&seconds));
            wait_for_processes(&seconds, 3);
            assert_eq!(agent.end().0, Some(0), "{wires:?}");
            wait_until_gone(&seconds);
        }
    }

    /// Whether a thread is in a system call whose first argument is descriptor 0.
    fn a_thread_waits_for_stdin(pid: u32) -> bool {
        fs::read_dir(format!("/proc/{pid}/task")).unwrap().any(|task| {
            // One that has ended meanwhile waits for nothing.
            let call = fs::read_to_string(task.unwrap().path().join("syscall")).unwrap_or_default();
            call.split(' ').nth(1) == Some("0x0")
        })
    }

    fn parameters_that_cannot_be_read_are_said_to_be_wrong_and_methods_that_there_are_not_to_be_unknown(
        world: &Fixture,
    ) {
        for era in ERAS {
            let mut agent = agent(world, era);
            assert!(agent.ask("tools/list", json!({}))["result"]["tools"].is_array());
            let mut id = 1_000;
            let mut error = |message: Value| {
                id += 1;
                let mut message = message;
                message["jsonrpc"] = json!("2.0");
                message["id"] = json!(id);
                agent.send(&message);
                agent.first(|answer| answer["id"] == id)["error"].clone()
            };
            for (message, why) in [
                (json!({"method": "tools/call"}), "`params.name` is missing"),
                (
                    json!({"method": "tools/call", "params": []}),
                    "`params` must be an object, and is an array",
                ),
                (
                    json!({"method": "tools/call", "params": {"name": 5}}),
                    "`params.name` must be a string, and is a number",
                ),
                (
                    json!({"method": "tools/call", "params": {"name": "shell", "arguments": ["true"]}}),
                    "`params.arguments` must be an object, and is an array",
                ),
                (
                    json!({"method": "tools/call", "params": {"name": "shell", "_meta": 5}}),
                    "`params._meta` must be an object, and is a number",
                ),
                (
                    json!({"method": "tools/list", "params": {"cursor": 5}}),
                    "`params.cursor` must be a string",
                ),
                (
                    json!({"method": "tools/list", "params": "all"}),
                    "`params` must be an object, and is a string",
                ),
                (
                    json!({"method": "ping", "params": 5}),
                    "`params` must be an object, and is a number",
                ),
                (
                    json!({"method": "initialize", "params": {}}),
                    "`params.protocolVersion` is missing",
                ),
            ] {
                let told = error(message.clone());
                assert_eq!(told["code"], -32602, "{message}: {told}");
                assert!(told["message"].as_str().unwrap().contains(why), "{message}: {told}");
            }
            for method in [
                "resources/read",
                "prompts/get",
                "completion/complete",
                "logging/setLevel",
                "what/else",
            ] {
                let told = error(json!({"method": method, "params": {"uri": 5}}));
                assert!(
                    [-32601, -32602].contains(&told["code"].as_i64().unwrap()),
                    "{method}: {told}"
                );
                assert!(era == Era::Stateless || told["code"] == -32601, "{method}: {told}");
            }
            // Nobody answers these.
            for params in [json!([]), json!(5), json!({"requestId": {}})] {
                agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
                agent.send(&json!({"jsonrpc": "2.0", "method": "tools/call", "params": params}));
            }
            let listed = agent.ask("tools/list", json!({"cursor": "a page that there is not"}));
            assert_eq!(listed["error"]["code"], -32602, "{listed}");
            assert!(agent.ask("tools/list", json!({}))["result"]["tools"].is_array());
            assert_eq!(agent.next_within(std::time::Duration::from_millis(200)), None);
            is_done(&agent.call("read_file", &json!({"path": "work:there.txt"})));
        }
    }

    fn a_client_that_reads_nothing_is_held_back_and_not_waited_for(world: &Fixture) {
        for wires in [Wires::Pipes, Wires::Sockets] {
            reads_nothing(world, wires);
        }
    }

    fn reads_nothing(world: &Fixture, wires: Wires) {
        let config = prepared(world, CONFIG);
        let mut agent = Agent::deaf(wires, world.stockade(&["mcp", "--config", &config, "--cwd", "work"]));
        let list = |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n");
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        agent.send(&json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello}));
        let many: String = (0..100_000).map(list).collect();
        agent.push(many.into_bytes());
        std::thread::sleep(Duration::from_secs(3));
        let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kibibytes: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kibibytes < 300 * 1024, "{kibibytes} KiB");
        agent.signal(Signal::SIGTERM);
        // The client would never read on.
        assert_eq!(agent.wait().0, Some(0));
    }

    fn a_message_of_very_many_values_is_not_parsed(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let before = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
        assert!(before.contains("VmHWM"));
        let many = "0,".repeat(7_000_000);
        agent.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"tools/call\",\"params\":{{\"name\":\"shell\",\"arguments\":{{\"a\":[{many}0]}}}}}}\n").as_bytes());
        is_done(&agent.call("read_file", &json!({"path": "work:there.txt"})));
        let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kibibytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kibibytes < 120 * 1024, "{kibibytes} KiB");
    }

    fn an_approved_command_runs_when_nobody_else_could_change_what_it_names(world: &Fixture) {
        let config = CONFIG.replace("{pattern: sh, approval: none}", "{pattern: sh flip.sh, approval: none}");
        let mut agent = agent_with(world, &config, &[], Era::Session, forms());
        world.write("work/a.sh", "echo good\n");
        let seconds = marker();
        world.write(
            "work/flip.sh",
            // What was approved waits for its end, and is asked about when it comes after that.
            format!("echo evil > there.tmp; sleep {seconds} & sleep 2; kill $!; cat there.tmp > a.sh; cat there.tmp > late.sh\n"),
        );
        let script = json!({"argv": ["sh", "a.sh"]});
        let (_, ran) = agent.call_answering("shell", &script, &filled("session"));
        assert_eq!(text(&ran), "good\n");
        let late = json!({"argv": ["sh", "late.sh"]});
        is_error(
            &agent.call_answering("shell", &late, &filled("session")).1,
            &["[exit code "],
        );
        // Nobody else is there: the yes for the session covers it.
        assert_eq!(text(&agent.call("shell", &script)), "good\n");
        let flip = agent.begin_call("shell", &json!({"argv": ["sh", "flip.sh"]}));
        wait_for_processes(&seconds, 1);
        let (message, denied) = agent.call_answering("shell", &script, &filled("deny"));
        assert!(message.contains("sh a.sh"), "{message}");
        is_error(&denied, &["user denied shell"]);
        agent.answer(flip);
        fs::remove_file(world.workspace().join("work/late.sh")).unwrap();
        is_error(&agent.call("shell", &late), &["[exit code "]);
        // A yes to a file that was not there is none to one that comes.
        let flip = agent.begin_call("shell", &json!({"argv": ["sh", "flip.sh"]}));
        wait_for_processes(&seconds, 1);
        is_error(
            &agent.call_answering("shell", &late, &filled("deny")).1,
            &["user denied shell"],
        );
        agent.answer(flip);
    }

    fn a_file_that_commands_could_go_on_writing_is_not_moved_to_where_a_yes_is_needed(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let into = agent.call("move_file", &json!({"from": "work:there.txt", "to": "asked:moved.txt"}));
        is_error(&into, &["blocked", "write_file"]);
        assert!(!is_there(world, "moved.txt"));
        is_done(&agent.call("move_file", &json!({"from": "work:there.txt", "to": "work:moved.txt"})));
        let within = json!({"from": "asked:there.txt", "to": "asked:moved.txt"});
        is_done(&agent.call_answering("move_file", &within, &filled("once")).1);
        assert!(is_there(world, "moved.txt"));
    }

    fn open_questions_hold_up_no_command(world: &Fixture) {
        let mut agent = agent_with(world, CONFIG, &["--at-once", "2"], Era::Session, forms());
        let waiting: Vec<u64> = (0..4)
            .map(|index| agent.begin_call("write_file", &write(&format!("{index}.txt"))))
            .collect();
        agent.first(|message| message["method"] == "elicitation/create");
        is_done(&agent.call("shell", &json!({"argv": ["true"]})));
        is_done(&agent.call("write_file", &json!({"path": "work:free.txt", "content": ""})));
        for id in waiting {
            agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
        }
    }

    fn the_channel_that_answered_is_told(world: &Fixture) {
        for era in ERAS {
            let mut agent = agent(world, era);
            agent.call_answering("write_file", &write("x.txt"), &filled("deny"));
            let (_, said) = agent.end();
            assert!(said.contains("write_file") && said.contains("elicitation"), "{said}");
            assert_eq!(said.matches("elicitation").count(), 1, "{said}");
        }
    }

    fn what_a_long_command_may_write_is_in_the_form_however_long_it_is(world: &Fixture) {
        let mut agent = agent(world, Era::Stateless);
        let line = format!("touch a{}touch b", "\n".repeat(90));
        let asked = agent.call("shell", &json!({"command": line}));
        let form = &asked["inputRequests"]["approval"]["params"];
        let message = form["message"].as_str().unwrap();
        for shown in ["touch a", "touch b", "write ", "reach nothing"] {
            assert!(message.contains(shown), "{message}");
        }
        assert!(message.lines().count() > 90, "{message}");
        let choices = &form["requestedSchema"]["properties"]["decision"]["enum"];
        assert_eq!(*choices, json!(["once", "session", "deny"]));
    }

    fn a_question_that_a_form_cannot_show_whole_is_a_no(world: &Fixture) {
        let mut agent = agent(world, Era::Stateless);
        let write = |lines: usize| json!({"path": "asked:long.txt", "content": "line\n".repeat(lines)});
        is_error(
            &agent.call("write_file", &write(5_000)),
            &["could not be shown whole", "stockade approvals"],
        );
        assert!(!is_there(world, "long.txt"));
        is_done(&agent.call_answering("write_file", &write(1_000), &filled("once")).1);
    }

    fn a_yes_to_a_program_that_the_session_may_write_holds_for_its_content(world: &Fixture) {
        let program = world.workspace().join("work/bin/tool");
        let write = |says: &str| drop(world.program("work/bin/tool", format!("#!/bin/sh\necho {says}\n")));
        write("one");
        let config = prepared(
            world,
            &CONFIG.replace("./work, mode: rw,", "./work, mode: rw, execute: true,"),
        );
        let args = ["mcp", "--config", &config, "--cwd", "work"];
        let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
        let invocation = world.stockade(&args).env("PATH", path);
        let mut agent = Agent::start(invocation, Era::Session, forms());
        let tool = json!({"command": "tool"});
        let (message, ran) = agent.call_answering("shell", &tool, &filled("session"));
        assert!(
            message.contains(&format!("writable   {}", program.display())),
            "{message}"
        );
        assert_eq!(text(&ran), "one\n");
        assert_eq!(text(&agent.call("shell", &tool)), "one\n");
        write("two");
        let (_, denied) = agent.call_answering("shell", &tool, &filled("deny"));
        is_error(&denied, &["user denied shell"]);
        let (message, _) = agent.call_answering("shell", &json!({"command": "uname | wc"}), &filled("deny"));
        for program in ["/uname", "/wc"] {
            assert!(message.contains(program), "{message}");
        }
        assert!(!message.contains("writable"), "{message}");
    }

    fn a_yes_that_the_tool_demands_holds_for_no_program_that_takes_the_name(world: &Fixture) {
        let free = "default: {allowed: true, approval: none}";
        let config = CONFIG
            .replace("default: {allowed: true, approval: required}", free)
            .replace("./work, mode: rw,", "./work, mode: rw, execute: true,")
            + "  shell: {approval: required}\n";
        let config = prepared(world, &config);
        world.write("work/bin/other", "");
        let bin = world.workspace().join("work/bin");
        let args = ["mcp", "--config", &config, "--cwd", "work"];
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let mut agent = Agent::start(world.stockade(&args).env("PATH", path), Era::Session, forms());
        let call = json!({"command": "uname"});
        let (_, ran) = agent.call_answering("shell", &call, &filled("session"));
        assert_eq!(text(&ran), "Linux\n");
        world.program("work/bin/uname", "#!/bin/sh\necho planted\n");
        let again = agent.call("shell", &call);
        assert!(
            text(&again).contains("Linux") && !text(&again).contains("\nplanted"),
            "{again}"
        );
    }

    fn a_line_that_may_name_another_file_is_asked_about_each_time(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        world.write("work/deploy.sh", "true\n");
        let long = format!("bash deploy.sh # {}", "x".repeat(17 * 1024));
        let deep = format!("{}bash deploy.sh{}", "( ".repeat(9), " )".repeat(9));
        for line in [
            "bash < deploy.sh",
            "{ bash; } < deploy.sh",
            "bash $PWD/deploy.sh",
            "bash deplo{y,}.sh",
            "bash d*.sh",
            "bash deploy.sh # \u{7}",
            "eval bash deploy.sh",
            "cat deploy.sh | xargs -I{} bash {}",
            "X=deploy.sh; bash $X",
            &long,
            &deep,
        ] {
            let call = json!({"command": line});
            let id = agent.begin_call("shell", &call);
            let question = agent.first(|message| message["method"] == "elicitation/create");
            let choices = &question["params"]["requestedSchema"]["properties"]["decision"]["enum"];
            assert_eq!(*choices, json!(["once", "deny"]), "{line}");
            agent.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": filled("once")}));
            agent.answer(id);
            let (_, again) = agent.call_answering("shell", &call, &filled("deny"));
            is_error(&again, &["user denied shell"]);
        }
    }

    fn a_link_that_leads_elsewhere_is_asked_about_again(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let link = world.workspace().join("work/link");
        let lead = |to: &str| {
            let _none_yet = fs::remove_file(&link);
            std::os::unix::fs::symlink(to, &link).unwrap();
        };
        lead("/usr/bin/env");
        let call = json!({"command": "wc -c link"});
        is_done(&agent.call_answering("shell", &call, &filled("session")).1);
        is_done(&agent.call("shell", &call));
        lead("/usr/bin/wc");
        let (_, again) = agent.call_answering("shell", &call, &filled("deny"));
        is_error(&again, &["user denied shell"]);
    }

    fn a_file_behind_letters_of_options_is_part_of_the_yes(world: &Fixture) {
        for (name, line) in [
            ("fx.sed", "sed -nfx.sed there.txt"),
            ("x.sed", "sed -nfx.sed there.txt"),
            ("sub/y.sh", "env -Csub true y.sh"),
        ] {
            let mut agent = agent(world, Era::Session);
            world.write("work/x.sed", "p\n");
            world.write("work/sub/y.sh", "one\n");
            world.write("work/fx.sed", "one\n");
            let call = json!({"command": line});
            is_done(&agent.call_answering("shell", &call, &filled("session")).1);
            is_done(&agent.call("shell", &call));
            world.write(format!("work/{name}"), "q\n");
            let (_, again) = agent.call_answering("shell", &call, &filled("deny"));
            is_error(&again, &["user denied shell"]);
        }
    }

    fn a_file_that_is_read_by_redirection_is_part_of_the_yes(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        for (name, line) in [
            ("a.txt", "wc -l < a.txt"),
            ("b.txt", "{ wc -l; } < b.txt"),
            ("c.txt", "echo \"$(<c.txt)\"; wc c.txt"),
        ] {
            world.write(format!("work/{name}"), "one\n");
            let call = json!({"command": line});
            is_done(&agent.call_answering("shell", &call, &filled("session")).1);
            is_done(&agent.call("shell", &call));
            world.write(format!("work/{name}"), "two\n");
            let (_, again) = agent.call_answering("shell", &call, &filled("deny"));
            is_error(&again, &["user denied shell"]);
        }
    }

    fn two_requests_of_one_name_are_not_both_taken(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let seconds = marker();
        let call = |argv: Value| json!({"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": {"name": "shell", "arguments": {"argv": argv}}});
        agent.send(&call(json!(["sleep", seconds])));
        wait_for_processes(&seconds, 1);
        agent.send(&call(json!(["true"])));
        let refused = agent.first(|message| message.get("error").is_some());
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "same"}}));
        wait_until_gone(&seconds);
        // Whatever was given up may still end: another name for another request.
        agent.send(&call(json!(["true"])));
        agent.first(|message| message["error"]["code"] == -32600);
        is_done(&agent.call("shell", &json!({"argv": ["true"]})));
    }

    fn what_a_person_changes_while_no_command_runs_stays(world: &Fixture) {
        let envrc = "work/.envrc";
        let says = || fs::read_to_string(world.workspace().join(envrc)).unwrap_or_default();
        let read = json!({"path": "work:there.txt"});
        let mut session = agent(world, Era::Session);
        is_done(&session.call("read_file", &read));
        world.write(envrc, "first");
        assert_eq!(session.end().0, Some(0));
        assert_eq!(says(), "first");
        let mut session = agent(world, Era::Session);
        is_done(&session.call("read_file", &read));
        world.write(envrc, "second");
        // A start of the session's own lies this long ago at most.
        std::thread::sleep(Duration::from_millis(1500));
        is_done(&session.call("shell", &json!({"argv": ["true"]})));
        assert_eq!(says(), "second");
        let evil = json!({"argv": ["sh", "-c", "echo evil > .envrc"]});
        // Refused where the file is covered, undone where it is not.
        session.call_answering("shell", &evil, &filled("once"));
        assert_eq!(says(), "second");
        assert_eq!(session.end().0, Some(0));
        assert_eq!(says(), "second");
    }

    fn each_command_finds_the_hosts_git_config_whatever_another_did_to_its_copy(world: &Fixture) {
        let config = CONFIG.replace("  rules:\n", "  rules:\n    - {pattern: git, approval: none}\n");
        let mut session = agent_with(world, &config, &[], Era::Session, forms());
        let work = world.workspace().join("work");
        world
            .bare("/usr/bin/git")
            .args(["init", "-q", "work"])
            .output()
            .exits(0);
        let mut run = |line: &str| {
            let result = session.call("shell", &json!({"command": line}));
            (result["isError"] == false, text(&result).to_owned())
        };
        assert!(run("git config color.ui auto").0);
        assert!(
            fs::read_to_string(work.join(".git/config"))
                .unwrap()
                .contains("ui = auto")
        );
        assert!(run("git config core.fsmonitor ./evil").0);
        // Unset, which git answers with an error.
        let (found, said) = run("git config core.fsmonitor");
        assert!(!found && !said.contains("evil"), "{said}");
        let (found, said) = run("git config color.ui");
        assert!(found && said.contains("auto"), "{said}");
        let file = work.join(".git/config");
        let mine = fs::read_to_string(&file).unwrap() + "[user]\n\tname = Me\n";
        fs::write(file, mine).unwrap();
        let (found, said) = run("git config user.name");
        assert!(found && said.contains("Me"), "{said}");
        assert_eq!(session.end().0, Some(0));
    }

    fn nothing_is_left_behind(world: &Fixture) {
        prepared(world, CONFIG);
        let before = Snapshot::of(world);
        for era in ERAS {
            let mut agent = agent(world, era);
            is_done(&agent.call("shell", &json!({"argv": ["true"]})));
            agent.call_answering("write_file", &write("x.txt"), &filled("deny"));
            assert_eq!(agent.end().0, Some(0));
        }
        assert_nothing_left_behind(&before, world);
    }
}
