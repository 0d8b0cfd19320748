//! Real clients, as a user would use them: what a list of hosts names works, and what it does not fails with its name.
//!
//! Each client goes three times: with nothing confined, which proves the servers; with its hosts listed; and with
//! another host listed, where it must fail, say so, and reach nobody.

use std::fs;

use crate::common::{Invocation, Run};
use crate::lab::{Lab, OTHER, WWW, WWW6, in_the_lab};

in_the_lab! {
    curl_over_http ["curl"];
    curl_over_https ["curl"];
    curl_over_six ["curl"];
    curl_over_socks ["curl"];
    curl_to_an_address_that_is_listed_by_number ["curl"];
    curl_follows_a_redirect_to_a_listed_host_only ["curl"];
    curl_sends_and_gets_much ["curl"];
    a_server_that_speaks_first ["python3"];
    python_over_http_and_https ["python3"];
    git_clones_and_pushes ["git"];
    pip_installs ["python3"];
    npm_installs ["npm", "node"];
    node_fetches ["node"];
}

/// A client's line, where it leads, and what it prints when it got there.
struct Client<'a> {
    line: &'a str,
    allow: &'a [&'a str],
    says: &'a str,
    /// The place that is named when it is refused.
    refused: &'a str,
}

impl Client<'_> {
    /// All three times; gives how it failed.
    #[track_caller]
    fn works_where_it_is_listed(&self, lab: &Lab) -> Run {
        let bare = lab.bare(self.line).ok();
        assert!(bare.contains(self.says), "unconfined: {bare}");
        let run = lab.run(self.allow, self.line);
        let (out, err) = (run.out(), run.err());
        assert!(run.status.success() && out.contains(self.says), "{out}\n{err}");
        self.fails_where_it_is_not(lab)
    }

    #[track_caller]
    fn fails_where_it_is_not(&self, lab: &Lab) -> Run {
        lab.forget();
        let run = lab.run(&["elsewhere.example.org:80,443"], self.line);
        let (out, err) = (run.out(), run.err());
        assert!(
            !run.status.success() && run.code() != 125,
            "{}: {out}\n{err}",
            run.code()
        );
        assert!(err.contains(self.refused), "{} is not named: {err}", self.refused);
        assert!(!out.contains(self.says), "{out}");
        lab.seen().nothing();
        run
    }
}

fn curl_over_http(lab: &Lab) {
    let client = Client {
        line: "curl -sSf http://www.example.org/",
        allow: &["www.example.org:80"],
        says: "as www.example.org\n",
        refused: "www.example.org:80",
    };
    let run = client.works_where_it_is_listed(lab);
    assert!(run.err().contains("403"), "{}", run.err());
    // Whoever reads the answer is told why.
    let told = lab
        .run(&["elsewhere.example.org"], "curl -sS http://www.example.org/")
        .out();
    assert!(
        told.contains("www.example.org:80") && told.contains("list of hosts"),
        "{told}"
    );
}

fn curl_over_https(lab: &Lab) {
    let client = Client {
        line: "curl -sS https://www.example.org/",
        allow: &["www.example.org"],
        says: "as www.example.org\n",
        refused: "www.example.org:443",
    };
    let run = client.works_where_it_is_listed(lab);
    assert!(run.err().contains("response 403"), "{}", run.err());
}

fn curl_over_six(lab: &Lab) {
    Client {
        line: "curl -sS https://six.example.org/",
        allow: &["*.example.org"],
        says: &format!("reached [{WWW6}]:443"),
        refused: "six.example.org:443",
    }
    .works_where_it_is_listed_but(lab, &["*.example.net"]);
}

impl Client<'_> {
    /// Both confined times, with a list of its own for the second.
    #[track_caller]
    fn works_where_it_is_listed_but(&self, lab: &Lab, not: &[&str]) {
        let bare = lab.bare(self.line).ok();
        assert!(bare.contains(self.says), "unconfined: {bare}");
        let out = lab.run(self.allow, self.line).ok();
        assert!(out.contains(self.says), "{out}");
        lab.forget();
        let run = lab.run(not, self.line);
        assert!(
            !run.status.success() && run.err().contains(self.refused),
            "{}",
            run.err()
        );
        lab.seen().nothing();
    }
}

fn curl_over_socks(lab: &Lab) {
    let line = "curl -sS --noproxy '' --proxy \"socks5h://${http_proxy#*://}\" https://www.example.org/";
    lab.forget();
    let out = lab.run(&["www.example.org"], line).ok();
    assert!(out.contains("as www.example.org"), "{out}");
    assert_eq!(lab.seen().requests().len(), 1);
    lab.forget();
    let run = lab.run(&["elsewhere.example.org"], line);
    assert!(
        !run.status.success() && run.err().contains("www.example.org:443"),
        "{}",
        run.err()
    );
    lab.seen().nothing();
}

