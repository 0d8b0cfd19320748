//! The keywords of the raw mirror.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defines an enum of keywords.
macro_rules! keywords {
    ($($(#[$doc:meta])* $name:ident { $($(#[$keyword_doc:meta])* $keyword:ident),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum $name { $($(#[$keyword_doc])* $keyword),+ }
    )+};
}

keywords! {
    /// What a machine that cannot confine leads to.
    RawFallback {
        /// Refuse to start.
        FailFast,
        /// Start, and refuse every tool call with the reason.
        RefuseTools,
    }
    /// Which backend confines.
    RawBackend { Auto, Landlock, Namespaces, Bwrap, Seatbelt }
    /// What may be done below a root.
    RawMode {
        /// Read.
        Ro,
        /// Read and write.
        Rw,
    }
    /// Whether names the host will later trust or run are protected.
    RawProtectWord {
        /// What the host runs at once cannot be changed; the rest is restored after each command.
        Default,
        /// Nothing of it that exists can be changed.
        Prevent,
        /// They are not.
        None,
    }
    /// What to do about protected names where a write-deny cannot be held.
    RawProtectFallback {
        /// Refuse to start.
        Refuse,
        /// Restore them after each command.
        Undo,
    }
    /// What to do about a deny inside a root where it cannot be held.
    RawDenyFallback {
        /// Refuse to start.
        Refuse,
        /// Rule the siblings one by one.
        Decompose,
        /// In namespaces, cover what a pattern matches before each command. What a command makes is reported, and covered from
        /// the next one on.
        CoverExisting,
    }
    /// What to do about metadata the regime cannot hide.
    RawResiduals {
        /// Name it in the regime line.
        Report,
        /// Refuse to start.
        Refuse,
    }
    /// Reach over Unix sockets.
    RawUnixSockets { None, WithinRoots, All }
    /// Whether outcomes say what was denied to a command.
    RawExplain {
        /// They do not.
        Off,
        /// Where a command fails and speaks of a refusal, its outcome says how to find out.
        OnFailure,
        /// They do; each call with a path in it is slower.
        Always,
    }
    /// Which HOME a command gets.
    RawHome {
        /// An empty folder of the session's own.
        Private,
        /// The user's own.
        Real,
    }
    /// How questions are answered.
    RawApprovalMode {
        /// A person is asked.
        Interactive,
        /// Everything that is not blocked is approved.
        ApproveAll,
        /// Nobody is asked: what needs approval is denied.
        Strict,
    }
    /// Where somebody is asked.
    RawChannel {
        /// The person at the terminal. Over standard input and output a server asks there only if it is named.
        Terminal,
        /// Whoever comes to the socket that a flag names.
        Socket,
        /// The program that a flag names.
        Program,
        /// The client, by a form.
        Elicitation,
    }
    /// The type of a custom tool's argument.
    RawArgKind { Path, String, Integer, Boolean, Choice }
}
