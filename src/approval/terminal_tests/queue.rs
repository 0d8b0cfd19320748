//! Several questions at once, on one terminal.

use super::*;

/// Two processes that ask at once; each may ask several times.
const TWO: &str = "\"$0\" \"$@\" & \"$0\" \"$@\"; wait";

/// The questions and answers in the order of the screen, as letters.
fn order(shown: &str) -> String {
    let marks = [("Stockade asks", 'Q'), ("approve? [", 'p')];
    let mut found: Vec<(usize, char)> = marks
        .into_iter()
        .flat_map(|(text, mark)| shown.match_indices(text).map(move |(at, _)| (at, mark)))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, mark)| mark).collect()
}

#[test]
fn questions_of_two_processes_never_overlap() {
    let mut session = start("", TWO, &[("ASK_COUNT", "2")]);
    for count in 1..=4 {
        session.prompt(count).still_asks().type_in("y\n");
    }
    let (verdicts, shown) = session.end();
    assert_eq!(verdicts, ["true None Approver"; 4]);
    assert_eq!(order(&shown), "QpQpQpQp", "{shown:?}");
}

#[test]
fn questions_of_two_threads_never_overlap() {
    let mut session = start("", "", &[("ASK_THREADS", "3")]);
    for count in 1..=3 {
        session.prompt(count).still_asks().type_in("y\n");
    }
    let (verdicts, shown) = session.end();
    assert_eq!(verdicts, ["true None Approver"; 3]);
    assert_eq!(order(&shown), "QpQpQp", "{shown:?}");
}

#[test]
fn a_question_that_waits_for_another_ends_in_time() {
    let mut session = start("", TWO, &[("ASK_TIMEOUT_MS", "700")]);
    session.prompt(1);
    let (verdicts, shown) = session.end();
    // The other may get its turn at the last moment.
    let busy = "another command of Stockade's had the keys of the terminal for 700ms, so nobody was asked";
    let [asked, waited] = ["no answer within 700ms", busy].map(|why| format!("false None Failure({why:?})"));
    assert_eq!(verdicts.len(), 2);
    assert!(verdicts.contains(&asked), "{verdicts:?}");
    assert!(
        verdicts.iter().all(|verdict| [&asked, &waited].contains(&verdict)),
        "{verdicts:?}"
    );
    assert!(order(&shown).starts_with("Qp"), "{shown:?}");
}

#[test]
fn a_question_that_waits_for_another_can_be_withdrawn() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (second, now, ended) = (at("second"), at("now"), at("ended"));
    // Only the second is withdrawn, and it starts when the first is on the screen.
    let wrap = format!(
        "\"$0\" \"$@\" & until [ -e '{second}' ]; do sleep 0.05; done; \
         ASK_CANCEL_WHEN_EXISTS='{now}' \"$0\" \"$@\"; touch '{ended}'; wait"
    );
    let mut session = start("", &wrap, &[]);
    session.prompt(1);
    std::fs::write(second, "").unwrap();
    session.still_asks();
    std::fs::write(now, "").unwrap();
    let withdrawn = Instant::now();
    while !std::path::Path::new(&ended).exists() {
        assert!(withdrawn.elapsed() < PATIENCE, "it waits on");
        std::thread::sleep(Duration::from_millis(5));
    }
    session.type_in("y\n");
    let (verdicts, shown) = session.end();
    assert_eq!(verdicts, [WITHDRAWN, "true None Approver"]);
    assert_eq!(order(&shown), "Qp", "{shown:?}");
}

#[test]
fn whoever_is_killed_at_a_question_leaves_the_terminal_to_the_next() {
    // The killed process alone knew the settings to restore.
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (second, now) = (at("second"), at("now"));
    let until = |file: &str| format!("until [ -e '{file}' ]; do sleep 0.05; done");
    let wrap = format!(
        "\"$0\" \"$@\" & first=$!; {}; ({}; kill -9 $first) & \"$0\" \"$@\"; wait; stty sane",
        until(&second),
        until(&now)
    );
    let mut session = start("", &wrap, &[]);
    session.prompt(1);
    std::fs::write(second, "").unwrap();
    session.still_asks();
    std::fs::write(now, "").unwrap();
    session.prompt(2).type_in("y\n");
    assert_eq!(session.verdicts(), ["true None Approver"]);
}