fn curl_to_an_address_that_is_listed_by_number(lab: &Lab) {
    let client = Client {
        line: &format!("curl -sSf https://{WWW}/ http://{WWW}/"),
        allow: &["93.184.216.0/24"],
        says: &format!("reached {WWW}:80"),
        refused: &format!("{WWW}:443"),
    };
    client.works_where_it_is_listed(lab);
    // A private one, by number alone.
    let line = "curl -sS http://10.0.0.80:8080/";
    let out = lab.run(&["10.0.0.0/8:8080"], line).ok();
    assert!(out.contains("reached 10.0.0.80:8080"), "{out}");
}

fn curl_follows_a_redirect_to_a_listed_host_only(lab: &Lab) {
    let line = "curl -sSfL http://www.example.org/redirect?https://evil.example.net/";
    let out = lab.run(&["www.example.org", "evil.example.net"], line).ok();
    assert!(
        out.contains(&format!("reached {OTHER}:443")) || out.contains("as evil.example.net"),
        "{out}"
    );
    lab.forget();
    let run = lab.run(&["www.example.org"], line);
    assert!(
        !run.status.success() && run.err().contains("evil.example.net:443"),
        "{}",
        run.err()
    );
    let seen = lab.seen();
    assert!(!seen.names().contains("evil.example.net"), "{seen:?}");
    assert_eq!(seen.requests().len(), 1, "{seen:?}");
}

fn curl_sends_and_gets_much(lab: &Lab) {
    let line = "head -c 20000000 /dev/urandom > much && \
                curl -sS --data-binary @much https://www.example.org/echo | cmp - much && \
                curl -sS --data-binary @much -H 'Transfer-Encoding: chunked' http://www.example.org/echo | cmp - much && \
                curl -sS https://www.example.org/bytes/50000000 | wc -c && \
                curl -sS http://www.example.org/bytes/50000000 | wc -c";
    assert_eq!(lab.run(&["www.example.org"], line).ok(), "50000000\n50000000\n");
}

fn a_server_that_speaks_first(lab: &Lab) {
    let program = "
import os, socket, urllib.parse
way = urllib.parse.urlsplit(os.environ['http_proxy'])
tunnel = socket.create_connection((way.hostname, way.port))
tunnel.sendall(b'CONNECT www.example.org:22 HTTP/1.1\\r\\nHost: www.example.org:22\\r\\n\\r\\n')
said = b''
while b'SSH' not in said and (part := tunnel.recv(4096)): said += part
print(said.split(b'\\r\\n')[0].decode(), said.split(b'\\r\\n')[-2].decode())
tunnel.sendall(b'SSH-2.0-client\\r\\n')
tunnel.shutdown(socket.SHUT_WR)
print(tunnel.recv(100), tunnel.recv(100))
";
    lab.world.write("first.py", program);
    let run = lab.run(&["www.example.org:22"], "/usr/bin/python3 first.py");
    let (out, err) = (run.out(), run.err());
    assert!(
        out.contains("200") && out.contains("SSH-2.0-lab reached"),
        "{out} {err}"
    );
    assert!(out.ends_with("b'SSH-2.0-client\\r\\n' b''\n"), "{out} {err}");
}

fn python_over_http_and_https(lab: &Lab) {
    for scheme in ["http", "https"] {
        let port = if scheme == "http" { 80 } else { 443 };
        let line = format!(
            "/usr/bin/python3 -c \"import urllib.request as r; print(r.urlopen('{scheme}://www.example.org/').read().decode())\""
        );
        let client = Client {
            line: &line,
            allow: &["www.example.org"],
            says: "as www.example.org",
            refused: &format!("www.example.org:{port}"),
        };
        let run = client.works_where_it_is_listed(lab);
        assert!(run.err().contains("403"), "{}", run.err());
    }
}

fn git_clones_and_pushes(lab: &Lab) {
    lab.make_packages();
    for scheme in ["https", "http"] {
        let line = format!(
            "to=$(mktemp -d copy.XXXXXX); git clone -q {scheme}://code.example.org/git/lab.git $to && cat $to/README"
        );
        let port = if scheme == "http" { 80 } else { 443 };
        let clone = Client {
            line: &line,
            allow: &["code.example.org"],
            says: "hello from git",
            refused: &format!("code.example.org:{port}"),
        };
        let run = clone.works_where_it_is_listed(lab);
        assert!(run.err().contains("403"), "{}", run.err());

        // As the one who cloned it: what another one did is another one's.
        let push = format!(
            "{line} && echo $to > last; cd $to && git checkout -q -b of-{scheme} && head -c 3000000 /dev/urandom > big && git add big && \
             git -c user.name=A -c user.email=a@example.org commit -q -m Big && git push -q origin of-{scheme}"
        );
        lab.run(&["code.example.org"], &push).ok();
        assert!(lab.branches().contains(&format!("of-{scheme}")), "{}", lab.branches());
    }
    let push = "cd $(cat last) && git push -q origin HEAD:refs/heads/unlisted";
    let run = lab.run(&["elsewhere.example.org"], push);
    assert!(
        !run.status.success() && run.err().contains("code.example.org:80"),
        "{}",
        run.err()
    );
    assert!(!lab.branches().contains("unlisted"), "{}", lab.branches());
}

