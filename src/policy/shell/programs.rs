//! Commands that run others in ways that are not followed, or that change the meaning of later words. Data only.

/// Whether a program of this name runs others in a way that is not followed.
pub(super) fn is_opaque(name: &str) -> bool {
    // The dynamic loader (ld.so(8)) runs its argument. Its name differs between machines.
    listed(OPAQUE, name) || listed(OTHER_SHELLS, name) || name.starts_with("ld") && name.contains(".so")
}

/// Whether a shell has a command of this name itself, whatever lies in its PATH.
pub fn is_builtin(name: &str) -> bool {
    listed(BUILTINS, name) || listed(DOUBTFUL, name)
}

/// Whether the builtin changes the meaning of later words, or evaluates its arguments.
pub(super) fn is_doubtful(name: &str) -> bool {
    listed(DOUBTFUL, name)
}

/// Whether the program is a shell whose `-c` line is read as shell.
pub(super) fn is_shell(name: &str) -> bool {
    listed("sh bash dash ash", name)
}

/// Whether the program, which is not followed, takes a shell line after `-c`.
pub(super) fn takes_a_line(name: &str) -> bool {
    listed(OTHER_SHELLS, name) || listed("su runuser sg newgrp script flock", name)
}

/// Whether the program runs its operands, also a directory: `python app` runs `app/__main__.py`, `java -cp classes` the classes
/// there. Version numbers in its name are ignored.
pub(super) fn is_interpreter(name: &str) -> bool {
    interpreter(name).is_some()
}

/// Whether the program is a build tool: it runs what a file of the project says, or one that it fetched.
pub(super) fn is_build_tool(name: &str) -> bool {
    listed(BUILD_TOOLS, name)
}

/// Whether one of its options or commands has the program run another.
pub(super) fn runs_on_demand(name: &str) -> bool {
    listed(ON_DEMAND, name)
}

/// The interpreter of this name, if it is known.
pub(super) fn interpreter(name: &str) -> Option<&'static Interpreter> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    INTERPRETERS.iter().find(|known| listed(known.names, plain))
}

/// A kind of interpreter.
#[derive(Debug)]
pub(super) struct Interpreter {
    names: &'static str,
    /// The extensions of script names that it uses unchanged. It may complete another name (`node x`), or use it as a directory, a
    /// module or a class.
    extensions: &'static str,
    /// The options before a script that make it run nothing else.
    options: &'static str,
}

impl Interpreter {
    /// Whether the words begin with a script file, so that they name what runs.
    pub(super) fn is_given_a_script(&self, words: &[&str]) -> bool {
        let mut rest = words.iter().skip_while(|word| listed(self.options, word));
        let script = rest.next().filter(|word| !word.starts_with('-'));
        match script
            .and_then(|word| word.rsplit_once('.'))
            .map(|(_, extension)| extension)
        {
            // Without `-jar` the word is the name of a class.
            Some("jar") => listed(self.extensions, "jar") && words.first() == Some(&"-jar"),
            Some(extension) => listed(self.extensions, extension),
            None => matches!(words, ["--version" | "-V" | "-version" | "--help"]),
        }
    }
}

