//! What a client may always say, whatever is under way; and what it says that is no message.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use serde_json::{Value, json};

    use crate::common::agent::{Agent, Era, Wires, filled, forms};
    use crate::common::{
        Fixture, as_root_and_as_user, descendants, in_namespaces, marker, wait_for_processes, wait_until_gone,
    };

    as_root_and_as_user! {
        what_steers_calls_passes_a_thousand_of_them_and_the_next_call_is_told_to_come_again [];
        the_end_of_input_ends_running_and_waiting_commands [];
        who_reads_nothing_is_heard_all_the_same [];
        what_cannot_be_parsed_is_answered [];
        an_answer_that_cannot_be_parsed_is_a_no_at_once [];
        a_request_without_an_end_of_line_is_answered [];
        no_schema_names_a_type_of_a_language [];
        a_state_that_was_changed_is_an_error_and_an_answer_without_one_is_asked_for_again [];
    }

    in_namespaces! {
        what_steers_calls_passes_a_thousand_of_them_and_the_next_call_is_told_to_come_again [];
        the_end_of_input_ends_running_and_waiting_commands [];
        a_call_is_carried_out_where_the_host_replaced_what_its_worker_held ["git"];
        a_change_is_made_where_the_host_replaced_what_its_worker_held ["git"];
        what_the_host_made_between_two_calls_is_covered_in_the_second ["git"];
        a_call_that_its_worker_did_not_begin_with_begins_in_another ["git"];
    }

    const CONFIG: &str = "\
extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    work: {root: ./work, mode: rw, write_approval: false}
    asked: {root: ./asked, mode: rw, write_approval: true}
shell:
  default: {allowed: true, approval: none}
