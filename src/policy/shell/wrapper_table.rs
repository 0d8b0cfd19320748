//! Which programs run the rest of their words, and how those are read. Data only; [`super::wrapper`] reads it.

/// The options of a wrapper, and where its inner command begins.
#[derive(Debug)]
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Letters of options without a value.
    pub(super) flags: &'static str,
    /// Letters of options with a value, attached or in the next word.
    pub(super) values: &'static str,
    /// Long options without a value; with `=` after the name, one with a value; with `=?`, one whose
    /// value can only be attached.
    pub(super) long: &'static [&'static str],
    /// The number of operands before the inner command.
    pub(super) operands: usize,
    pub(super) kind: Kind,
}

/// The words around the inner command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// None: the inner command is the rest.
    Plain,
    /// Assignments may precede the inner command.
    Assigns,
    /// Further arguments, which are not visible, follow the inner command.
    Appends,
}

/// Programs and builtins that run the rest of their words.
pub(super) const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "env",
        flags: "i0v",
        values: "uC",
        long: &["--ignore-environment", "--null", "--debug", "--unset=", "--chdir="],
        operands: 0,
        kind: Kind::Assigns,
    },
    Wrapper {
        name: "nice",
        flags: "",
        values: "n",
        long: &["--adjustment="],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "nohup",
        flags: "",
        values: "",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "setsid",
        flags: "cfw",
        values: "",
        long: &["--ctty", "--fork", "--wait"],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "timeout",
        flags: "v",
        values: "ks",
        long: &[
            "--foreground",
            "--preserve-status",
            "--verbose",
            "--kill-after=",
            "--signal=",
        ],
        operands: 1,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "stdbuf",
        flags: "",
        values: "ioe",
        long: &["--input=", "--output=", "--error="],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "ionice",
        flags: "t",
        values: "cn",
        long: &["--class=", "--classdata=", "--ignore"],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "time",
        flags: "pv",
        values: "",
        long: &["--portability"],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "command",
        flags: "p",
        values: "",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "builtin",
        flags: "",
        values: "",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "exec",
        flags: "cl",
        values: "a",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "xargs",
        flags: "0rtpx",
        values: "InPLdaEs",
        long: &[
            "--null",
            "--no-run-if-empty",
            "--verbose",
            "--max-args=",
            "--max-procs=",
            "--max-lines=?",
            "--delimiter=",
            "--arg-file=",
            "--replace=?",
        ],
        operands: 0,
        kind: Kind::Appends,
    },
    Wrapper {
        name: "sudo",
        flags: "nEHbkPS",
        values: "ughpCTrtDRU",
        long: &["--non-interactive", "--preserve-env", "--user=", "--group="],
        operands: 0,
        kind: Kind::Assigns,
    },
    Wrapper {
        name: "doas",
        flags: "n",
        values: "u",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "busybox",
        flags: "",
        values: "",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
    Wrapper {
        name: "toybox",
        flags: "",
        values: "",
        long: &[],
        operands: 0,
        kind: Kind::Plain,
    },
];
