//! Operations that are really tried, and what is told of them.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;

use crate::common::{Backend, Fixture, compiled_static};

/// `tests/helpers/operate.c`, compiled.
static OPERATE: LazyLock<Vec<u8>> = LazyLock::new(|| fs::read(compiled_static("operate")).unwrap());

/// What is told of one denial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) wanted: String,
    pub(crate) what: String,
    pub(crate) by: String,
    pub(crate) clause: String,
    pub(crate) origin: String,
}

/// Whether a tried operation comes off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comes {
    Off,
    ToNothing,
    Whichever,
}

/// One operation, and what is to be told of it.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    operation: Vec<u8>,
    comes: Comes,
    told: Vec<Told>,
}

/// A world with the program in it, and the rows to be tried there.
pub(crate) struct Trial<'w> {
    pub(crate) world: &'w Fixture,
    rows: Vec<Row>,
    /// What is said of a denial without a word about its clause.
    pub(crate) clause: &'static str,
    pub(crate) origin: String,
}

impl<'w> Trial<'w> {
    pub(crate) fn new(world: &'w Fixture) -> Self {
        let program = world.write(operate(world), &*OPERATE);
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            world,
            rows: Vec::new(),
            clause: "",
            origin: String::new(),
        }
    }

    /// The layer that keeps files apart here.
    pub(crate) fn wall(&self) -> &'static str {
        match self.world.backend {
            Backend::Landlock => "landlock",
            Backend::Namespaces | Backend::Bwrap => "mounts",
        }
    }

    pub(crate) fn is_in_namespaces(&self) -> bool {
        self.world.backend.is_in_namespaces()
    }

    /// What is told of a path, by the wall of the regime.
    pub(crate) fn told(&self, wanted: &str, path: impl AsRef<Path>) -> Told {
        Told {
            wanted: wanted.to_owned(),
            what: escaped(path.as_ref()),
            by: self.wall().to_owned(),
            clause: self.clause.to_owned(),
            origin: self.origin.clone(),
        }
    }

    fn add(&mut self, letter: char, a: impl AsRef<Path>, b: impl AsRef<Path>, comes: Comes, told: Vec<Told>) {
        let arguments = [a.as_ref(), b.as_ref()].map(|path| path.as_os_str().as_bytes().to_vec());
        let [a, b] = arguments;
        let operation = [&[letter as u8], a.as_slice(), b.as_slice()]
            .map(|part| [part, b"\0"].concat())
            .concat();
        self.rows.push(Row { operation, comes, told });
    }

    /// An operation that is denied, and all that is told of it.
    pub(crate) fn denied(&mut self, letter: char, a: impl AsRef<Path>, b: impl AsRef<Path>, told: &[Told]) {
        self.add(letter, a, b, Comes::ToNothing, told.to_vec());
    }

    /// One that is denied where nothing is told: it fails everywhere.
    pub(crate) fn fails(&mut self, letter: char, a: impl AsRef<Path>, b: impl AsRef<Path>) {
        self.add(letter, a, b, Comes::ToNothing, Vec::new());
    }

    /// A permitted twin, of which nothing is told.
    pub(crate) fn permitted(&mut self, letter: char, a: impl AsRef<Path>, b: impl AsRef<Path>) {
        self.add(letter, a, b, Comes::Off, Vec::new());
    }

    /// One that comes off or not, with what is told of it.
    pub(crate) fn either(&mut self, letter: char, a: impl AsRef<Path>, b: impl AsRef<Path>, told: &[Told]) {
        self.add(letter, a, b, Comes::Whichever, told.to_vec());
    }

    /// How many of the rows are denials.
    pub(crate) fn denials(&self) -> usize {
        self.rows.iter().filter(|row| !row.told.is_empty()).count()
    }

    /// Tries all rows in one run; the flags say under which policy. All that is told comes back as text.
    pub(crate) fn try_all(self, flags: &[&str]) -> String {
        let input: Vec<u8> = self.rows.iter().flat_map(|row| row.operation.clone()).collect();
        let args: Vec<OsString> = [OsString::from("--explain"), "--json".into()]
            .into_iter()
            .chain(flags.iter().map(OsString::from))
            .chain(["--".into(), operate(self.world).into_os_string()])
            .collect();
        let run = self.world.stockade(&["run"]).args(args).stdin(input).output();
        assert_eq!(run.code(), 0, "{} {}", run.out(), run.err());
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        let lines: Vec<&str> = outcome["stdout"].as_str().unwrap().lines().collect();
        assert_eq!(lines.len(), self.rows.len(), "{outcome:#}");
        let mut wrong = Vec::new();
        for (row, line) in self.rows.iter().zip(lines) {
            let came_off = line.starts_with("0 ");
            let as_expected = match row.comes {
                Comes::Off => came_off,
                Comes::ToNothing => !came_off,
                Comes::Whichever => true,
            };
            if !as_expected {
                wrong.push(format!("{} gave {line}", row.operation.escape_ascii()));
            }
        }
        let expected: Vec<&Told> = self.rows.iter().flat_map(|row| &row.told).collect();
        let told = blocked(&outcome);
        for (index, expected) in expected.iter().enumerate() {
            match told.get(index) {
                Some(told) if fits(told, expected) => {}
                other => {
                    wrong.push(format!("expected {expected:?}\n     got {other:?}"));
                    break;
                }
            }
        }
        wrong.extend(
            told.iter()
                .skip(expected.len())
                .map(|more| format!("told as well: {more:?}")),
        );
        assert!(wrong.is_empty(), "{}\n{:#}", wrong.join("\n"), outcome["explained"]);
        assert_eq!(outcome["explained"]["unseen"], 0);
        // What a filter refuses it refuses for a reason.
        let explained = outcome["explained"].to_string();
        assert!(!explained.contains("nothing speaks against it"), "{explained}");
        explained
    }
}

/// A clause and a line that are not spelled out need only be there.
fn fits(told: &Told, expected: &Told) -> bool {
    let said = |told: &str, expected: &str| match expected {
        "-" => told.is_empty(),
        _ => told.contains(expected),
    };
    told.wanted == expected.wanted
        && told.what == expected.what
        && told.by == expected.by
        && said(&told.clause, &expected.clause)
        && said(&told.origin, &expected.origin)
}

/// Where the program is, in its own root.
pub(crate) fn operate(world: &Fixture) -> PathBuf {
    world.workspace().join("tools/operate")
}

/// A path as outcomes show it.
pub(crate) fn escaped(path: &Path) -> String {
    stockade::policy::path::display(path.as_os_str())
}

/// A name of any bytes.
pub(crate) fn named(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// What an outcome tells.
pub(crate) fn blocked(outcome: &Value) -> Vec<Told> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = outcome["explained"]["blocked"].as_array();
    all.unwrap_or_else(|| panic!("nothing was explained: {outcome:#}"))
        .iter()
        .map(|blocked| Told {
            wanted: text(&blocked["wanted"]),
            what: text(&blocked["what"]),
            by: text(&blocked["by"]),
            clause: text(&blocked["clause"]),
            origin: text(&blocked["origin"]),
        })
        .collect()
}
