//! Real clients at a real socket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread::JoinHandle;

use tempfile::TempDir;

use super::*;
use crate::approval::{AnswerOf, Remember};

/// A busy machine must not reach it: it ends a hang.
const LONG: Duration = Duration::from_mins(4);

fn request(description: &str) -> ApprovalRequest {
    ApprovalRequest {
        description: description.to_owned(),
        payload: description.as_bytes().to_vec(),
        ..ApprovalRequest::new("shell", "run a command")
    }
}

fn nothing_is_reached(_: &AbsPath) -> Option<String> {
    None
}

/// A session that asks one question, and somebody who may answer it.
struct Session {
    dir: TempDir,
    asking: Option<JoinHandle<Result<ApprovalDecision, ApproverError>>>,
    cancel: CancelHandle,
}

impl Session {
    fn asking(deadline: Duration, request: ApprovalRequest) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let approver = SocketApprover::new(&dir.path().join("s"), deadline, nothing_is_reached).unwrap();
        let (mut approver, cancel) = approver.cancellable().unwrap();
        let asking = std::thread::spawn(move || {
            let shown = Presentation::Text("all of it".to_owned());
            approver.ask(&request, &shown)
        });
        Self {
            dir,
            asking: Some(asking),
            cancel,
        }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    fn client(&self) -> ApprovalsClient {
        ApprovalsClient::new(&self.socket())
    }

