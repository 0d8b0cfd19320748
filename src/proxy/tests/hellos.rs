use crate::policy::Host;
use crate::proxy::attempt::TunnelContent;
use crate::proxy::tls::{HelloError, HelloReader, NextRecord, ServerGreeting, begins_ssl2, begins_tls};

/// What a hello is made of.
#[derive(Clone)]
pub(super) struct Made {
    record: [u8; 3],
    kind: u8,
    version: [u8; 2],
    session: Vec<u8>,
    ciphers: Vec<u8>,
    compressions: Vec<u8>,
    extensions: Option<Vec<(u16, Vec<u8>)>>,
    behind_extensions: Vec<u8>,
    behind_message: Vec<u8>,
    longer: usize,
    fragments: usize,
}

fn long(bytes: &[u8]) -> Vec<u8> {
    let mut with_length = u16::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
    with_length.extend(bytes);
    with_length
}

fn short(bytes: &[u8]) -> Vec<u8> {
    let mut with_length = vec![u8::try_from(bytes.len()).unwrap()];
    with_length.extend(bytes);
    with_length
}

/// The extension that names hosts, of these entries.
fn names(entries: &[(u8, &[u8])]) -> (u16, Vec<u8>) {
    let entry = |(kind, name): &(u8, &[u8])| [vec![*kind], long(name)].concat();
    (0, long(&entries.iter().flat_map(entry).collect::<Vec<u8>>()))
}

impl Made {
    fn plain() -> Self {
        Self {
            record: [0x16, 3, 1],
            kind: 1,
            version: [3, 3],
            session: vec![7; 32],
            ciphers: vec![0x13, 1, 0x13, 2],
            compressions: vec![0],
            extensions: Some(vec![(10, vec![0, 2, 0, 29]), (43, vec![2, 3, 4])]),
            behind_extensions: Vec::new(),
            behind_message: Vec::new(),
            longer: 0,
            fragments: 1 << 14,
        }
    }

    fn with(extension: (u16, Vec<u8>)) -> Self {
        let mut made = Self::plain();
        made.extensions.as_mut().unwrap().insert(1, extension);
        made
    }

    fn naming(name: &[u8]) -> Self {
        Self::with(names(&[(0, name)]))
    }

    fn bytes(&self) -> Vec<u8> {
        let mut body = self.version.to_vec();
        body.extend([9; 32]);
        body.extend(short(&self.session));
        body.extend(long(&self.ciphers));
        body.extend(short(&self.compressions));
        if let Some(extensions) = &self.extensions {
            let all = extensions
                .iter()
                .flat_map(|(kind, data)| [kind.to_be_bytes().to_vec(), long(data)].concat());
            body.extend(long(&all.collect::<Vec<u8>>()));
        }
        body.extend(&self.behind_extensions);
        let length = u32::try_from(body.len() + self.longer).unwrap().to_be_bytes();
        let mut message = vec![self.kind, length[1], length[2], length[3]];
        message.extend(body);
        message.extend(&self.behind_message);
        let records = message
            .chunks(self.fragments)
            .map(|chunk| [self.record.to_vec(), long(chunk)].concat());
        records.collect::<Vec<_>>().concat()
    }
}

/// A hello that names a host.
pub(super) fn hello(name: &str) -> Vec<u8> {
    Made::naming(name.as_bytes()).bytes()
}

/// A hello that names none.
pub(super) fn nameless() -> Vec<u8> {
    Made::plain().bytes()
}

/// A hello in records of so many bytes.
pub(super) fn fragmented(name: &str, fragments: usize) -> Vec<u8> {
    let mut made = Made::naming(name.as_bytes());
    made.fragments = fragments;
    made.bytes()
}

