//! What a server says that is none: cut short, without end, slowly, or not at all.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::FileServer;
use super::super::exchange::Exchange;
use super::super::protocol::{Done, End, Entry, Kind, List};
use super::*;
use crate::confine::ConfineError;

fn request() -> FileRequest {
    FileRequest {
        deadline_ms: 100,
        operation: FileOperation::List(List {
            path: "/w".into(),
            depth: 1,
            select: super::super::protocol::Select {
                glob: None,
                hidden: super::super::protocol::Include::No,
                ignored: super::super::protocol::Include::No,
            },
            limit: 10,
        }),
    }
}

/// Asks one who does this with the other end.
fn asked(server: impl FnOnce(UnixStream) + Send + 'static, patience: Duration) -> Result<FileReply, ConfineError> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let thread = std::thread::spawn(move || server(theirs));
    let said = Exchange::new(&request(), std::time::Instant::now().checked_add(patience))
        .unwrap()
        .advance(&ours, None, &mut |_| Ok(()))
        .map(Option::unwrap);
    drop(ours);
    thread.join().unwrap();
    said
}

fn part() -> Vec<u8> {
    let entry = Entry {
        path: "/w/f".into(),
        kind: Kind::File,
        size: 1,
    };
    wire::encode(&FileReply::Entries(vec![entry])).unwrap()
}

const LONG: Duration = Duration::from_hours(1);

#[test]
fn a_server_that_hangs_up_has_died() {
    for said in [&b""[..], b"\x05", b"\x05\0\0\0", b"\x05\0\0\0ab"] {
        let said = said.to_vec();
        let done = asked(move |mut theirs| theirs.write_all(&said).unwrap(), LONG);
        assert!(matches!(done, Err(ConfineError::ForkerDied)), "{done:?}");
    }
}

#[test]
fn a_frame_that_announces_too_much_is_no_message() {
    let done = asked(
        |mut theirs| {
            theirs.write_all(&u32::MAX.to_le_bytes()).unwrap();
            // Until the request is there: one that cannot be sent is another error.
            let _request = theirs.read(&mut [0; 4096]).unwrap();
        },
        LONG,
    );
    assert!(matches!(done, Err(ConfineError::Malformed)), "{done:?}");
}

#[test]
fn parts_without_end_are_given_up() {
    let done = asked(
        |mut theirs| {
            let many = part().repeat(1000);
            while theirs.write_all(&many).is_ok() {}
        },
        LONG,
    );
    assert!(matches!(done, Err(ConfineError::Malformed)), "{done:?}");
}

#[test]
fn a_server_that_speaks_slowly_has_no_more_time_than_one_that_is_silent() {
    for word in [part(), vec![0; 1]] {
        let done = asked(
            move |mut theirs| {
                theirs.write_all(&1_000_000u32.to_le_bytes()).unwrap();
                while theirs.write_all(&word[..1]).is_ok() {
                    std::thread::sleep(Duration::from_millis(20));
                }
            },
            Duration::from_millis(300),
        );
        assert!(matches!(done, Err(ConfineError::Unresponsive)), "{done:?}");
    }
}

#[test]
fn parts_that_come_slowly_and_without_end_run_out_of_time() {
    let done = asked(
        move |mut theirs| {
            while theirs.write_all(&part()).is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        },
        Duration::from_millis(300),
    );
    assert!(matches!(done, Err(ConfineError::Unresponsive)), "{done:?}");
}

#[test]
fn hanging_up_ends_a_request_under_way_and_every_later_one() {
    let (server, theirs) = FileServer::pair().unwrap();
    let asking = server.clone();
    let thread = std::thread::spawn(move || asking.request(&request(), &mut |_| Ok(())));
    std::thread::sleep(Duration::from_millis(50));
    server.hang_up();
    assert!(thread.join().unwrap().is_err());
    assert!(server.is_over());
    assert!(server.request(&request(), &mut |_| Ok(())).is_err());
    drop(theirs);
}

#[test]
fn after_an_error_a_server_is_asked_nothing_more() {
    let (server, theirs) = FileServer::pair().unwrap();
    let mut theirs = UnixStream::from(theirs);
    theirs.write_all(b"\x01\0\0\0\xff").unwrap();
    assert!(server.request(&request(), &mut |_| Ok(())).is_err());
    theirs.write_all(&part()).unwrap_or_default();
    assert!(server.is_over());
    assert!(server.request(&request(), &mut |_| Ok(())).is_err());
}

#[test]
fn whoever_takes_the_parts_may_refuse_more() {
    let (server, theirs) = FileServer::pair().unwrap();
    let mut theirs = UnixStream::from(theirs);
    theirs.write_all(&part().repeat(3)).unwrap();
    let taken = AtomicUsize::new(0);
    let done = server.request(&request(), &mut |_| match taken.fetch_add(1, Ordering::SeqCst) {
        0 => Ok(()),
        _ => Err(ConfineError::Malformed),
    });
    assert!(matches!(done, Err(ConfineError::Malformed)), "{done:?}");
    assert_eq!(taken.load(Ordering::SeqCst), 2);
}

/// A list of so many states, each one byte of the frame.
fn prepared(states: usize) -> Vec<u8> {
    let one = Prepared {
        before: vec![State::Absent; states],
        after: None,
        size: 0,
        files: 0,
        contents: None,
    };
    wire::encode(&FileReply::Prepared(vec![one])).unwrap()
}

#[test]
fn lists_that_are_longer_than_anybody_sends_are_no_message() {
    let body = |frame: Vec<u8>| wire::decode::<FileReply>(&frame[4..]);
    assert!(body(prepared(2)).is_ok());
    assert!(body(prepared(3)).is_err());
    let entry = Entry {
        path: "/w/f".into(),
        kind: Kind::File,
        size: 1,
    };
    let entries = |count| wire::encode(&FileReply::Entries(vec![entry.clone(); count])).unwrap();
    assert!(body(entries(256)).is_ok());
    assert!(body(entries(257)).is_err());
    let done = Done {
        total: 0,
        files: 0,
        unreadable: 0,
        end: End::Complete,
    };
    assert!(body(wire::encode(&FileReply::Done(done)).unwrap()).is_ok());
}