    /// The ID of the request, once it is open.
    fn id(&self) -> String {
        let started = Instant::now();
        loop {
            match self.client().send(ApprovalsRequest::List).unwrap() {
                ApprovalsReply::Waiting(waiting) if !waiting.is_empty() => return waiting[0].id.clone(),
                other => assert!(started.elapsed() < LONG, "{other:?}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Says yes to a question that was shown.
    fn approve(&self, id: &str) -> Result<ApprovalsReply, ClientError> {
        self.client().send(ApprovalsRequest::Show { id: id.to_owned() })?;
        self.approve_without_showing(id)
    }

    fn approve_without_showing(&self, id: &str) -> Result<ApprovalsReply, ClientError> {
        self.client().send(ApprovalsRequest::Approve {
            id: id.to_owned(),
            remember: Remember::None,
            note: None,
        })
    }

    fn deny(&self, id: &str) -> Result<ApprovalsReply, ClientError> {
        self.client().send(ApprovalsRequest::Deny {
            id: id.to_owned(),
            note: Some("no".to_owned()),
        })
    }

    fn decided(&mut self) -> Result<ApprovalDecision, ApproverError> {
        self.asking.take().unwrap().join().unwrap()
    }

    /// What these bytes are answered; a client that is not answered gets nothing.
    fn reply_to(&self, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        // The server does not read the rest of a line that is too long.
        let _closed = stream.write_all(bytes);
        let mut reply = String::new();
        let _closed = BufReader::new(stream).read_line(&mut reply);
        reply
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(asking) = self.asking.take() {
            assert!(asking.join().unwrap().is_err());
        }
    }
}

#[track_caller]
fn refused(reply: Result<ApprovalsReply, ClientError>, why: &str) {
    match reply {
        Err(ClientError::Refused(reply)) => assert!(reply.contains(why), "{reply}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_sees_the_question_and_its_answer_counts() {
    let mut session = Session::asking(LONG, request("make"));
    let id = session.id();
    let shown = session
        .client()
        .send(ApprovalsRequest::Show { id: id.clone() })
        .unwrap();
    let ApprovalsReply::Question(message) = shown else {
        panic!("{shown:?}")
    };
    assert_eq!(message.presentation, Presentation::Text("all of it".to_owned()));
    let yes = ApprovalsRequest::Approve {
        id,
        remember: Remember::Session,
        note: Some("fine".to_owned()),
    };
    assert_eq!(session.client().send(yes).unwrap(), ApprovalsReply::Done);
    let decision = session.decided().unwrap();
    assert!(decision.approved);
    assert_eq!(decision.remember, Remember::Session);
    assert_eq!(decision.note.as_deref(), Some("fine"));

    let mut session = Session::asking(LONG, request("make"));
    assert_eq!(session.deny(&session.id()).unwrap(), ApprovalsReply::Done);
    assert!(!session.decided().unwrap().approved);
}

#[test]
fn only_the_first_answer_counts_and_only_to_the_question_that_is_open() {
    let mut session = Session::asking(LONG, request("make"));
    let id = session.id();
    refused(session.approve("000000000000"), "no such question");
    refused(session.approve(""), "no such question");
    assert_eq!(session.deny(&id).unwrap(), ApprovalsReply::Done);
    match session.approve(&id) {
        // The session that was answered may be gone by now.
        Err(
            ClientError::Refused(_)
            | ClientError::NobodyListens { .. }
            | ClientError::Ended
            | ClientError::Silent(_)
            | ClientError::Token { .. },
        ) => {}
        other => panic!("{other:?}"),
    }
    assert!(!session.decided().unwrap().approved);
}

#[test]
fn a_question_is_denied_when_nobody_answers_in_time() {
    let mut session = Session::asking(Duration::from_millis(300), request("make"));
    let ended = session.decided();
    assert!(matches!(ended, Err(ApproverError::TimedOut(_))), "{ended:?}");
}

#[test]
fn a_question_that_is_withdrawn_takes_no_answer() {
    let mut session = Session::asking(LONG, request("make"));
    session.id();
    session.cancel.cancel();
    assert!(matches!(session.decided(), Err(ApproverError::Cancelled)));
}

#[test]
fn without_the_token_nobody_is_listened_to() {
    let mut session = Session::asking(LONG, request("make"));
    let id = session.id();
    let token = std::fs::read_to_string(endpoint::token_path(&session.socket())).unwrap();
    assert_eq!(token.len(), 64);
    let line = |token: &str| format!("{{\"token\":\"{token}\",\"request\":{{\"approve\":{{\"id\":\"{id}\"}}}}}}\n");
    for wrong in ["", &token[1..], &format!("{token}0"), &"0".repeat(64)] {
        let reply = session.reply_to(line(wrong).as_bytes());
        assert!(reply.contains("the token is another one"), "{reply}");
    }
    let reply = session.reply_to(b"{\"token\":\"\",\"request\":\"list\"}\n");
    assert!(!reply.contains("make"), "{reply}");
    session
        .client()
        .send(ApprovalsRequest::Show { id: id.clone() })
        .unwrap();
    assert_eq!(session.reply_to(line(&token).as_bytes()), "\"done\"\n");
    assert!(session.decided().unwrap().approved);
}

#[test]
fn what_is_no_request_is_refused_and_holds_nobody_up() {
    let mut session = Session::asking(LONG, request("make"));
    let id = session.id();
    let token = std::fs::read_to_string(endpoint::token_path(&session.socket())).unwrap();
    for wrong in [
        "\n".to_owned(),
        "approve\n".to_owned(),
        "\0\u{7f}\u{202e}\n".to_owned(),
        "[".repeat(10_000) + "\n",
        format!("{{\"token\":\"{token}\"}}\n"),
        format!("{{\"token\":\"{token}\",\"request\":\"approve\"}}\n"),
        format!("{{\"token\":\"{token}\",\"request\":{{\"approve\":{{\"id\":\"{id}\",\"more\":1}}}}}}\n"),
        format!("{{\"token\":\"{token}\",\"request\":{{\"approve\":{{\"id\":\"{id}\"}}}},\"more\":1}}\n"),
    ] {
        let reply = session.reply_to(wrong.as_bytes());
        assert!(reply.contains("this is no request"), "{reply}");
    }
    assert!(session.reply_to(&vec![b'x'; 1024 * 1024]).len() < 100);
    assert!(session.reply_to(b"\xff\xfe\n").contains("this is no request"));
    assert_eq!(session.approve(&id).unwrap(), ApprovalsReply::Done);
    assert!(session.decided().unwrap().approved);
}

#[test]
fn silent_clients_keep_nobody_from_an_answer() {
    let mut session = Session::asking(LONG, request("make"));
    let id = session.id();
    let mut silent = Vec::new();
    for index in 0..1_000 {
        let mut stream = UnixStream::connect(session.socket()).unwrap();
        if index % 2 == 0 {
            // Fails once the server has disconnected this client.
            let _closed = stream.write_all(b"{\"token\":");
        }
        silent.push(stream);
    }
    // There are never more than the latest few of them: this one is let in beside the rest.
    assert_eq!(session.approve(&id).unwrap(), ApprovalsReply::Done);
    assert!(session.decided().unwrap().approved);
}

#[test]
fn half_a_line_and_silence_ends_the_connection() {
    let session = Session::asking(LONG, request("make"));
    let mut stream = UnixStream::connect(session.socket()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(b"{\"token\":").unwrap();
    let mut reply = Vec::new();
    match stream.read_to_end(&mut reply) {
        Ok(_) => assert_eq!(reply, b""),
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
    }
}

#[test]
fn a_client_that_watches_is_told_what_is_asked_and_how_it_ends() {
    let mut session = Session::asking(LONG, request("make"));
    let id = session.id();
    let mut watching = session.client().watch().unwrap();
    match watching.next() {
        Some(Ok(ApprovalsEvent::Asked(waiting))) => {
            assert_eq!((&waiting.id, waiting.description.as_str()), (&id, "make"));
        }
        other => panic!("{other:?}"),
    }
    session.approve(&id).unwrap();
    match watching.next() {
        Some(Ok(ApprovalsEvent::Settled { id: settled, how })) => assert_eq!((settled, how.as_str()), (id, "approved")),
        other => panic!("{other:?}"),
    }
    session.decided().unwrap();
    assert!(watching.next().is_none_or(|event| event.is_err()));
}

#[test]
fn what_is_not_remembered_never_holds_for_the_session_and_all_is_seen_first() {
    for answer in [AnswerOf::Anyone, AnswerOf::AnyoneOnce, AnswerOf::ApproverOnly] {
        let once = ApprovalRequest {
            answer,
            ..request("put back")
        };
        let mut session = Session::asking(LONG, once);
        let id = session.id();
        refused(session.approve_without_showing(&id), "shown first");
        session
            .client()
            .send(ApprovalsRequest::Show { id: id.clone() })
            .unwrap();
        if answer != AnswerOf::Anyone {
            let for_ever = ApprovalsRequest::Approve {
                id: id.clone(),
                remember: Remember::Session,
                note: None,
            };
            refused(session.client().send(for_ever), "never for the session");
        }
        assert_eq!(session.approve_without_showing(&id).unwrap(), ApprovalsReply::Done);
        assert!(session.decided().unwrap().approved);
    }
}

#[test]
fn socket_and_token_are_the_users_alone_and_gone_with_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let approver = SocketApprover::new(&socket, LONG, nothing_is_reached).unwrap();
    for file in [&socket, &endpoint::token_path(&socket)] {
        let mode = std::fs::symlink_metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{}", file.display());
    }
    drop(approver);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[track_caller]
fn unusable(socket: &Path, why: &str) {
    let error = SocketApprover::new(socket, LONG, nothing_is_reached)
        .unwrap_err()
        .to_string();
    assert!(error.contains(why), "{error}");
}

#[test]
fn only_a_socket_at_which_nobody_listens_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let first = SocketApprover::new(&socket, LONG, nothing_is_reached).unwrap();
    unusable(&socket, "another session listens");
    let client = ApprovalsClient::new(&socket);
    assert!(
        client.send(ApprovalsRequest::List).is_ok(),
        "the first one is as it was"
    );
    drop(first);
    // As after SIGKILL.
    drop(UnixListener::bind(&socket).unwrap());
    std::fs::write(endpoint::token_path(&socket), "old").unwrap();
    let second = SocketApprover::new(&socket, LONG, nothing_is_reached).unwrap();
    assert!(client.send(ApprovalsRequest::List).is_ok());
    drop(second);
    std::fs::write(&socket, "a file").unwrap();
    unusable(&socket, "is not replaced");
    assert_eq!(std::fs::read(&socket).unwrap(), b"a file");
    std::fs::remove_file(&socket).unwrap();
    symlink("/etc/passwd", endpoint::token_path(&socket)).unwrap();
    unusable(&socket, "is not replaced");
}

#[test]
fn a_place_that_others_or_commands_reach_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    unusable(&socket, "others can write");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let reached = |path: &AbsPath| {
        path.name()
            .is_some_and(|name| name == "s.token")
            .then(|| "read".to_owned())
    };
    let error = SocketApprover::new(&socket, LONG, reached).unwrap_err().to_string();
    assert!(error.contains("could approve themselves"), "{error}");
    unusable(&dir.path().join("missing/s"), "cannot be opened");
    unusable(&dir.path().join("x".repeat(200)), "cannot be made");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(SocketApprover::new(&socket, LONG, nothing_is_reached).is_ok());
}
