//! Real records, as Linux 6.18 wrote them, and what a hostile command or a broken kernel could make of them.

use proptest::prelude::*;

use super::*;

fn access(text: &str) -> Option<Refusal> {
    match parse(1423, text.as_bytes())? {
        Record::Access { refusal, .. } => Some(refusal),
        other => panic!("{other:?}"),
    }
}

fn path(text: &str) -> Object {
    Object::Path(text.into())
}

/// As the kernel writes what is not plain.
fn digits(name: &str) -> String {
    name.bytes()
        .fold(String::new(), |digits, byte| format!("{digits}{byte:02X}"))
}

#[test]
fn a_refusal_with_a_path_is_read() {
    let text = b"audit(1795461852.146:284): domain=193f64159 blockers=fs.make_reg path=\"/tmp\" dev=\"vda\" ino=246951";
    let expected = Record::Access {
        domain: 0x1_93f6_4159,
        refusal: Refusal {
            blockers: vec![Blocker::Make],
            object: path("/tmp"),
        },
    };
    assert_eq!(parse(1423, text), Some(expected));
}

#[test]
fn a_domain_is_read_by_the_process_that_made_it() {
    let text = b"audit(1795461852.146:284): domain=193f64159 status=allocated mode=enforcing pid=6403 uid=0 exe=\"/root/.pyenv/versions/3.11.7/bin/python3.11\" comm=\"python3\"";
    let domain = 0x1_93f6_4159;
    assert_eq!(parse(1424, text), Some(Record::Made { domain, pid: 6403 }));
    let text = b"audit(1795461852.202:285): domain=193f64159 status=deallocated denials=1";
    assert_eq!(parse(1424, text), Some(Record::Ended { domain }));
}

#[test]
fn several_reasons_are_all_told_once_each_and_unknown_ones_left_out() {
    let text = "audit(1.1:1): domain=195ba459b blockers=fs.make_reg,fs.refer,fs.of_tomorrow path=\"/usr/local\" dev=\"vda2\" ino=365";
    let refusal = access(text).unwrap();
    assert_eq!(refusal.blockers, [Blocker::Make, Blocker::Refer]);
}

#[test]
fn reasons_are_those_of_one_operation() {
    for (list, expected) in [
        ("fs.write_file,fs.read_file", vec![Blocker::Write, Blocker::Read]),
        ("fs.write_file,fs.truncate", vec![Blocker::Write]),
        // What is executed is read for that.
        ("fs.execute,fs.read_file", vec![Blocker::Execute]),
        ("fs.remove_dir,fs.make_dir", vec![Blocker::Remove, Blocker::Make]),
        ("fs.ioctl_dev", vec![Blocker::Ioctl]),
        // What a file would gain by another directory.
        ("fs.make_char,fs.make_block,fs.ioctl_dev", vec![Blocker::Refer]),
        (
            "fs.execute,fs.make_char,fs.make_block,fs.ioctl_dev",
            vec![Blocker::Refer],
        ),
        ("fs.execute,fs.ioctl_dev", vec![Blocker::Refer]),
        (
            "fs.execute,fs.read_file,fs.remove_dir,fs.make_dir,fs.refer",
            vec![Blocker::Refer],
        ),
    ] {
        let text = format!("audit(1.1:1): domain=a blockers={list} path=\"/x\" dev=\"vda\" ino=1");
        assert_eq!(access(&text).unwrap().blockers, expected, "{list}");
    }
}

#[test]
fn a_hostile_name_in_hexadecimal_is_the_name_and_nothing_else() {
    let name = "/w/x domain=1 blockers=ptrace \"\n\u{1b}[31m";
    let digits = digits(name);
    let text = format!("audit(1.1:1): domain=a blockers=fs.read_file path={digits} dev=\"vda\" ino=7");
    let refusal = access(&text).unwrap();
    assert_eq!((refusal.object, refusal.blockers), (path(name), vec![Blocker::Read]));
}

#[test]
fn a_name_in_quotes_that_looks_like_words_is_a_name() {
    let text = "audit(1.1:1): domain=a blockers=fs.read_file path=\"/w/domain=b,blockers=ptrace\" dev=\"vda\" ino=7";
    let refusal = access(text).unwrap();
    assert_eq!(refusal.object, path("/w/domain=b,blockers=ptrace"));
}

#[test]
fn a_program_with_a_hostile_name_changes_nothing_of_its_domain() {
    // The name is `x status=deallocated pid=1`.
    let comm = "78207374617475733D6465616C6C6F6361746564207069643D31";
    let text = format!("audit(1.1:1): domain=a status=allocated mode=enforcing pid=7 uid=0 exe={comm} comm={comm}");
    assert_eq!(parse(1424, text.as_bytes()), Some(Record::Made { domain: 10, pid: 7 }));
}