fn pip_installs(lab: &Lab) {
    lab.make_packages();
    // pip as the system brings it, without a virtual environment of its own.
    let pip = "rm -rf site; /usr/bin/python3 $(ls /usr/share/python-wheels/pip-*.whl /usr/lib/python3*/ensurepip/_bundled/pip-*.whl 2>/dev/null | head -1)/pip \
               --disable-pip-version-check --no-cache-dir --isolated --retries 1 --cert ca.pem install --target site \
               --index-url https://pypi.example.org/simple/ labpack && PYTHONPATH=site /usr/bin/python3 -c 'import labpack; print(labpack.SAYS)'";
    let client = Client {
        line: pip,
        allow: &["pypi.example.org:443", "files.example.org:443"],
        says: "hello from pip",
        refused: "pypi.example.org:443",
    };
    let run = client.works_where_it_is_listed(lab);
    let said = run.out() + &run.err();
    assert!(said.contains("403"), "{said}");
    // The index alone is not the files.
    let run = lab.run(&["pypi.example.org"], pip);
    assert!(
        !run.status.success() && run.err().contains("files.example.org:443"),
        "{}",
        run.err()
    );
}

fn npm_installs(lab: &Lab) {
    lab.make_packages();
    let client = Client {
        line: "rm -rf node_modules package.json package-lock.json; \
               npm install --cafile ca.pem --no-audit --no-fund --no-update-notifier --fetch-retries 0 \
               --registry https://registry.example.org/ labpack && node -p 'require(\"labpack\")'",
        allow: &["registry.example.org"],
        says: "hello from npm",
        refused: "registry.example.org:443",
    };
    client.works_where_it_is_listed(lab);
}

fn node_fetches(lab: &Lab) {
    let line = "node -e 'fetch(\"https://www.example.org/\").then(r => r.text()).then(console.log)'";
    let version = lab.bare("node --version").ok();
    let mut numbers = version
        .trim_start_matches('v')
        .split('.')
        .map(|part| part.trim().parse::<u32>().unwrap());
    let version = (numbers.next().unwrap(), numbers.next().unwrap());
    if version >= (24, 5) || (version.0 == 22 && version.1 >= 21) {
        Client {
            line,
            allow: &["www.example.org"],
            says: "as www.example.org",
            refused: "www.example.org:443",
        }
        .works_where_it_is_listed(lab);
    } else {
        // It knows no proxy, and there is no other way.
        lab.forget();
        let run = lab.run(&["www.example.org"], line);
        assert!(
            !run.status.success() && run.err().contains("fetch failed"),
            "{}",
            run.err()
        );
        lab.seen().nothing();
    }
}

#[test]
fn cargo_fetches_and_builds() {
    let Some(lab) = crate::lab::lab_with(crate::common::Actor::Root, &["cargo"]) else {
        return;
    };
    lab.make_packages();
    let world = &lab.world;
    world.write(
        "app/Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nlabpack = { version = \"1\", registry = \"lab\" }\n",
    );
    world.write("app/src/main.rs", "fn main() { println!(\"{}\", labpack::SAYS); }\n");
    world.write(
        "app/.cargo/config.toml",
        "[registries.lab]\nindex = \"sparse+https://index.example.org/\"\n\n[net]\nretry = 0\n",
    );
    // Its own CARGO_HOME is what was not fetched yet.
    let client = Client {
        line: "cd app && rm -rf ../fresh target && CARGO_HOME=$PWD/../fresh cargo fetch -q && CARGO_HOME=$PWD/../fresh cargo run -q",
        allow: &["index.example.org", "crates.example.org"],
        says: "hello from cargo",
        refused: "index.example.org:443",
    };
    let run = client.works_where_it_is_listed(&lab);
    assert!(run.err().contains("403"), "{}", run.err());
    // Where the hosts are looked at once more, the crate's file has one of its own.
    let run = lab.run(&["index.example.org"], client.line);
    assert!(
        !run.status.success() && run.err().contains("crates.example.org:443"),
        "{}",
        run.err()
    );
}

impl Lab {
    /// Fills the registries and the repository.
    fn make_packages(&self) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/network/packages.py");
        Invocation::new("/usr/bin/python3".as_ref(), None, self.world.base())
            .env("PATH", crate::common::Actor::Root.path())
            .env("HOME", self.folder())
            .args([script.as_ref(), self.folder().as_os_str()])
            .output()
            .ok();
    }

    /// The branches of the repository that is served.
    fn branches(&self) -> String {
        let heads = self.folder().join("git/lab.git/refs/heads");
        let names = fs::read_dir(heads).unwrap().map(|entry| entry.unwrap().file_name());
        let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.join(" ")
    }
}
