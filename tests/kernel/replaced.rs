//! A file of the system that is replaced while a session lasts, as `useradd` replaces `/etc/passwd`: what a preset reads is
//! looked at anew where root put it there, and what a person named stays the file that it was.
//!
//! Root replaces it, in a mount namespace of its own, and the session is that of either user.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::common::{Actor, Fixture, in_both_regimes};

    in_both_regimes! {
        what_a_preset_reads_is_looked_at_anew_when_root_replaced_it ["unshare", "mount", "setpriv"];
        what_is_not_roots_any_more_is_refused_with_what_helps ["unshare", "mount", "setpriv"];
        what_a_person_named_stays_the_file_that_it_was ["unshare", "mount", "setpriv"];
    }

    /// The program, the regime, the config, an empty directory for what is to be `/etc`, the user, the owner of what
    /// replaces the file, and a directory for streams.
    const SESSION: &str = r#"
set -e
cp -a /etc/. "$4"
mount --bind "$4" /etc
mkfifo "$7/calls"
setpriv --reuid "$5" --regid "$5" --clear-groups "$1" call -q --backend "$2" --config "$3" --stream < "$7/calls" > "$7/answers" 2> "$7/said" &
exec 3> "$7/calls"
echo nothing >&3
until [ -s "$7/answers" ]; do sleep 0.05; done
cp -a /etc/passwd /etc/passwd.new
echo 'newcomer:x:4242:4242::/:/bin/sh' >> /etc/passwd.new
chown "$6" /etc/passwd.new
mv /etc/passwd.new /etc/passwd
echo '{"call": {"tool": "shell", "args": {"command": "tail -n 1 /etc/passwd"}}}' >&3
exec 3>&-
wait || true
cat "$7/answers" "$7/said"
"#;

    /// What a session says of a call that reads the file once it was replaced by this owner's; only root can replace it.
    fn said(world: &Fixture, base: &str, owner: u32) -> Option<String> {
        if !Actor::Root.is_possible() {
            return None;
        }
        let text = format!(
            "extends: [system]\nsandbox: {{protect_fallback: undo, {base}paths: {{w: {{root: ./workspace, mode: ro}}}}}}\n\
             shell: {{default: {{allowed: true, approval: none}}}}\n"
        );
        let config = world.write(world.base().join("agent.yaml"), text);
        let [etc, streams] = ["etc", "streams"].map(|name| {
            let place = world.base().join(name);
            std::fs::create_dir(&place).unwrap();
            place
        });
        let uid = world.actor.uid().to_string();
        let words = [Path::new(uid.as_str()), Path::new(&owner.to_string())].map(Path::to_owned);
        #[expect(
            clippy::disallowed_methods,
            reason = "root replaces the file, whoever the session is of"
        )]
        let run = std::process::Command::new("/usr/bin/unshare")
            .args(["-m", "sh", "-c", SESSION, "sh"])
            .arg(world.binary())
            .arg(world.backend.name())
            .args([&config, &etc])
            .args(words)
            .arg(streams)
            .current_dir(world.workspace())
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", world.home())
            .env("XDG_RUNTIME_DIR", world.base().join("run"))
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        Some(String::from_utf8(run.stdout).unwrap())
    }

    fn what_a_preset_reads_is_looked_at_anew_when_root_replaced_it(world: &Fixture) {
        let Some(said) = said(world, "", 0) else { return };
        assert!(said.contains("newcomer") && !said.contains("was replaced"), "{said}");
    }

    #[track_caller]
    fn is_refused(said: Option<String>) {
        let Some(said) = said else { return };
        assert!(!said.contains("newcomer"), "{said}");
        assert!(
            said.contains("/etc/passwd was replaced since the config was read") && said.contains("a new session"),
            "{said}"
        );
    }

    fn what_is_not_roots_any_more_is_refused_with_what_helps(world: &Fixture) {
        is_refused(said(world, "", 4242));
    }

    fn what_a_person_named_stays_the_file_that_it_was(world: &Fixture) {
        is_refused(said(world, "base: {read: [/etc/passwd]}, ", 0));
    }
}
