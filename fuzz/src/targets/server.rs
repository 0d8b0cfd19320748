//! What a file server says that was taken over. The parent tells an agent of nothing outside of what was looked at,
//! tells nobody what moves a cursor, asks about nothing but what was prepared, and approves nothing by itself.
//!
//! The first byte picks what the rest is: the answer to a look; the body of one frame; or, after its length, what was
//! prepared and then what is shown of it.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use stockade::approval::{
    ApprovalDecision, ApprovalRequest, Approver, ApproverError, Controller, Lazy, Presentation, Remember,
};
use stockade::config::{self, Context};
use stockade::confine::files::protocol::FileReply;
use stockade::confine::protect::Person;
use stockade::confine::wire::{decode, encode};
use stockade::policy::{AbsPath, Mode};
use stockade::tools::files::hostile::{Made, Parent, paths};
use stockade::tools::{Caches, Executor, GitFiles, Narrowing, UserPaths};

use crate::bounds::{Bounds, bounded, workplace};

const START: &str = "/w";

const BOUNDS: Bounds = Bounds {
    bytes: 4 << 20,
    per_byte: 1024,
    time: Duration::from_secs(1),
};

/// Says no to everything.
struct Nobody;

impl Approver for Nobody {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        Ok(ApprovalDecision {
            approved: false,
            note: None,
            remember: Remember::Session,
        })
    }
}

static PARENT: LazyLock<Parent> = LazyLock::new(|| {
    let folder = workplace();
    let file = folder.join("stockade.yaml");
    let text = "extends: [system]\nsandbox: {backend: landlock, paths: {all: {root: /, optional: true}}}\n";
    std::fs::write(&file, text).unwrap();
    let context = Context::host();
    let policy = config::load(&file, &context).unwrap().policy;
    let places = UserPaths {
        state: folder.join("state"),
        git: GitFiles::default(),
        person: Person::default(),
        caches: Caches::default(),
    };
    let executor = Executor::new(policy, Narrowing::default(), Mode::Strict, Box::new(Nobody), places).unwrap();
    Parent::new(executor, AbsPath::new(START).unwrap())
});

pub(crate) fn run(input: &[u8]) {
    // What is made once is no part of what one input costs.
    let parent = &*PARENT;
    // Less than a socket holds, so that nobody need read meanwhile.
    let Some((pick, bytes)) = input[..input.len().min(64 << 10)].split_first() else {
        return;
    };
    bounded(input, BOUNDS, || match pick % 3 {
        0 => heard(parent, bytes),
        1 => {
            let Ok(reply) = decode::<FileReply>(bytes) else { return };
            let frame = encode(&reply).unwrap();
            assert_eq!(decode::<FileReply>(&frame[4..]).unwrap(), reply);
            heard(parent, &frame);
        }
        _ => {
            let Some((length, rest)) = bytes.split_first() else {
                return;
            };
            let (first, rest) = rest.split_at(usize::from(*length).min(rest.len()));
            if let Ok((lazy, _theirs)) = parent.shows(first, rest) {
                denied(&question(lazy));
            }
        }
    });
}

fn heard(parent: &Parent, bytes: &[u8]) {
    let Ok(Made { told, led, question }) = parent.hears(bytes) else {
        return;
    };
    match told {
        Ok(output) => {
            for path in paths(&output) {
                assert!(path.starts_with(Path::new(START)), "{}", path.display());
            }
            if output.data.get("content").is_none() {
                plain(&output.text);
            }
        }
        Err(error) => plain(&error.to_string()),
    }
    match led {
        Ok(path) => plain(&path),
        Err(error) => plain(&error.to_string()),
    }
    if let Ok(question) = question {
        denied(&question);
    }
}

fn plain(text: &str) {
    let is_plain = |letter: char| letter == '\n' || !(letter.is_control() || letter == '\u{202e}');
    assert!(text.chars().all(is_plain), "{text:?}");
}

fn question(presentation: Lazy) -> ApprovalRequest {
    ApprovalRequest {
        presentation,
        ..ApprovalRequest::new("write_file", "write")
    }
}

/// Nothing that a server says is a yes.
fn denied(question: &ApprovalRequest) {
    for mode in [Mode::Strict, Mode::Interactive] {
        assert!(
            !Controller::new(mode, Box::new(Nobody))
                .decide(question)
                .decision
                .approved
        );
    }
}