";

    /// The most calls that are not answered.
    const MOST_CALLS: u64 = 1_024;

    fn invocation(world: &Fixture) -> crate::common::Invocation {
        for folder in ["work", "asked"] {
            world.write(format!("{folder}/there.txt"), "there\n");
        }
        let here = format!("{}/", world.workspace().display());
        let config = world.write(world.base().join("agent.yaml"), CONFIG.replace("./", &here));
        world.stockade(&["mcp", "--config", config.to_str().unwrap(), "--cwd", "work"])
    }

    fn agent(world: &Fixture, era: Era) -> Agent {
        Agent::start(invocation(world), era, forms())
    }

    fn sleep(agent: &mut Agent, seconds: &str) -> u64 {
        agent.begin_call("shell", &json!({"argv": ["sleep", seconds]}))
    }

    fn cancel(agent: &mut Agent, id: u64) {
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }

    fn what_steers_calls_passes_a_thousand_of_them_and_the_next_call_is_told_to_come_again(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let seconds = marker();
        let asking = agent.begin_call("write_file", &json!({"path": "asked:new.txt", "content": "new\n"}));
        let question = agent.first(|message| message["method"] == "elicitation/create");
        let calls: Vec<u64> = (1..MOST_CALLS).map(|_| sleep(&mut agent, &seconds)).collect();
        wait_for_processes(&seconds, 4);
        let late = sleep(&mut agent, &seconds);
        let busy = agent.answer(late);
        assert_eq!(
            (&busy["error"]["code"], &busy["error"]["data"]["retry"]),
            (&json!(-32005), &json!(true)),
            "{busy}"
        );
        assert!(busy["error"]["message"].as_str().unwrap().contains("busy"), "{busy}");
        assert_eq!(agent.ask("ping", json!({}))["result"], json!({}));
        assert!(agent.ask("tools/list", json!({}))["result"]["tools"].is_array());
        // The answer to the question is heard, and makes room for one call.
        agent.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": filled("deny")}));
        assert_eq!(agent.answer(asking)["result"]["isError"], true);
        let again = sleep(&mut agent, &seconds);
        cancel(&mut agent, again);
        for id in &calls {
            cancel(&mut agent, *id);
        }
        wait_until_gone(&seconds);
        let done = agent.call("shell", &json!({"argv": ["true"]}));
        assert_eq!(done["isError"], false, "{done}");
    }

    fn the_end_of_input_ends_running_and_waiting_commands(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let seconds = marker();
        let line = format!("sleep {seconds} & setsid sleep {seconds} & wait");
        for _ in 0..4 {
            agent.begin_call("shell", &json!({"command": line}));
        }
        wait_for_processes(&seconds, 8);
        for _ in 4..MOST_CALLS {
            agent.begin_call("shell", &json!({"command": format!("touch begun; sleep {seconds}")}));
        }
        let (code, said) = agent.end();
        assert_eq!(code, Some(0), "{said}");
        wait_until_gone(&seconds);
        assert!(!world.workspace().join("work/begun").exists());
    }

    fn who_reads_nothing_is_heard_all_the_same(world: &Fixture) {
        for wires in [Wires::Pipes, Wires::Sockets] {
            let mut agent = Agent::deaf(wires, invocation(world));
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
            agent.send(&json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello}));
            agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            let (given_up, kept) = (marker(), marker());
            let first = sleep(&mut agent, &given_up);
            sleep(&mut agent, &kept);
            wait_for_processes(&given_up, 1);
            wait_for_processes(&kept, 1);
            let list =
                |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":\"l{id}\",\"method\":\"tools/list\"}}\nno message\n");
            agent.raw((0..10_000).map(list).collect::<String>().as_bytes());
            cancel(&mut agent, first);
            wait_until_gone(&given_up);
            wait_for_processes(&kept, 1);
            // The thread that sends closes its end when it has.
            agent.push((0..10_000).map(list).collect::<String>().into_bytes());
            assert_eq!(agent.wait().0, Some(0));
            wait_until_gone(&kept);
        }
    }

    fn what_cannot_be_parsed_is_answered(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let call = |id: &str, text: &str| {
            format!(
                "{{\"method\":\"tools/call\",\"params\":{{\"name\":\"shell\",\"arguments\":{{\"command\":{text}}}}},\
                 \"jsonrpc\":\"2.0\",\"id\":{id}}}\n"
            )
            .into_bytes()
        };
        let with = |bytes: &[u8]| {
            [
                b"{\"jsonrpc\":\"2.0\",\"id\":71,\"method\":\"tools/call\",\"params\":{\"name\":\"",
                bytes,
                b"\"}}\n",
            ]
            .concat()
        };
        let (no_json, no_message) = (-32700, -32600);
        let digits = "7".repeat(10_000);
        let wrong: Vec<(Vec<u8>, i32, Value)> = vec![
            (call("\"a\"", "\"\\ud800\""), no_message, json!("a")),
            (call("\"b\"", "\"\\udc00x\""), no_message, json!("b")),
            (with(b"\xff\xfe"), no_message, json!(71)),
            (with(b"\xed\xa0\x80"), no_message, json!(71)),
            (call("18446744073709551615", "\"true\""), no_message, json!(u64::MAX)),
            (call("1.5", "\"true\""), no_message, json!(1.5)),
            (call("1e400", "\"true\""), no_message, Value::Null),
            (call("\"\\ud800\"", "\"true\""), no_message, Value::Null),
            (call("null", "\"true\""), no_message, Value::Null),
            (call("[1]", "\"true\""), no_message, Value::Null),
            (call("true", "\"true\""), no_message, Value::Null),
            (call(&digits, "\"true\""), no_message, Value::Null),
            (
                call("5000", &format!("{}1{}", "[".repeat(1_000), "]".repeat(1_000))),
                no_message,
                json!(5000),
            ),
            (
                call("5001", &format!("\"{}\"", "x".repeat(17 * 1024 * 1024))),
                no_message,
                json!(5001),
            ),
            (
                call("5002", &format!("[{}0]", "0,".repeat(300_000))),
                no_message,
                json!(5002),
            ),
            (b"{\"id\":5003,\"method\":7}\n".to_vec(), no_message, json!(5003)),
            (b"{\"id\":5004}\n".to_vec(), no_message, json!(5004)),
            (
                b"{\"jsonrpc\":\"1.0\",\"id\":5005,\"method\":\"ping\"}\n".to_vec(),
                no_message,
                json!(5005),
            ),
            (b"{\"id\":5006,\"method\":\"ping\"\n".to_vec(), no_json, Value::Null),
            (b"no json\n".to_vec(), no_json, Value::Null),
            (b"\xff\xfe\x00{\n".to_vec(), no_json, Value::Null),
            (b"{}\n".to_vec(), no_message, Value::Null),
            (b"[]\n".to_vec(), no_message, Value::Null),
            (
                b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n".to_vec(),
                no_message,
                Value::Null,
            ),
            (b"null\n".to_vec(), no_message, Value::Null),
        ];
        for (message, code, id) in wrong {
            agent.raw(&message);
            let shown = message.get(..message.len().min(120)).unwrap().escape_ascii();
            let answer = agent.first(|message| message.get("error").is_some());
            assert_eq!(
                (&answer["error"]["code"], &answer["id"]),
                (&json!(code), &id),
                "{shown}: {answer}"
            );
        }
        // What is no question has no answer.
        agent.raw(
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"\\ud800\"}}\n",
        );
        agent.raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\"}\n\n \n");
        agent.raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"none\",\"result\":\"\\ud800\"}\n");
        let pong = agent.begin("ping", json!({}));
        assert_eq!(agent.first(|_| true)["id"], pong);
    }

    fn an_answer_that_cannot_be_parsed_is_a_no_at_once(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let asking = agent.begin_call("write_file", &json!({"path": "asked:new.txt", "content": "new\n"}));
        let question = agent.first(|message| message["method"] == "elicitation/create");
        let answer = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"action\":\"accept\",\"content\":{{\"decision\":\"once\",\"note\":\"\\ud800\"}}}}}}\n",
            question["id"]
        );
        agent.raw(answer.as_bytes());
        let denied = agent.answer(asking);
        assert_eq!(denied["result"]["isError"], true, "{denied}");
        assert!(denied.to_string().contains("not understood"), "{denied}");
        assert!(!world.workspace().join("asked/new.txt").exists());
    }

    fn a_request_without_an_end_of_line_is_answered(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        agent.raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}");
        agent.hang_up();
        assert_eq!(agent.first(|message| message["id"] == "last")["result"], json!({}));
        assert_eq!(agent.end().0, Some(0));
    }

    /// Whether a schema has a member of this name anywhere.
    fn names(schema: &Value, wanted: &str) -> bool {
        match schema {
            Value::Object(members) => members
                .iter()
                .any(|(name, value)| name == wanted || names(value, wanted)),
            Value::Array(values) => values.iter().any(|value| names(value, wanted)),
            _ => false,
        }
    }

    fn no_schema_names_a_type_of_a_language(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let tools = agent.ask("tools/list", json!({}))["result"]["tools"].clone();
        for tool in tools.as_array().unwrap() {
            for schema in ["inputSchema", "outputSchema"] {
                assert!(!names(&tool[schema], "format"), "{tool:#}");
            }
        }
        assert!(
            tools
                .as_array()
                .unwrap()
                .iter()
                .any(|tool| names(&tool["outputSchema"], "integer") || names(&tool["inputSchema"], "minimum"))
        );
    }

    fn a_state_that_was_changed_is_an_error_and_an_answer_without_one_is_asked_for_again(world: &Fixture) {
        let mut agent = agent(world, Era::Stateless);
        let arguments = |name: &str| json!({"path": format!("asked:{name}"), "content": "new\n"});
        let call = |name: &str, more: Value| {
            let mut params = json!({"name": "write_file", "arguments": arguments(name)});
            params
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            params
        };
        let answered = || json!({"approval": filled("once")});
        let state = agent.call("write_file", &arguments("a"))["requestState"]
            .as_str()
            .unwrap()
            .to_owned();
        let mut changed = state.clone().into_bytes();
        let last = changed.len() - 1;
        changed[last] = if changed[last] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        for (name, state) in [
            ("a", changed.as_str()),
            ("a", ""),
            ("a", "rs1.AAAA.BBBB"),
            ("b", state.as_str()),
        ] {
            for responses in [json!({"inputResponses": answered()}), json!({})] {
                let mut more = json!({"requestState": state});
                more.as_object_mut()
                    .unwrap()
                    .extend(responses.as_object().unwrap().clone());
                let refused = agent.ask("tools/call", call(name, more));
                assert_eq!(refused["error"]["code"], -32602, "{refused}");
            }
        }
        for incomplete in [
            json!({"inputResponses": answered()}),
            json!({"requestState": state}),
            json!({"requestState": state, "inputResponses": {}}),
            json!({"requestState": state, "inputResponses": {"another": filled("once")}}),
        ] {
            let asked = agent.ask("tools/call", call("a", incomplete));
            assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        }
        assert!(!world.workspace().join("asked/a").exists());
        let whole = call("a", json!({"requestState": state, "inputResponses": answered()}));
        let done = agent.ask("tools/call", whole);
        assert_eq!(done["result"]["isError"], false, "{done}");
        assert!(world.workspace().join("asked/a").exists() && !world.workspace().join("asked/b").exists());
    }

    /// Has the host's own git write the config of the repository, which it does by renaming a new one onto it.
    fn host_git(world: &Fixture, name: &str) {
        let work = world.workspace().join("work");
        let args = ["-C", work.to_str().unwrap(), "config", "user.name", name];
        world.bare("/usr/bin/git").args(args).output().exits(0);
    }

    fn a_call_is_carried_out_where_the_host_replaced_what_its_worker_held(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let work = world.workspace().join("work");
        world
            .bare("/usr/bin/git")
            .args(["init", "-q", work.to_str().unwrap()])
            .output()
            .exits(0);
        let config = json!({"argv": ["git", "config", "user.name"]});
        for round in 0..8 {
            let name = format!("name {round}");
            host_git(world, &name);
            let ran = agent.call("shell", &config);
            assert_eq!(ran["isError"], false, "{round}: {ran}");
            assert!(
                ran["content"][0]["text"].as_str().unwrap().contains(&name),
                "{round}: {ran}"
            );
        }
        assert!(fs::read_to_string(work.join(".git/config")).unwrap().contains("name 7"));
        let (code, said) = agent.end();
        assert_eq!(code, Some(0), "{said}");
    }

    fn a_call_that_its_worker_did_not_begin_with_begins_in_another(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let work = world.workspace().join("work");
        world
            .bare("/usr/bin/git")
            .args(["init", "-q", work.to_str().unwrap()])
            .output()
            .exits(0);
        host_git(world, "first");
        let config = json!({"argv": ["git", "config", "user.name"]});
        assert_eq!(agent.call("shell", &config)["isError"], false);
        // Stopped, the worker says nothing of the change before it is sent the call.
        let all: Vec<Pid> = descendants(agent.pid().cast_signed())
            .into_iter()
            .map(Pid::from_raw)
            .collect();
        let tell = |signal: Signal| {
            for pid in &all {
                // One may have ended meanwhile.
                let _told = kill(*pid, signal);
            }
        };
        tell(Signal::SIGSTOP);
        host_git(world, "second");
        let call = agent.begin_call("shell", &config);
        // It holds whichever comes first; mostly the call is sent by then.
        std::thread::sleep(Duration::from_millis(300));
        tell(Signal::SIGCONT);
        let ran = agent.answer(call);
        assert_eq!(ran["result"]["isError"], false, "{ran}");
        assert!(ran.to_string().contains("second"), "{ran}");
    }

    fn a_change_is_made_where_the_host_replaced_what_its_worker_held(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let work = world.workspace().join("work");
        world
            .bare("/usr/bin/git")
            .args(["init", "-q", work.to_str().unwrap()])
            .output()
            .exits(0);
        for round in 0..4 {
            host_git(world, &format!("name {round}"));
            let change = json!({"path": "work:new.txt", "content": format!("{round}\n")});
            let done = agent.call("write_file", &change);
            assert_eq!(done["isError"], false, "{round}: {done}");
            let read = agent.call("read_file", &json!({"path": "work:new.txt"}));
            assert_eq!(read["content"][0]["text"], format!("{round}\n"), "{read}");
        }
    }

    fn what_the_host_made_between_two_calls_is_covered_in_the_second(world: &Fixture) {
        let mut agent = agent(world, Era::Session);
        let work = world.workspace().join("work");
        assert_eq!(agent.call("shell", &json!({"argv": ["true"]}))["isError"], false);
        for name in ["one", "two"] {
            let made = work.join(name);
            world
                .bare("/usr/bin/git")
                .args(["init", "-q", made.to_str().unwrap()])
                .output()
                .exits(0);
            let config = fs::read(made.join(".git/config")).unwrap();
            // It looks while the command is still running.
            let line = format!(
                "cd {name}; git config core.fsmonitor ./evil; git config core.fsmonitor; touch set; while [ ! -e stop ]; do sleep 0.1; done"
            );
            let call = agent.begin_call("shell", &json!({"argv": ["sh", "-c", line]}));
            crate::common::eventually("the command has set it", || made.join("set").exists());
            assert_eq!(fs::read(made.join(".git/config")).unwrap(), config);
            fs::write(made.join("stop"), "").unwrap();
            let ended = agent.answer(call);
            assert_eq!(ended["result"]["isError"], false, "{ended}");
        }
    }
}