/// All at once, and byte by byte, which must come to the same.
fn read(bytes: &[u8], host: &str) -> Result<Option<TunnelContent>, HelloError> {
    let host = Host::parse(host).unwrap();
    let judge = |read: Option<(crate::proxy::tls::Hello, usize)>| {
        read.map(|(hello, length)| {
            assert_eq!(length, bytes.len(), "of {}", bytes.escape_ascii());
            hello.check_host(&host)
        })
        .transpose()
    };
    let at_once = HelloReader::default().read(bytes).and_then(judge);
    let mut reader = HelloReader::default();
    let mut last = Ok(None);
    for end in 1..=bytes.len() {
        last = reader.read(&bytes[..end]);
        match &last {
            Ok(None) => {}
            Ok(Some(_)) => assert_eq!(end, bytes.len()),
            Err(_) => break,
        }
    }
    assert_eq!(last.and_then(judge), at_once, "{}", bytes.escape_ascii());
    at_once
}

#[test]
fn hellos_that_name_the_host_are_let_through() {
    let long = format!("{}.example.org", ["a".repeat(60).as_str(); 3].join("."));
    let rows: [(&str, &str); 9] = [
        ("files.example.org", "files.example.org"),
        ("FILES.example.ORG", "files.example.org"),
        ("files.example.org.", "files.example.org"),
        ("files.example.org", "Files.Example.Org."),
        ("xn--bcher-kva.example", "bücher.example"),
        ("localhost", "localhost"),
        ("under_score.example.org", "under_score.example.org"),
        ("a.b.c.d.e.f.example.org", "a.b.c.d.e.f.example.org"),
        (&long, &long),
    ];
    for (named, host) in rows {
        assert_eq!(
            read(&hello(named), host),
            Ok(Some(TunnelContent::NamedTls)),
            "{named} for {host}"
        );
    }
}