#[test]
fn what_is_gone_is_told_from_what_is_there() {
    let digits = digits("/w/x (deleted)");
    let text = format!("audit(1.1:1): domain=a blockers=fs.write_file path={digits} dev=\"vda\" ino=7");
    assert_eq!(access(&text).unwrap().object, Object::Deleted("/w/x".into()));
}

#[test]
fn processes_and_addresses_are_read() {
    let text = "audit(1.1:1): domain=a blockers=scope.signal opid=1 ocomm=\"systemd\"";
    let refusal = access(text).unwrap();
    assert_eq!(
        (refusal.object, refusal.blockers),
        (Object::Process(1), vec![Blocker::Signal])
    );
    for (words, address) in [
        ("daddr=127.0.0.1 dest=80", "127.0.0.1:80"),
        ("daddr=2001:db8::1 dest=443", "[2001:db8::1]:443"),
        ("dest=80", "0.0.0.0:80"),
        ("saddr=127.0.0.1 src=8080", "127.0.0.1:8080"),
    ] {
        let text = format!("audit(1.1:1): domain=a blockers=net.connect_tcp {words}");
        let refusal = access(&text).unwrap();
        assert_eq!(refusal.object, Object::Address(address.parse().unwrap()), "{words}");
    }
}

#[test]
fn what_is_cut_off_or_of_no_use_is_not_taken() {
    let whole = "audit(1.1:1): domain=a blockers=fs.read_file path=\"/secret\" dev=\"vda\"";
    assert!(access(whole).is_some());
    // Up to the end of the path there is either no path or no record.
    let end = whole.find(" dev").unwrap();
    for length in 0..end {
        let object = access(&whole[..length]).map(|refusal| refusal.object);
        assert!(object.is_none_or(|object| object == Object::Unnamed), "{length}");
    }
    for text in [
        "",
        "audit(): ",
        "domain=a blockers=fs.read_file",
        "audit(1.1:1): domain=a",
        "audit(1.1:1): blockers=fs.read_file",
        "audit(1.1:1): domain=+a blockers=fs.read_file",
        "audit(1.1:1): domain= blockers=fs.read_file",
        "audit(1.1:1): domain=\"a\" blockers=fs.read_file",
        "audit(1.1:1): domain=11112222333344445 blockers=fs.read_file",
        "audit(1.1:1): domain=a blockers=fs.read_file path=2F7",
        "audit(1.1:1): domain=a blockers=fs.read_file path=/secret",
        "audit(1.1:1): domain=a blockers=fs.read_file path=\"<too_long>\"",
        "audit(1.1:1): domain=a blockers=scope.signal opid=-1",
        "audit(1.1:1): domain=a blockers=net.bind_tcp src=70000",
        "audit(1.1:1): domain=a blockers=fs.read_file nonsense",
    ] {
        assert_eq!(parse(1423, text.as_bytes()), None, "{text}");
    }
}

#[test]
fn records_of_another_type_are_not_looked_at() {
    let text = b"audit(1.1:1): domain=a blockers=fs.read_file path=\"/x\"";
    for kind in [0, 1100, 1300, 1422, 1425] {
        assert_eq!(parse(kind, text), None);
    }
}

proptest! {
    #[test]
    fn nothing_makes_the_reader_panic(
        kind in prop_oneof![Just(1423u16), Just(1424), any::<u16>()],
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let _any = parse(kind, &bytes);
        let _words = parse(kind, &[b"audit(1.1:1): ".as_slice(), &bytes].concat());
    }

    #[test]
    fn no_name_makes_another_record_of_one(name in proptest::collection::vec(1u8.., 1..100)) {
        // As the kernel writes what somebody chose.
        let is_plain = name.iter().all(|byte| (0x21..0x7f).contains(byte) && *byte != b'"');
        let written = if is_plain {
            [b"\"".as_slice(), &name, b"\""].concat()
        } else {
            name.iter().flat_map(|byte| format!("{byte:02X}").into_bytes()).collect()
        };
        let text = [b"audit(1.1:1): domain=a blockers=fs.execute path=".as_slice(), &written, b" dev=\"vda\" ino=1"].concat();
        let read = parse(1423, &text);
        if !matches!(name.as_slice(), b"<no_memory>" | b"<too_long>") {
            let Some(Record::Access { domain: 10, refusal }) = read else { panic!("{read:?}") };
            prop_assert_eq!(&refusal.blockers, &[Blocker::Execute]);
            let expected = match name.strip_suffix(DELETED) {
                Some(name) => Object::Deleted(OsString::from_vec(name.to_vec())),
                None => Object::Path(OsString::from_vec(name.clone())),
            };
            prop_assert_eq!(refusal.object, expected);
        }
    }
}
