//! The audit log. Whatever its files hold, they are read and checked without a panic, and what the writer did not write is
//! not accepted: only a last line that was cut passes, and is called that.
//!
//! The input is a list of changes to a log that the writer made: each is a byte that says which, two numbers of two bytes,
//! and for some a byte more. `R` puts the rest of the input in the place of the log.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use stockade::audit::event::{CallEnd, Event, SessionEnd};
use stockade::audit::{AuditLog, Durability, Keeping, LogPaths, Tail, Text, records, verify};

use crate::bounds::{Bounds, bounded, workplace};

const BOUNDS: Bounds = Bounds {
    bytes: 4 << 20,
    per_byte: 64,
    time: Duration::from_secs(1),
};

struct Fixture {
    place: LogPaths,
    /// The earlier file, and the one that is written.
    files: [(PathBuf, Vec<u8>); 2],
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let place = LogPaths::at(&workplace().join("audit.jsonl"));
    let keeping = Keeping {
        max_bytes: 2_000,
        keep: None,
    };
    let log = AuditLog::open(&place, keeping, &|_| None, "s").unwrap();
    for number in 0..6 {
        let event = Event::Outcome(CallEnd {
            call: number.to_string(),
            outcome: "done",
            error: Some(Text::of("quotes \" and \n lines \u{202e}")),
            duration: 0.5,
            bytes: Some(number),
        });
        log.append("s", &[event], Durability::Later).unwrap();
    }
    let end = Event::SessionEnd(SessionEnd { calls: 6 });
    log.append("s", &[end], Durability::Now).unwrap();
    let files = [place.log().with_file_name("audit.1.jsonl"), place.log().to_owned()];
    Fixture {
        place,
        files: files.map(|path| {
            let bytes = std::fs::read(&path).unwrap();
            (path, bytes)
        }),
    }
});

pub(crate) fn run(input: &[u8]) {
    let world = &*FIXTURE;
    let changed = changed(world, input);
    for ((path, _), bytes) in world.files.iter().zip(&changed) {
        std::fs::write(path, bytes).unwrap();
    }
    let report = bounded(input, BOUNDS, || verify(&world.place, None).unwrap());
    let same = world.files.iter().zip(&changed).all(|((_, then), now)| then == now);
    let longer = changed[0] == world.files[0].1 && changed[1].starts_with(&world.files[1].1);
    match (&report.fault, report.tail) {
        (None, Tail::Complete) => assert!(same, "accepted an entry that was never written"),
        (None, Tail::Partial(_)) => assert!(longer, "what was changed passes as cut"),
        (Some(fault), _) => assert!(!same, "what was written is rejected: {fault}"),
    }
    bounded(input, BOUNDS, || records(&world.place).unwrap().for_each(drop));
}

fn changed(world: &Fixture, input: &[u8]) -> [Vec<u8>; 2] {
    let mut files = [world.files[0].1.clone(), world.files[1].1.clone()];
    let mut rest = input;
    while let [which, tail @ ..] = rest {
        let file = &mut files[usize::from(which & 1)];
        if *which == b'R' {
            files[1] = tail.to_vec();
            break;
        }
        let [a, b, c, d, more, tail @ ..] = tail else {
            break;
        };
        rest = tail;
        let place = |high: u8, low: u8, length: usize| usize::from(u16::from_be_bytes([high, low])) % (length + 1);
        let (from, to) = (place(*a, *b, file.len()), place(*c, *d, file.len()));
        match which >> 1 & 3 {
            0 => {
                if let Some(byte) = file.get_mut(from) {
                    *byte ^= more;
                }
            }
            1 => drop(file.drain(from.min(to)..from.max(to))),
            2 => file.insert(from, *more),
            _ => {
                let piece = file[from.min(to)..from.max(to)].to_vec();
                file.extend_from_slice(&piece);
            }
        }
    }
    files
}
