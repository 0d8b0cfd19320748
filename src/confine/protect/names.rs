//! Which names are protected, as data, and why each one is.
//!
//! A pattern is matched at any depth below a root. Its components are exact names; the first may begin
//! with `*`; `**` at the end stands for the directory and everything in it. Comparison is exact except
//! for `.git`, which is compared without regard to ASCII case, as git itself does when it guards the
//! name on file systems that fold it.
//!
//! Deliberately absent, because they are the project's own source, shown in its diffs and run only by a
//! person who starts a build or a hook runner: `package.json`, makefiles, `.pre-commit-config.yaml`,
//! `.editorconfig`, and texts that agents read as advice (`AGENTS.md`, `.github/copilot-instructions.md`).

/// A protected name and why the host trusts it.
pub(super) struct Name {
    /// The pattern.
    pub(super) pattern: &'static str,
    /// Who runs or obeys it.
    pub(super) reason: &'static str,
}

const fn name(pattern: &'static str, reason: &'static str) -> Name {
    Name { pattern, reason }
}

/// The default names. Git directories are not here: they are found by what they hold ([`super::place`]).
pub(super) const NAMES: &[Name] = &[
    // Shells: read when a person's next shell starts.
    name(".bashrc", "run by every interactive bash"),
    name(".bash_profile", "run by every login bash"),
    name(".bash_login", "run by every login bash"),
    name(".bash_logout", "run when a login bash ends"),
    name(".bash_aliases", "sourced by the stock .bashrc of Debian"),
    name(".profile", "run by every login shell"),
    name(".zshrc", "run by every interactive zsh"),
    name(".zshenv", "run by every zsh"),
    name(".zprofile", "run by every login zsh"),
    name(".zlogin", "run by every login zsh"),
    name(".zlogout", "run when a login zsh ends"),
    name(".kshrc", "run by every interactive ksh"),
    name(".mkshrc", "run by every interactive mksh"),
    name(".cshrc", "run by every csh"),
    name(".tcshrc", "run by every tcsh"),
    name(".login", "run by every login csh"),
    name(".logout", "run when a login csh ends"),
    name(".inputrc", "binds keys of every readline program to commands"),
    name(".config/fish/config.fish", "run by every fish"),
    name(".config/fish/conf.d/**", "run by every fish"),
    name(".config/fish/functions/**", "commands of every fish"),
    name(".envrc", "run by direnv on entering the directory"),
    // Programs that read settings from the directory they are started in.
    name(
        ".gitconfig",
        "git's settings of a user, and a common include of a repository",
    ),
    name(
        ".gitmodules",
        "where git fetches submodules from and how it updates them",
    ),
    name(
        ".npmrc",
        "names the shell and the git that npm runs, and where packages come from",
    ),
    name(".yarnrc", "names the program that yarn runs in its place"),
    name(".yarnrc.yml", "names the program and the plugins that yarn runs"),
    name(".cargo/config", "names the compiler, linker and runner that cargo runs"),
    name(
        ".cargo/config.toml",
        "names the compiler, linker and runner that cargo runs",
    ),
    name(".ripgreprc", "may name a preprocessor that ripgrep runs"),
    name(".gdbinit", "run by gdb"),
    name(".pdbrc", "run by python's debugger"),
    name(".ghci", "run by ghci"),
    name(".Rprofile", "run by every R session"),
    name(".irbrc", "run by irb"),
    name(".pryrc", "run by pry"),
    name(".ocamlinit", "run by ocaml"),
    name(
        "mise.toml",
        "sets the environment and runs hooks on entering the directory",
    ),
    name(
        ".mise.toml",
        "sets the environment and runs hooks on entering the directory",
    ),
    name(".hg/hgrc", "hooks and aliases of a Mercurial repository"),
    name(".jj/repo/config.toml", "aliases and programs of a Jujutsu repository"),
    name(".lldbinit", "run by lldb"),
    name(".tmux.conf", "run by tmux"),
    name(".screenrc", "run by screen"),
    name(".mailcap", "names the programs that open attachments"),
    name(
        ".husky/**",
        "the hooks of a repository whose core.hooksPath is set by husky",
    ),
    name(".githooks/**", "the usual core.hooksPath"),
    // Editors: tasks and settings that run programs when the folder is opened.
    name(".vscode/settings.json", "names programs that the editor runs"),
    name(".vscode/tasks.json", "tasks may run when the folder is opened"),
    name(".vscode/launch.json", "names programs that the debugger runs"),
    name(
        ".vscode/extensions.json",
        "extensions that the editor offers to install",
    ),
    name(
        ".vscode/c_cpp_properties.json",
        "names the compiler that the editor asks",
    ),
    name(".vscode/mcp.json", "servers that the editor starts"),
    name(".devcontainer/**", "a container that the editor builds and starts"),
    name(".devcontainer.json", "a container that the editor builds and starts"),
    name("*.code-workspace", "settings and tasks of an editor's workspace"),
    name(".idea/**", "run configurations and tool paths"),
    name(".fleet/**", "run configurations and settings"),
    name(".zed/**", "tasks and settings that name programs"),
    name(".helix/**", "names the language servers that the editor runs"),
    name(".vim/**", "run by vim"),
    name(".vimrc", "run by vim"),
    name(".gvimrc", "run by vim"),
    name(".nvimrc", "run by neovim with exrc"),
    name(".nvim.lua", "run by neovim with exrc"),
    name(".exrc", "run by vi with exrc"),
    name(".config/nvim/**", "run by neovim"),
    name(".emacs", "run by emacs"),
    name(".emacs.d/**", "run by emacs"),
    name(".dir-locals.el", "may evaluate code in emacs"),
    name(".dir-locals-2.el", "may evaluate code in emacs"),
    name(".sublime-project", "build systems of an editor's project"),
    name("*.sublime-project", "build systems of an editor's project"),
    // Agents: what decides what an agent may do, and what it starts.
    name(".claude/**", "hooks, permissions and commands of an agent"),
    name(".mcp.json", "servers that an agent starts"),
    name(".cursor/**", "servers, hooks and rules of an agent"),
    name(".codex/**", "settings and servers of an agent"),
    name(".gemini/**", "settings and servers of an agent"),
    name(".continue/**", "settings and servers of an agent"),
    name(".windsurf/**", "settings and servers of an agent"),
    name(".aider.conf.yml", "names the commands that an agent runs"),
    name(".kiro/**", "hooks, settings and servers of an agent"),
    name(".opencode/**", "settings, plugins and servers of an agent"),
    name(".roo/**", "settings and servers of an agent"),
    // This program: what decides how the next command is confined.
    name("stockade.yaml", "the config of this program"),
    name("stockade.yml", "the config of this program"),
    name(".stockade.yaml", "the config of this program"),
    name(".stockade.yml", "the config of this program"),
    name(".stockade/**", "the config of this program"),
];

/// Directories of what others made: tools write and remove them, with whatever is in them. Below such a one the names of
/// the table say nothing; git directories do, wherever they are.
pub(super) const PASSED_OVER: [&str; 4] = ["node_modules", "vendor", ".venv", "target"];

/// Whether names of the table say nothing below a directory called so.
pub(super) fn is_passed_over(name: &[u8]) -> bool {
    PASSED_OVER.iter().any(|one| one.as_bytes() == name)
}

/// Whether git may take the name for its own: `.git` in any ASCII case.
pub(super) fn is_dot_git(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_reason_and_stands_once() {
        for (i, entry) in NAMES.iter().enumerate() {
            assert!(entry.reason.len() > 8, "{}", entry.pattern);
            assert!(
                NAMES[i + 1..].iter().all(|other| other.pattern != entry.pattern),
                "{}",
                entry.pattern
            );
        }
    }
}