fn listed(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

/// By line: other users; other namespaces and labels; other personalities (util-linux names a link
/// after every machine); scheduling and limits; tracers; terminals; waiting and repeating; services;
/// far machines; users, time and locks; preloaders; pipes; git's own shell.
const OPAQUE: &str = "
    su runuser pkexec sg newgrp gosu su-exec setuidgid envuidgid chpst sudoedit run0 sudo-rs dzdo pfexec
    chroot unshare nsenter setpriv capsh bwrap firejail proot fakeroot fakeroot-sysv fakeroot-tcp fakechroot
    runcon aa-exec minijail0 nsjail systemd-nspawn machinectl switch_root pivot_root run-init schroot pseudo
    setarch uname26 linux32 linux64 i386 i486 i586 i686 x86_64 athlon aarch64 arm armh armv6l armv7l armv7h armv8l
    arm64 ppc ppc32 ppc64 ppc64le powerpc s390 s390x sparc sparc32 sparc32bash sparc64 mips mips32 mips64 alpha
    ia64 parisc parisc32 parisc64 hppa hppa64 riscv32 riscv64 loongarch64
    chrt taskset numactl prlimit choom uclampset coresched cgexec softlimit cpulimit schedtool trickle nocache
    enosys pipesz gtime gnice gnohup gtimeout gstdbuf genv gxargs gfind
    strace ltrace sotruss latrace gdb gdbserver rr valgrind perf catchsegv heaptrack hyperfine memusage uftrace bpftrace
    script scriptreplay scriptlive unbuffer expect tmux screen dtach abduco rlwrap rlfe openvt cttyhack
    xvfb-run xinit startx xterm x-terminal-emulator uxterm
    watch watchexec parallel sem env_parallel entr fd fdfind run-parts run-one flock setlock lckdo logsave
    start-stop-daemon daemon daemonize systemd-run systemd-cat systemd-inhibit systemd-socket-activate
    systemd-notify runsv runit supervise dumb-init tini catatonit dbus-run-session dbus-launch
    ssh-agent at batch crontab cron crond anacron inetd login sulogin getty agetty tcpsvd udpsvd
    ssh rsh rlogin mosh autossh sshpass socat ncat nc netcat
    envdir pgrphack timelimit dotlockfile inotifyd trace-cmd
    faketime eatmydata proxychains proxychains4 torsocks torify tsocks padsp apulse optirun primusrun
    chronic ifne mispipe pee zrun vipe xe rush
    nix-shell guix flatpak-spawn host-spawn distrobox toolbox
    git-shell
";

/// Programs that run another where an option or a command of their own says so: editors and pagers; stream editors; archivers; transfers;
/// databases and containers.
const ON_DEMAND: &str = "
    ed ex vi vim vim.basic vim.tiny vimdiff view nvim emacs emacsclient nano pico micro helix hx less more most man
    awk gawk mawk nawk original-awk goawk sed gsed m4 sort split rg
    tar bsdtar gtar star cpio zip
    rsync scp sftp lftp wget aria2c
    sqlite3 psql mysql mariadb docker podman kubectl
";

/// Programs that run what a file of the project says, or one that they fetched. By line: build tools; package managers; test runners;
/// containers and editors.
const BUILD_TOOLS: &str = "
    make gmake bmake ninja cmake ctest meson scons bazel bazelisk buck2 just task rake gradle gradlew mvn mvnw ant sbt mill lein go cargo dotnet msbuild
    npm npx yarn pnpm pnpx bunx pip pip3 pipx uv uvx poetry pdm hatch bundle gem composer mix rebar3 cabal stack opam dune nix brew apt apt-get
    pytest py.test tox nox jest vitest mocha phpunit rspec pre-commit lefthook
    docker podman kubectl terraform ansible ansible-playbook vim nvim emacs awk gawk mawk
";

/// Shells that are not read.
const OTHER_SHELLS: &str = "
    zsh zsh-static ksh ksh93 mksh mksh-static lksh oksh loksh pdksh fish csh tcsh bsd-csh rbash rzsh rksh posh yash
    nu pwsh hush lash msh sash osh ysh mrsh elvish xonsh rc es ion scsh bash-static busybox-static static-sh
";

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: "python pypy ipython jython micropython",
        extensions: "py pyw",
        options: "-B -u -s -E -I -O -OO",
    },
    Interpreter {
        names: "node nodejs tsx ts-node deno bun",
        extensions: "js mjs cjs ts mts cts jsx tsx",
        options: "",
    },
    Interpreter {
        names: "ruby jruby irb",
        extensions: "rb",
        options: "-w -W",
    },
    Interpreter {
        names: "perl",
        extensions: "pl t",
        options: "-w -W -T",
    },
    Interpreter {
        names: "php",
        extensions: "php",
        options: "-n -f",
    },
    Interpreter {
        names: "lua luajit",
        extensions: "lua",
        options: "",
    },
    Interpreter {
        names: "java javaw",
        extensions: "java jar",
        options: "-jar",
    },
    Interpreter {
        names: "groovy jshell scala kotlin clojure",
        extensions: "groovy jsh scala kts clj",
        options: "",
    },
    Interpreter {
        names: "Rscript julia",
        extensions: "R r jl",
        options: "",
    },
    Interpreter {
        names: "raku guile racket swipl",
        extensions: "raku scm rkt pl",
        options: "",
    },
    Interpreter {
        names: "tclsh wish elixir escript",
        extensions: "tcl exs escript",
        options: "",
    },
    Interpreter {
        names: "dotnet mono",
        extensions: "dll exe",
        options: "",
    },
    Interpreter {
        names: "npx bunx erl",
        extensions: "",
        options: "",
    },
];

/// Commands of sh(1) and bash(1), but for those that are doubtful.
const BUILTINS: &str = "
    : [ [[ bg break builtin caller cd command continue dirs disown echo exec exit false fg help jobs kill logout popd printf pushd
    pwd return set shift suspend test time times true type ulimit umask wait
";
const DOUBTFUL: &str = "
    eval source . trap alias unalias coproc let declare typeset local export readonly unset read mapfile readarray
    getopts enable hash shopt complete compgen compopt bind fc history
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_is_known_whatever_its_version() {
        for name in [
            "python",
            "python3",
            "python3.12",
            "perl5.36.0",
            "node",
            "ruby3.1",
            "lua5.4",
            "java",
        ] {
            assert!(is_interpreter(name), "{name}");
        }
        for name in ["pytest", "ls", "make", "pythonic", "7", ""] {
            assert!(!is_interpreter(name), "{name}");
        }
    }

    #[test]
    fn the_dynamic_loader_is_opaque_under_each_of_its_names() {
        for name in [
            "ld.so",
            "ld-linux-x86-64.so.2",
            "ld-musl-x86_64.so.1",
            "ld64.so.1",
            "ld-2.31.so",
        ] {
            assert!(is_opaque(name), "{name}");
        }
        for name in ["ld", "ldd", "ld.gold", "libx.so"] {
            assert!(!is_opaque(name), "{name}");
        }
    }
}
