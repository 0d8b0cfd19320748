//! A person at a pseudo-terminal, played by a script.

use serde_json::Value;

use super::world::Fixture;

impl Fixture {
    /// Plays `steps` against `stockade ARGS`; fails when a step never came true or the terminal was not restored.
    /// Returns the exit code and all that the terminal showed.
    #[track_caller]
    pub(crate) fn play(&self, steps: &Value, args: &[&str]) -> (i64, String) {
        let (binary, args) = (self.binary().to_str().unwrap(), self.arguments(args));
        self.play_bare(steps, &[&[binary], args.as_slice()].concat())
    }

    /// Plays `steps` against any program.
    #[track_caller]
    pub(crate) fn play_bare(&self, steps: &Value, argv: &[&str]) -> (i64, String) {
        let driver = self.write(self.base().join("terminal.py"), include_str!("terminal.py"));
        let run = self
            .bare("/usr/bin/python3")
            .args([driver])
            .args([&steps.to_string(), "--"])
            // What is shown is then the same wherever the tests run.
            .env("LC_ALL", "C")
            .env("NO_COLOR", "1")
            .args(argv);
        let answer: Value = serde_json::from_str(&run.env("TERM", "xterm").output().ok()).unwrap();
        assert_eq!(answer["failed"], Value::Null, "{answer}");
        assert_eq!(answer["restored"], Value::Bool(true), "{answer}");
        (
            answer["code"].as_i64().unwrap(),
            answer["shown"].as_str().unwrap().to_owned(),
        )
    }
}