#[test]
fn hellos_that_name_no_host_are_let_through_and_told_apart() {
    let mut old = Made::plain();
    old.extensions = None;
    old.version = [3, 1];
    old.record = [0x16, 3, 0];
    let mut empty = Made::plain();
    empty.extensions = Some(Vec::new());
    for (bytes, host) in [
        (nameless(), "files.example.org"),
        (nameless(), "192.0.2.1"),
        (nameless(), "2001:db8::1"),
        (old.bytes(), "files.example.org"),
        (empty.bytes(), "files.example.org"),
    ] {
        assert_eq!(
            read(&bytes, host),
            Ok(Some(TunnelContent::NamelessTls)),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn hellos_that_name_another_host_are_refused() {
    let rows: [(&[u8], &str, &str); 20] = [
        (b"evil.example", "files.example.org", "evil.example"),
        (b"example.org", "files.example.org", "example.org"),
        (b"a.files.example.org", "files.example.org", "a.files.example.org"),
        (
            b"files.example.org.evil.example",
            "files.example.org",
            "files.example.org.evil.example",
        ),
        (
            b"files.example.org\0.evil.example",
            "files.example.org",
            "files.example.org\\x00.evil.example",
        ),
        (
            b"evil.example\0files.example.org",
            "files.example.org",
            "evil.example\\x00files.example.org",
        ),
        (b"files.example.org\0", "files.example.org", "files.example.org\\x00"),
        (b"files.example.org..", "files.example.org", "files.example.org.."),
        (b".files.example.org", "files.example.org", ".files.example.org"),
        (b" files.example.org", "files.example.org", " files.example.org"),
        (b"files.example.org ", "files.example.org", "files.example.org "),
        (b"files.example.org:443", "files.example.org", "files.example.org:443"),
        (b"files%2eexample.org", "files.example.org", "files%2eexample.org"),
        (b"*.example.org", "files.example.org", "*.example.org"),
        (
            b"f\xc4\xb1les.example.org",
            "files.example.org",
            "f\\xc4\\xb1les.example.org",
        ),
        ("bücher.example".as_bytes(), "bücher.example", "b\\xc3\\xbccher.example"),
        (b"192.0.2.1", "files.example.org", "192.0.2.1"),
        (b"0x7f.1", "files.example.org", "0x7f.1"),
        (b"\xff\xfe", "files.example.org", "\\xff\\xfe"),
        (b"\r\nfiles.example.org", "files.example.org", "\\r\\nfiles.example.org"),
    ];
    for (named, host, shown) in rows {
        let refused = read(&Made::naming(named).bytes(), host);
        assert_eq!(refused, Err(HelloError::Differs(shown.to_owned())));
    }
    let long = "a".repeat(5000);
    let refused = read(&hello(&long), "files.example.org");
    assert_eq!(refused, Err(HelloError::Differs("a".repeat(100))));
}

#[test]
fn an_address_that_was_asked_for_is_not_named_in_a_hello() {
    for (named, host) in [
        ("files.example.org", "192.0.2.1"),
        ("192.0.2.1", "192.0.2.1"),
        ("files.example.org", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
    ] {
        assert_eq!(read(&hello(named), host), Err(HelloError::Named(named.to_owned())));
    }
}

#[test]
fn hellos_that_can_be_read_in_two_ways_are_refused() {
    let host = b"files.example.org".as_slice();
    let evil = b"evil.example".as_slice();
    let made = |change: &dyn Fn(&mut Made)| {
        let mut made = Made::naming(host);
        change(&mut made);
        made.bytes()
    };
    let rows: Vec<(&str, Vec<u8>)> = vec![
        ("a version of no record", made(&|made| made.record = [0x16, 2, 0])),
        ("a version of none yet", made(&|made| made.record = [0x16, 3, 4])),
        ("a version of DTLS", made(&|made| made.record = [0x16, 0xfe, 0xfd])),
        ("an alert", made(&|made| made.record = [0x15, 3, 1])),
        ("what is encrypted", made(&|made| made.record = [0x17, 3, 3])),
        ("a ServerHello", made(&|made| made.kind = 2)),
        ("a HelloRequest", made(&|made| made.kind = 0)),
        ("a hello of SSL 2", made(&|made| made.version = [0, 2])),
        ("a hello of no version", made(&|made| made.version = [3, 9])),
        ("a session that is too long", made(&|made| made.session = vec![1; 33])),
        ("no ciphers", made(&|made| made.ciphers = Vec::new())),
        ("half a cipher", made(&|made| made.ciphers = vec![0x13, 1, 0x13])),
        ("no compression", made(&|made| made.compressions = Vec::new())),
        (
            "bytes behind the extensions",
            made(&|made| made.behind_extensions = vec![0]),
        ),
        ("bytes behind the message", made(&|made| made.behind_message = vec![0])),
        (
            "a second message in the record",
            made(&|made| made.behind_message = hello("evil.example")[5..].to_vec()),
        ),
        ("two names", Made::with(names(&[(0, host), (0, evil)])).bytes()),
        (
            "the same name twice",
            Made::with(names(&[(0, host), (0, host)])).bytes(),
        ),
        ("a name of another kind", Made::with(names(&[(1, host)])).bytes()),
        (
            "a name of another kind before",
            Made::with(names(&[(1, evil), (0, host)])).bytes(),
        ),
        (
            "a name of another kind behind",
            Made::with(names(&[(0, host), (1, evil)])).bytes(),
        ),
        ("an empty name", Made::with(names(&[(0, b"")])).bytes()),
        ("an empty list of names", Made::with(names(&[])).bytes()),
        ("an empty extension of names", Made::with((0, Vec::new())).bytes()),
        (
            "bytes behind the names",
            Made::with((0, [names(&[(0, host)]).1, vec![0]].concat())).bytes(),
        ),
        (
            "names that are longer than said",
            Made::with((0, vec![0, 3, 0, 0, 9])).bytes(),
        ),
        (
            "two extensions of names",
            made(&|made| made.extensions.as_mut().unwrap().push(names(&[(0, evil)]))),
        ),
        (
            "an extension twice",
            made(&|made| made.extensions.as_mut().unwrap().push((43, vec![2, 3, 4]))),
        ),
    ];
    for (what, bytes) in rows {
        let refused = read(&bytes, "files.example.org");
        assert_eq!(refused, Err(HelloError::Unreadable), "{what}");
    }
}

#[test]
fn a_hello_may_come_in_many_records() {
    for size in [1, 2, 3, 4, 5, 7, 40, 64, 100] {
        assert_eq!(
            read(&fragmented("files.example.org", size), "files.example.org"),
            Ok(Some(TunnelContent::NamedTls))
        );
        assert_eq!(
            read(&fragmented("evil.example", size), "files.example.org"),
            Err(HelloError::Differs("evil.example".into())),
        );
    }
}

#[test]
fn records_of_one_hello_are_of_one_kind_and_none_is_empty() {
    let whole = fragmented("files.example.org", 20);
    let (first, second) = whole.split_at(25);
    let other_version = [first, &[0x16, 3, 3], &second[3..]].concat();
    let empty_between = [first, &[0x16, 3, 1, 0, 0], second].concat();
    let cipher_between = [first, &[0x14, 3, 1, 0, 1, 1], second].concat();
    let alert_between = [first, &[0x15, 3, 1, 0, 2, 1, 0], second].concat();
    let too_long = [&[0x16, 3, 1, 0x40, 1, 1], vec![0; 1 << 14].as_slice()].concat();
    for bytes in [other_version, empty_between, cipher_between, alert_between, too_long] {
        assert_eq!(read(&bytes, "files.example.org"), Err(HelloError::Unreadable));
    }
}

#[test]
fn a_hello_is_bounded() {
    let mut said = Made::plain();
    said.longer = 70_000;
    assert_eq!(read(&said.bytes(), "files.example.org"), Err(HelloError::TooLong));
    // Each byte of it in a record of its own: short enough, but not as it comes.
    let mut thin = Made::with((21, vec![0; 15_000]));
    thin.fragments = 1;
    assert_eq!(
        HelloReader::default().read(&thin.bytes()[..1 << 16]),
        Err(HelloError::TooLong)
    );
    let mut long = Made::with((21, vec![0; 40_000]));
    long.fragments = 1 << 14;
    assert_eq!(
        read(&long.bytes(), "files.example.org"),
        Ok(Some(TunnelContent::NamelessTls))
    );
}

#[test]
fn a_hello_that_is_cut_off_is_never_whole() {
    let bytes = hello("files.example.org");
    for end in 0..bytes.len() {
        assert_eq!(HelloReader::default().read(&bytes[..end]), Ok(None), "{end}");
    }
}

#[test]
fn a_length_that_is_wrong_anywhere_is_refused_or_waited_for() {
    let bytes = hello("files.example.org");
    // Every byte, with every value: nothing panics, and nothing else is taken for a hello with that name…
    for at in 0..bytes.len() {
        for value in [0, 1, 2, 3, 0x16, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = value;
            let Ok(Some((hello, length))) = HelloReader::default().read(&changed) else {
                continue;
            };
            assert_eq!(length, changed.len());
            let check_host = hello.check_host(&Host::parse("files.example.org").unwrap());
            // …but where no name, or none of its letters, was touched.
            let has_name = changed.windows(17).any(|name| name == b"files.example.org");
            assert!(
                check_host != Ok(TunnelContent::NamedTls) || has_name,
                "{}",
                changed.escape_ascii()
            );
        }
    }
}

#[test]
fn the_hello_of_openssl_is_read() {
    let text = "160301013e0100013a030357678d7938b2dcc1997235efb1710dda87a33f24c55655e9ebfe9b58911c816d2060059ef9f53dc21b9b8b0c5776f0ee8ba9f9869969d390c827129a6244b103a9003e130213031301c02cc030009fcca9cca8ccaac02bc02f009ec024c028006bc023c0270067c00ac0140039c009c0130033009d009c003d003c0035002f00ff010000b300000016001400001166696c65732e6578616d706c652e6f7267000b000403000102000a00160014001d0017001e0019001801000101010201030104002300000016000000170000000d002a0028040305030603080708080809080a080b080408050806040105010601030303010302040205020602002b0009080304030303020301002d00020101003300260024001d0020ccfec7afb7e361a37769277d0b15922be7b32bc72d97c12cb9a701037857d732";
    let digits = text.as_bytes().chunks(2);
    let bytes: Vec<u8> = digits
        .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect();
    assert_eq!(read(&bytes, "files.example.org"), Ok(Some(TunnelContent::NamedTls)));
    assert_eq!(
        read(&bytes, "example.org"),
        Err(HelloError::Differs("files.example.org".into()))
    );
}

#[test]
fn tls_is_told_by_its_first_bytes() {
    let rows: [(&[u8], Option<bool>); 16] = [
        (&[0x16], Some(true)),
        (&[0x16, 3, 1], Some(true)),
        (&[0x16, 0xfe, 0xfd], Some(true)),
        (&[0x15, 3], Some(true)),
        (&[0x14, 3], Some(true)),
        (&[0x17, 3], Some(true)),
        (&[0x18, 3], Some(true)),
        (&[0x14, 9, 9, 0, 1], Some(true)),
        (&[0x15, 9, 9, 0, 2], Some(true)),
        (&[0x15], None),
        (&[0x15, 9, 9, 0], None),
        (&[0x15, 9, 9, 0, 9], Some(false)),
        (&[0x17, 0, 0, 0, 1], Some(false)),
        (b"GET / HTTP/1.1\r\n", Some(false)),
        (&[0, 0, 0, 8, 4], Some(false)),
        (&[0x80, 46, 1, 3, 1], Some(false)),
    ];
    for (bytes, expected) in rows {
        assert_eq!(begins_tls(bytes), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn ssl2_is_told_by_its_first_bytes() {
    let rows: [(&[u8], Option<bool>); 9] = [
        (&[0x80, 46, 1, 0, 2], Some(true)),
        (&[0x80, 46, 1, 3, 1, 0, 21], Some(true)),
        (&[0xff, 46, 1, 3, 3], Some(true)),
        (&[0x80], None),
        (&[0x80, 46, 1], None),
        (&[0x80, 46, 1, 3], None),
        (&[0x80, 46, 2], Some(false)),
        (&[0x80, 46, 1, 9], Some(false)),
        (&[0x16, 3, 1, 3, 1], Some(false)),
    ];
    for (bytes, expected) in rows {
        assert_eq!(begins_ssl2(bytes), expected, "{}", bytes.escape_ascii());
    }
}

/// A server's first message, with this for its random bytes.
pub(super) fn greeting(kind: u8, random: [u8; 32]) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 40, 3, 3];
    message.extend(random);
    message.extend([0, 0x13, 1, 0, 0, 0]);
    [vec![0x16, 3, 3], long(&message)].concat()
}

/// The random bytes that say: again. They are the SHA-256 of these words.
pub(super) fn again() -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(b"HelloRetryRequest").into()
}

#[test]
fn a_server_that_wants_a_second_hello_is_understood() {
    let warning: &[u8] = &[0x15, 3, 3, 0, 2, 1, 112];
    let retry = greeting(2, again());
    let split: Vec<u8> = retry[5..]
        .chunks(3)
        .flat_map(|chunk| [vec![0x16, 3, 3], long(chunk)].concat())
        .collect();
    for bytes in [retry.clone(), [warning, &retry].concat(), split] {
        let end = (1..=bytes.len()).find(|end| ServerGreeting::of(&bytes[..*end]) != ServerGreeting::More);
        assert!(end.is_some());
        assert_eq!(ServerGreeting::of(&bytes), ServerGreeting::Retry);
    }
    for bytes in [
        greeting(2, [5; 32]),
        greeting(11, again()),
        [warning, &greeting(2, [5; 32])].concat(),
        vec![0x17, 3, 3, 0, 0],
    ] {
        assert_eq!(ServerGreeting::of(&bytes), ServerGreeting::Other);
    }
}

#[test]
fn between_two_hellos_stand_whole_records() {
    let rows: [(&[u8], Result<NextRecord, HelloError>); 9] = [
        (&[], Ok(NextRecord::More)),
        (&[0x14, 3, 3, 0], Ok(NextRecord::More)),
        (&[0x14, 3, 3, 0, 1], Ok(NextRecord::More)),
        (&[0x14, 3, 3, 0, 1, 1, 0x16], Ok(NextRecord::Record(6))),
        (&[0x16, 3, 3, 0, 1], Ok(NextRecord::Hello)),
        (&[0x16, 9, 9, 0, 1], Ok(NextRecord::Hello)),
        (&[0x17, 3, 3, 0xff, 0xff], Err(HelloError::Unreadable)),
        (&[0x13, 3, 3, 0, 1, 1], Err(HelloError::Unreadable)),
        (b"GET / ", Err(HelloError::Unreadable)),
    ];
    for (bytes, expected) in rows {
        assert_eq!(NextRecord::of(bytes), expected, "{}", bytes.escape_ascii());
    }
}
