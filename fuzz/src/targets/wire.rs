//! What one process of a session reads from another. Decoding then encoding is the identity, nothing trails, nothing
//! that is cut short decodes, and a stream of frames gives what its bytes say.
//!
//! The first byte picks the message; the rest is the body of a frame, or a stream of frames.

use std::fmt::Debug;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::bounds::{Bounds, bounded};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stockade::confine::wire::protocol::{
    Announcement, OfferReply, OfferRequest, Reply, Request, RunnerReport, RunnerRequest, SetupMessage, SupervisorReply,
    SupervisorRequest,
};
use stockade::confine::wire::{MAX_FRAME, body_length, decode, encode, receive};

const BOUNDS: Bounds = Bounds {
    // A frame may announce as many bytes as a frame may have.
    bytes: MAX_FRAME + (4 << 20),
    per_byte: 1024,
    time: Duration::from_secs(1),
};

pub(crate) fn run(input: &[u8]) {
    let Some((pick, bytes)) = input.split_first() else {
        return;
    };
    bounded(input, BOUNDS, || match pick % 12 {
        0 => body::<Announcement>(bytes),
        1 => body::<SetupMessage>(bytes),
        2 => body::<Request>(bytes),
        3 => body::<Reply>(bytes),
        4 => body::<SupervisorRequest>(bytes),
        5 => body::<SupervisorReply>(bytes),
        6 => body::<RunnerReport>(bytes),
        7 => body::<RunnerRequest>(bytes),
        8 => stream::<Reply>(bytes),
        9 => body::<OfferRequest>(bytes),
        10 => body::<OfferReply>(bytes),
        _ => stream::<SupervisorReply>(bytes),
    });
}

fn body<T: Serialize + DeserializeOwned + Debug>(bytes: &[u8]) {
    let Ok(message) = decode::<T>(bytes) else { return };
    let frame = encode(&message).unwrap();
    let (prefix, again) = frame.split_first_chunk().unwrap();
    assert_eq!(body_length(*prefix).unwrap(), again.len());
    assert!(again.len() <= bytes.len(), "{message:?} grows on the way");
    let twin = decode::<T>(again).unwrap();
    assert_eq!(format!("{message:?}"), format!("{twin:?}"));
    assert_eq!(encode(&twin).unwrap(), frame);
    assert!(decode::<T>(&[bytes, &[0]].concat()).is_err(), "{message:?} and a byte");
    if let Some((_, short)) = bytes.split_last() {
        assert!(decode::<T>(short).is_err(), "{message:?}, cut short");
    }
}

/// What the bytes say: messages one after the other, then a clean end or none.
fn stream<T: Serialize + DeserializeOwned + Debug>(bytes: &[u8]) {
    // Less than a socket holds, so that nobody need read meanwhile.
    let bytes = &bytes[..bytes.len().min(64 << 10)];
    let (mut to, from) = UnixStream::pair().unwrap();
    to.write_all(bytes).unwrap();
    drop(to);
    let mut rest = bytes;
    loop {
        let told = receive::<T>(&from);
        let Some((prefix, after)) = rest.split_first_chunk() else {
            assert_eq!(
                rest.is_empty(),
                told.is_ok_and(|told| told.is_none()),
                "at the end of {bytes:?}"
            );
            return;
        };
        let announced = body_length(*prefix)
            .ok()
            .and_then(|length| after.split_at_checked(length));
        let expected = announced.and_then(|(body, after)| Some((decode::<T>(body).ok()?, after)));
        match (told, expected) {
            (Ok(Some((message, descriptors))), Some((twin, after))) => {
                assert_eq!(format!("{message:?}"), format!("{twin:?}"));
                assert!(descriptors.is_empty());
                rest = after;
            }
            (Err(_), None) => return,
            (told, expected) => panic!("{told:?} of {expected:?}"),
        }
    }
}
