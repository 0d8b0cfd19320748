//! `stockade mcp --http`: who is let in, what is bounded, and how it ends.
#![allow(missing_docs, reason = "a test file")]

#[path = "../../src/mcp/http/tests/client.rs"]
#[cfg(test)]
mod client;
#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    use nix::sys::signal::Signal;
    use serde_json::{Value, json};

    use super::client::{Answer, Client, LEGACY, TestRequest};
    use crate::common::{
        Fixture, Running, Snapshot, as_root_and_as_user, assert_nothing_left_behind, eventually, in_namespaces, marker,
        wait_for_processes, wait_until_gone, without,
    };

    as_root_and_as_user! {
        only_who_says_the_token_is_let_in [];
        the_token_that_was_made_is_told_once [];
        the_token_of_a_file_is_taken_and_not_told [];
        a_token_file_is_the_user_s_alone [];
        only_names_of_this_machine_are_answered [];
        pages_of_other_origins_are_not_answered [];
        an_address_that_others_reach_needs_a_name [];
        health_is_told_to_everybody_and_nothing_else [];
        a_server_that_cannot_confine_is_not_ready ["cc"];
        both_eras_see_the_same_tools [];
        a_tool_does_its_work_in_both_eras [];
        one_connection_carries_many_requests [];
        what_is_no_message_is_said_to_be_none [];
        parameters_that_cannot_be_read_are_said_to_be_wrong [];
        what_is_too_large_is_refused [];
        a_large_file_is_written_whole [];
        hostile_bytes_leave_the_server_as_it_was [];
        a_thousand_requests_at_once_are_all_answered [];
        a_client_that_goes_away_takes_its_command_along [];
        a_cancelled_command_of_a_session_dies [];
        a_session_that_ends_takes_its_commands_along [];
        a_question_of_a_session_reaches_its_client [];
        a_question_is_brought_back_answered [];
        what_is_under_way_is_finished_before_it_ends [];
        what_takes_too_long_is_killed_when_it_ends [];
        a_second_signal_ends_it_without_waiting [];
        nothing_is_left_behind [];
    }

    in_namespaces! {
        a_tool_does_its_work_in_both_eras [];
        a_client_that_goes_away_takes_its_command_along [];
        what_takes_too_long_is_killed_when_it_ends [];
        nothing_is_left_behind [];
    }

    /// A server, and a client that knows its token.
    struct Server {
        running: Running,
        client: Client,
        errors: PathBuf,
    }

    fn config(world: &Fixture) -> PathBuf {
        let text = format!(
            "extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    w: {{root: {}, mode: rw, execute: true, write_approval: false}}
shell:
  default: {{allowed: true, approval: none}}
tools:
  delete_file: {{approval: required}}
",
            world.workspace().display(),
        );
        world.write(world.base().join("agent.yaml"), text)
    }

    /// `stockade mcp FLAGS`, with its standard error in a file, on this machine or on one that lacks something.
    fn launch(world: &Fixture, machine: &[&str], config: &Path, flags: &[&str]) -> (Running, PathBuf) {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let errors = world
            .base()
            .join(format!("run/errors-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        let backend = world.backend.name();
        // The usual limit of open files: far fewer than a thousand clients need.
        let into = format!("ulimit -S -n 1024; exec \"$@\" 2>'{}'", errors.display());
        let running = world
            .bare("/bin/sh")
            .args(["-c", &into, "sh"])
            .args(machine)
            .args([world.binary().to_str().unwrap(), "mcp", "--config"])
            .args([config.to_str().unwrap(), "--backend", backend])
            .args(flags)
            .spawn();
        (running, errors)
    }

    fn serve(world: &Fixture, flags: &[&str]) -> Server {
        served(launch(world, &[], &config(world), &[&["--http", "0"], flags].concat()))
    }

    /// Waits until it says where it is.
    fn served((mut running, errors): (Running, PathBuf)) -> Server {
        let mut output = String::new();
        eventually("the address", || {
            let is_alive = running.is_alive();
            output = fs::read_to_string(&errors).unwrap_or_default();
            let is_told = output.contains("claude mcp add") && output.ends_with('\n');
            assert!(is_told || is_alive, "{output}");
            is_told
        });
        let after = |mark: &str, end: char| {
            let rest = output
                .split_once(mark)
                .unwrap_or_else(|| panic!("no {mark}: {output}"))
                .1;
            rest.split(end).next().unwrap().to_owned()
        };
        let client = Client {
            address: after("http://", '/').parse().unwrap(),
            token: after("Bearer ", '"'),
        };
        Server {
            running,
            client,
            errors,
        }
    }

    /// What `stockade mcp FLAGS` says that does not come to serve.
    fn refused(world: &Fixture, flags: &[&str]) -> String {
        let (running, errors) = launch(world, &[], &config(world), flags);
        running.wait().exits(125);
        fs::read_to_string(errors).unwrap()
    }

    impl Server {
        fn fetch(&self, request: &TestRequest) -> super::client::TestReply {
            self.client.fetch(request)
        }

        /// A call of the current revision that does nothing much.
        fn read(&self) -> TestRequest {
            self.client.call("list_files", &json!({"path": "."}))
        }

        #[track_caller]
        fn still_serves(&self) {
            assert_eq!(self.fetch(&self.read()).status, 200);
        }

        /// Begins a command that starts two sleepers, on a connection of its own.
        fn sleeping(&self, request: impl Fn(Value) -> TestRequest) -> (TcpStream, String) {
            let marker = marker();
            let line = format!("sleep {marker} & setsid sleep {marker} & wait; sleep {marker}");
            let mut stream = self.client.connect();
            stream.write_all(&request(json!({"command": line})).bytes()).unwrap();
            wait_for_processes(&marker, 2);
            (stream, marker)
        }

        fn is_ready(&self) -> bool {
            self.fetch(&TestRequest::new("GET", "/readyz").with("Host", "x")).status == 200
        }
    }

    /// A call in a session.
    fn called(tool: &str, arguments: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
    }

    fn only_who_says_the_token_is_let_in(world: &Fixture) {
        let server = serve(world, &[]);
        let token = &server.client.token;
        let right = server.read();
        assert_eq!(server.fetch(&right).status, 200);
        assert_eq!(
            server
                .fetch(&right.clone().having("Authorization", &format!("bearer {token}")))
                .status,
            200
        );
        let (half, longer, other) = (&token[..32], format!("{token}0"), "0".repeat(64));
        for wrong in [
            String::new(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            format!("Bearer {half}"),
            format!("Bearer {longer}"),
            format!("Bearer {other}"),
            format!("Bearer {}", token.to_uppercase().replace(char::is_numeric, "9")),
            format!("Basic {token}"),
            token.clone(),
        ] {
            let answer = server.fetch(&right.clone().having("Authorization", &wrong));
            assert_eq!(answer.status, 401, "{wrong}");
            assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
            assert!(!answer.text().contains(half), "the token was told");
        }
        assert_eq!(server.fetch(&right.clone().without("Authorization")).status, 401);
        for method in ["GET", "DELETE", "PUT", "OPTIONS"] {
            assert_eq!(
                server
                    .fetch(&TestRequest::new(method, "/mcp").with("Host", "localhost"))
                    .status,
                401,
                "{method}"
            );
        }
        // Who says two might mean either.
        assert_eq!(server.fetch(&right.with("Authorization", "Bearer x")).status, 400);
    }

    fn the_token_that_was_made_is_told_once(world: &Fixture) {
        let (one, other) = (serve(world, &[]).client.token, serve(world, &[]));
        assert_ne!(one, other.client.token);
        assert_eq!(other.client.token.len(), 64);
        let wrong = other.read().having("Authorization", "Bearer x");
        assert_eq!(other.fetch(&wrong).status, 401);
        let output = fs::read_to_string(&other.errors).unwrap();
        assert_eq!(output.matches(&other.client.token).count(), 1, "{output}");
    }

    fn the_token_of_a_file_is_taken_and_not_told(world: &Fixture) {
        let words = "a-token-of-my-own-0123456789";
        let file = world.write(world.home().join("token"), format!("{words}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let mut server = serve(world, &["--token-file", file.to_str().unwrap()]);
        assert_eq!(server.client.token, "TOKEN");
        assert_eq!(server.fetch(&server.read()).status, 401);
        words.clone_into(&mut server.client.token);
        server.still_serves();
        assert!(!fs::read_to_string(&server.errors).unwrap().contains(words));
    }

    fn a_token_file_is_the_user_s_alone(world: &Fixture) {
        let words = "a-token-of-my-own-0123456789";
        let made = |path: PathBuf, mode: u32, words: &str| {
            let file = world.write(path, words);
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        let of = |file: &Path| {
            let output = refused(world, &["--http", "0", "--token-file", file.to_str().unwrap()]);
            assert!(!output.contains(words) && !output.contains("secret"), "{output}");
            output
        };
        let good = made(world.home().join("good"), 0o400, words);
        drop(serve(world, &["--token-file", good.to_str().unwrap()]));
        for mode in [0o640, 0o604, 0o610] {
            let file = made(world.home().join("shared"), mode, words);
            assert!(of(&file).contains("chmod 600"), "{mode:o}");
        }
        let link = world.home().join("link");
        symlink(&good, &link).unwrap();
        assert!(of(&link).contains("link"));
        for (name, words) in [
            ("short", "secret"),
            ("none", "\n"),
            ("spaces", "two secret words, quite long"),
            ("bytes", "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}"),
        ] {
            let file = made(world.home().join(name), 0o600, words);
            assert!(of(&file).contains("holds no token"), "{name}");
        }
        assert!(of(&world.home()).contains("regular file"));
        assert!(of(&world.home().join("missing")).contains("No such file"));
        let inside = made(world.workspace().join("token"), 0o600, words);
        assert!(of(&inside).contains("in reach of commands"));
        if world.actor.switch_to().is_some() {
            // One of root's, which the user can read by its directory alone.
            assert!(of(Path::new("/etc/shadow")).contains("Permission denied"));
        }
    }

    fn only_names_of_this_machine_are_answered(world: &Fixture) {
        let server = serve(world, &["--allowed-host", "agents.example"]);
        let port = server.client.address.port();
        let by = |host: &str| server.fetch(&server.read().having("Host", host)).status;
        for host in [
            "localhost",
            "127.0.0.1",
            "[::1]",
            "LOCALHOST",
            "agents.example",
            "agents.example:443",
        ] {
            assert_eq!(by(host), 200, "{host}");
        }
        assert_eq!(by(&format!("localhost:{port}")), 200);
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil.example:80",
            "127.0.0.2",
            "0.0.0.0",
            "agents.example.evil.example",
        ] {
            assert_eq!(by(host), 403, "{host}");
        }
        assert_eq!(by("localhost@evil.example"), 403);
        assert_eq!(by("a b"), 400);
        assert_eq!(by(""), 400);
        assert_eq!(server.fetch(&server.read().without("Host")).status, 400);
        assert_eq!(server.fetch(&server.read().with("Host", "evil.example")).status, 400);
    }

    fn pages_of_other_origins_are_not_answered(world: &Fixture) {
        let server = serve(world, &["--allowed-origin", "https://app.example"]);
        let port = server.client.address.port();
        let from = |origin: &str| server.fetch(&server.read().with("Origin", origin)).status;
        for origin in [
            format!("http://127.0.0.1:{port}"),
            format!("http://localhost:{port}"),
            "https://app.example".to_owned(),
        ] {
            assert_eq!(from(&origin), 200, "{origin}");
        }
        for origin in [
            "null",
            "https://evil.example",
            "http://localhost",
            "http://localhost:1",
            "https://app.example:8443",
            "http://app.example",
            "https://app.example.evil.example",
            "",
            "x",
        ] {
            assert_eq!(from(origin), 403, "{origin}");
        }
        assert_eq!(from(&format!("https://127.0.0.1:{port}")), 403);
        // What a page sends whose name was pointed at this machine.
        let evil = format!("evil.example:{port}");
        let rebound = server
            .read()
            .having("Host", &evil)
            .with("Origin", &format!("http://{evil}"));
        assert_eq!(server.fetch(&rebound).status, 403);
    }

    fn an_address_that_others_reach_needs_a_name(world: &Fixture) {
        for address in ["0.0.0.0:0", "[::]:0"] {
            let output = refused(world, &["--http", address]);
            assert!(output.contains("--allowed-host"), "{output}");
        }
        let output = refused(world, &["--http", "nonsense"]);
        assert!(output.contains("`nonsense`"), "{output}");
        for flags in [
            ["--token-file", "x"],
            ["--allowed-host", "x"],
            ["--allowed-origin", "https://x"],
        ] {
            let output = refused(world, &flags);
            assert!(output.contains("--http"), "{output}");
        }
        let taken = serve(world, &[]);
        let output = refused(world, &["--http", &taken.client.address.to_string()]);
        assert!(output.contains("in use"), "{output}");
    }

    fn health_is_told_to_everybody_and_nothing_else(world: &Fixture) {
        let server = serve(world, &[]);
        let fetch =
            |method: &str, path: &str| server.fetch(&TestRequest::new(method, path).with("Host", "10.0.0.7:80"));
        for path in ["/healthz", "/readyz"] {
            let answer = fetch("GET", path);
            assert_eq!((answer.status, answer.text().as_str()), (200, ""), "{path}");
            assert_eq!(fetch("POST", path).status, 405);
        }
        for path in ["/", "/healthz/", "/mcpx", "/metrics", "/..", "//mcp", "/MCP"] {
            assert_eq!(fetch("GET", path).status, 404, "{path}");
        }
        for path in ["/mcp/", "/mcp/x"] {
            assert_eq!(fetch("GET", path).status, 401, "{path}");
            assert_eq!(server.fetch(&server.client.request("GET", path)).status, 404, "{path}");
        }
    }

    fn a_server_that_cannot_confine_is_not_ready(world: &Fixture) {
        let text = fs::read_to_string(config(world)).unwrap();
        let text = text.replace("sandbox:\n", "sandbox:\n  os_sandbox_fallback: refuse_tools\n");
        let config = world.write(world.base().join("refusing.yaml"), text);
        let flags = ["--http", "0"];
        let here = served(launch(world, &[], &config, &flags));
        assert!(here.is_ready());
        here.still_serves();

        drop(without(world, "landlock", &[]));
        let helper = world.base().join("without");
        let elsewhere = served(launch(world, &[helper.to_str().unwrap(), "landlock"], &config, &flags));
        assert!(!elsewhere.is_ready());
        assert_eq!(
            elsewhere
                .fetch(&TestRequest::new("GET", "/healthz").with("Host", "x"))
                .status,
            200
        );
        let refused = elsewhere.fetch(&elsewhere.read()).message();
        assert_eq!(refused["result"]["isError"], json!(true), "{refused}");
    }

    fn both_eras_see_the_same_tools(world: &Fixture) {
        let server = serve(world, &[]);
        let listed = server.fetch(&server.client.current("tools/list", json!({}))).message();
        assert!(listed["result"]["ttlMs"].is_u64(), "{listed}");
        assert!(listed["result"]["cacheScope"].is_string(), "{listed}");
        let session = server.client.session(&json!({}));
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let older = server.fetch(&server.client.in_session(&session, &list)).message();
        assert!(listed["result"]["tools"].as_array().unwrap().len() > 5, "{listed}");
        assert_eq!(listed["result"]["tools"], older["result"]["tools"]);
    }

    fn a_tool_does_its_work_in_both_eras(world: &Fixture) {
        let server = serve(world, &[]);
        world.write("a.txt", "the first\n");
        let read = server.fetch(&server.client.call("read_file", &json!({"path": "a.txt"})));
        assert!(read.tool_text().contains("the first"));
        let session = server.client.session(&json!({}));
        let write = called("write_file", &json!({"path": "b.txt", "content": "the second\n"}));
        let written = server.fetch(&server.client.in_session(&session, &write)).message();
        assert_eq!(written["result"]["isError"], json!(false), "{written}");
        assert_eq!(
            fs::read_to_string(world.workspace().join("b.txt")).unwrap(),
            "the second\n"
        );
        let secret = world.outside().join("secret");
        let kept = server.fetch(&server.client.call("read_file", &json!({"path": secret})));
        assert_eq!(kept.message()["result"]["isError"], json!(true));
    }

    fn one_connection_carries_many_requests(world: &Fixture) {
        let server = serve(world, &[]);
        let mut answer = server.client.send(&server.read());
        for _ in 0..20 {
            assert_eq!(answer.status, 200);
            answer = answer.then(&server.read());
        }
        // Who does not say the token has no second try on it.
        let refused = answer.then(&server.read().having("Authorization", "Bearer x"));
        assert_eq!((refused.status, refused.header("connection")), (401, Some("close")));
    }

    fn parameters_that_cannot_be_read_are_said_to_be_wrong(world: &Fixture) {
        let server = serve(world, &[]);
        let request = server.read();
        for (message, why) in [
            (
                json!({"method": "tools/call", "params": {"name": []}}),
                "`params.name` must be a string, and is an array",
            ),
            (
                json!({"method": "tools/call", "params": "shell"}),
                "`params` must be an object, and is a string",
            ),
            (
                json!({"method": "tools/list", "params": {"cursor": 1}}),
                "`params.cursor` must be a string, and is a number",
            ),
        ] {
            let mut message = message;
            message["jsonrpc"] = json!("2.0");
            message["id"] = json!("it");
            let answer = server.fetch(&request.clone().body(message.to_string().as_bytes()));
            let (status, answer) = (answer.status, answer.message());
            assert_eq!(
                (status, &answer["id"], &answer["error"]["code"]),
                (200, &json!("it"), &json!(-32602)),
                "{answer}"
            );
            assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
        }
        server.still_serves();
    }

    fn what_is_no_message_is_said_to_be_none(world: &Fixture) {
        let server = serve(world, &[]);
        let request = server.read();
        let code = |body: &[u8]| {
            let answer = server.fetch(&request.clone().body(body));
            (answer.status, answer.message()["error"]["code"].clone())
        };
        for body in [&b""[..], b"{", b"hello", b"{}{}", b"\xff", b"[1,"] {
            assert_eq!(code(body), (400, json!(-32700)), "{}", body.escape_ascii());
        }
        let deep = format!(
            "{{\"id\":1,\"method\":\"ping\",\"params\":{}{}}}",
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        for body in [
            "[]",
            "3",
            "null",
            "{}",
            "{\"jsonrpc\":\"2.0\"}",
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
            &deep,
        ] {
            assert_eq!(
                code(body.as_bytes()),
                (400, json!(-32600)),
                "{}",
                &body[..body.len().min(80)]
            );
        }
        for kind in [
            "text/plain",
            "application/jsonx",
            "",
            "application/x-www-form-urlencoded",
        ] {
            assert_eq!(
                server.fetch(&request.clone().having("Content-Type", kind)).status,
                415,
                "{kind}"
            );
        }
        assert_eq!(server.fetch(&request.clone().without("Content-Type")).status, 415);
        assert_eq!(
            server
                .fetch(
                    &request
                        .clone()
                        .having("Content-Type", "Application/JSON; charset=utf-8")
                )
                .status,
            200
        );
        assert_eq!(server.fetch(&request.clone().having("Accept", "text/html")).status, 406);
        assert_eq!(
            server
                .fetch(&request.clone().having("MCP-Protocol-Version", "1999-01-01"))
                .status,
            400
        );
        assert_eq!(server.fetch(&request.having("Mcp-Method", "tools/list")).status, 400);
        server.still_serves();
    }

    fn what_is_too_large_is_refused(world: &Fixture) {
        let server = serve(world, &[]);
        let request = server.read();
        assert_eq!(
            server
                .fetch(&request.clone().with("X-Long", &"x".repeat(16 * 1024)))
                .status,
            200
        );
        let long = "x".repeat(100 * 1024);
        assert_eq!(server.fetch(&request.clone().with("X-Long", &long)).status, 431);
        let mut many = request.clone();
        for count in 0..200 {
            many = many.with(&format!("X-{count}"), "y");
        }
        assert_eq!(server.fetch(&many).status, 431);
        let huge = vec![b' '; 17 * 1024 * 1024];
        assert_eq!(server.fetch(&request.clone().body(huge)).status, 413);
        // Said beforehand, and never sent.
        let mut stream = server.client.connect();
        let promised = request.clone().having("Content-Length", "99999999999");
        stream.write_all(&promised.head()).unwrap();
        assert_eq!(Answer::read(stream).status, 413);
        // Not said beforehand.
        let mut stream = server.client.connect();
        let chunked = request.without("Content-Length").with("Transfer-Encoding", "chunked");
        stream.write_all(&chunked.head()).unwrap();
        let chunk = [
            format!("{:x}\r\n", 1 << 20).into_bytes(),
            vec![b' '; 1 << 20],
            b"\r\n".to_vec(),
        ]
        .concat();
        for _ in 0..17 {
            stream.write_all(&chunk).unwrap();
        }
        assert_eq!(Answer::read(stream).status, 413);
        server.still_serves();
    }

    fn a_large_file_is_written_whole(world: &Fixture) {
        let server = serve(world, &[]);
        let content = "0123456789abcdef".repeat(900 * 1024);
        let written = server.fetch(
            &server
                .client
                .call("write_file", &json!({"path": "large", "content": content})),
        );
        assert_eq!(written.status, 200);
        let size = fs::metadata(world.workspace().join("large")).map(|file| file.len());
        // Where the tool has a bound of its own, it says so, and writes nothing.
        let is_error = written.message()["result"]["isError"] == json!(true);
        assert_eq!(
            size.ok(),
            (!is_error).then_some(content.len() as u64),
            "{}",
            written.tool_text()
        );
    }

    fn hostile_bytes_leave_the_server_as_it_was(world: &Fixture) {
        let server = serve(world, &[]);
        let token = &server.client.token;
        let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
        for bytes in [
            b"\0\0\0\0\r\n\r\n".to_vec(),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            b"GET / HTTP/9.9\r\n\r\n".to_vec(),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
            format!("{head}Content-Length: 5\r\nContent-Length: 6\r\n\r\n{{}}   ").into_bytes(),
            format!("{head}Content-Length: -1\r\n\r\n").into_bytes(),
            format!("{head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n").into_bytes(),
            format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n").into_bytes(),
            format!("{head}X: a\0b\r\n\r\n").into_bytes(),
            format!("{head} folded: x\r\n\r\n").into_bytes(),
        ] {
            let mut stream = server.client.connect();
            stream.write_all(&bytes).unwrap();
            let _done = stream.shutdown(std::net::Shutdown::Write);
            let mut output = Vec::new();
            let _reset = stream.read_to_end(&mut output);
            assert!(!output.starts_with(b"HTTP/1.1 2"), "{}", bytes.escape_ascii());
        }
        // Two ways to say how long a body is: the second request would be hidden in the first.
        let hidden = format!(
            "{head}Content-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        );
        let mut stream = server.client.connect();
        stream.write_all(hidden.as_bytes()).unwrap();
        let _done = stream.shutdown(std::net::Shutdown::Write);
        let mut output = Vec::new();
        let _reset = stream.read_to_end(&mut output);
        assert!(
            !String::from_utf8_lossy(&output).contains("200 OK"),
            "{}",
            output.escape_ascii()
        );
        server.still_serves();
    }

    fn a_thousand_requests_at_once_are_all_answered(world: &Fixture) {
        let server = serve(world, &[]);
        world.write("a.txt", "the same\n");
        // The server's own bound was set when it was started.
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, hard.min(4096), hard).unwrap();
        let calls: Vec<TestRequest> = (0..1000)
            .map(|count| match count % 2 {
                0 => server.client.call("read_file", &json!({"path": "a.txt"})),
                _ => server.client.current("tools/list", json!({})),
            })
            .collect();
        let mut streams: Vec<TcpStream> = calls.iter().map(|_| server.client.connect()).collect();
        for (stream, call) in streams.iter_mut().zip(&calls) {
            stream.write_all(&call.bytes()).unwrap();
        }
        for (count, stream) in streams.into_iter().enumerate() {
            let mut answer = Answer::read(stream).read_all();
            // On a machine this slow some are told to come again.
            while answer.status == 503 && answer.header("retry-after").is_some() {
                answer = server.fetch(&calls[count]);
            }
            assert_eq!(answer.status, 200, "{count}");
            if count % 2 == 0 {
                assert!(answer.tool_text().contains("the same"), "{count}");
            }
        }
        server.still_serves();
    }

    fn a_client_that_goes_away_takes_its_command_along(world: &Fixture) {
        let server = serve(world, &[]);
        let (stream, marker) = server.sleeping(|arguments| server.client.call("shell", &arguments));
        drop(stream);
        wait_until_gone(&marker);
        server.still_serves();
    }

    fn a_cancelled_command_of_a_session_dies(world: &Fixture) {
        let server = serve(world, &[]);
        let session = server.client.session(&json!({}));
        let (stream, marker) =
            server.sleeping(|arguments| server.client.in_session(&session, &called("shell", &arguments)));
        drop(stream);
        std::thread::sleep(Duration::from_millis(300));
        wait_for_processes(&marker, 2);
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        assert_eq!(server.fetch(&server.client.in_session(&session, &cancel)).status, 202);
        wait_until_gone(&marker);
        server.still_serves();
    }

    fn a_session_that_ends_takes_its_commands_along(world: &Fixture) {
        let server = serve(world, &[]);
        let session = server.client.session(&json!({}));
        let (_stream, marker) =
            server.sleeping(|arguments| server.client.in_session(&session, &called("shell", &arguments)));
        let end = server
            .client
            .request("DELETE", "/mcp")
            .with("MCP-Protocol-Version", LEGACY)
            .with("Mcp-Session-Id", &session);
        assert_eq!(server.fetch(&end).status, 202);
        wait_until_gone(&marker);
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        assert_eq!(server.fetch(&server.client.in_session(&session, &list)).status, 404);
    }

    fn a_question_of_a_session_reaches_its_client(world: &Fixture) {
        let server = serve(world, &[]);
        let session = server.client.session(&json!({"elicitation": {}}));
        for (decision, stays) in [("deny", true), ("once", false)] {
            let file = world.write("doomed", "x");
            let delete = called("delete_file", &json!({"path": "doomed"}));
            let mut answering = server.client.send(&server.client.in_session(&session, &delete));
            let question = answering.event().unwrap();
            assert_eq!(question["method"], "elicitation/create", "{question}");
            assert!(file.exists());
            let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"decision": decision}}});
            assert_eq!(server.fetch(&server.client.in_session(&session, &answer)).status, 202);
            let done = answering.event().unwrap();
            assert_eq!(done["result"]["isError"], json!(stays), "{done}");
            assert_eq!(file.exists(), stays, "{done}");
        }
    }

    fn a_question_is_brought_back_answered(world: &Fixture) {
        let server = serve(world, &[]);
        let file = world.write("doomed", "x");
        let fetch = |brought: Option<(&Value, &Value)>| {
            let mut params = json!({"name": "delete_file", "arguments": {"path": "doomed"}});
            params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
            if let Some((state, responses)) = brought {
                params["requestState"] = state.clone();
                params["inputResponses"] = responses.clone();
            }
            server.fetch(&server.client.current("tools/call", params)).message()
        };
        let question = fetch(None);
        assert_eq!(question["result"]["resultType"], "input_required", "{question}");
        let name = question["result"]["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap();
        let mut responses = json!({});
        responses[name] = json!({"action": "accept", "content": {"decision": "once"}});
        assert!(file.exists());
        let state = &question["result"]["requestState"];
        let done = fetch(Some((state, &responses)));
        assert_eq!(done["result"]["isError"], json!(false), "{done}");
        assert!(!file.exists());
        world.write("doomed", "x");
        let again = fetch(Some((state, &responses)));
        assert_eq!(again["result"]["isError"], json!(true), "{again}");
        assert!(file.exists());
    }

    #[track_caller]
    fn becomes_unready(server: &Server) {
        eventually("it is not ready", || !server.is_ready());
    }

    fn what_is_under_way_is_finished_before_it_ends(world: &Fixture) {
        let server = serve(world, &["--drain", "1h"]);
        let file = world.workspace().join("go");
        let line = "touch begun; while ! [ -e go ]; do sleep 0.05; done; echo done";
        let mut stream = server.client.connect();
        stream
            .write_all(&server.client.call("shell", &json!({"command": line})).bytes())
            .unwrap();
        eventually("the call begins", || world.workspace().join("begun").exists());
        server.running.signal(Signal::SIGTERM);
        becomes_unready(&server);
        let refused = server.fetch(&server.read());
        assert_eq!(refused.status, 503);
        assert!(refused.header("retry-after").is_some());
        assert_eq!(
            server
                .fetch(&TestRequest::new("GET", "/healthz").with("Host", "x"))
                .status,
            200
        );
        world.write(file, "");
        assert!(Answer::read(stream).read_all().tool_text().contains("done"));
        server.running.wait().exits(0);
    }

    fn what_takes_too_long_is_killed_when_it_ends(world: &Fixture) {
        let server = serve(world, &["--drain", "1s"]);
        let (_stream, marker) = server.sleeping(|arguments| server.client.call("shell", &arguments));
        server.running.signal(Signal::SIGINT);
        server.running.wait().exits(0);
        wait_until_gone(&marker);
    }

    fn a_second_signal_ends_it_without_waiting(world: &Fixture) {
        let server = serve(world, &["--drain", "1h"]);
        let (_stream, marker) = server.sleeping(|arguments| server.client.call("shell", &arguments));
        server.running.signal(Signal::SIGTERM);
        becomes_unready(&server);
        server.running.signal(Signal::SIGTERM);
        server.running.wait().exits(143);
        wait_until_gone(&marker);
    }

    fn nothing_is_left_behind(world: &Fixture) {
        config(world);
        let before = Snapshot::of(world);
        let server = serve(world, &[]);
        let session = server.client.session(&json!({}));
        let run = called("shell", &json!({"command": "echo x > file; rm file"}));
        assert_eq!(server.fetch(&server.client.in_session(&session, &run)).status, 200);
        server.still_serves();
        server.running.signal(Signal::SIGTERM);
        server.running.wait().exits(0);
        fs::remove_file(&server.errors).unwrap();
        assert_nothing_left_behind(&before, world);
    }
}
