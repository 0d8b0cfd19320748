//! What the kernel permits a confined command, in every regime, as root and as an ordinary user; each denial beside a twin that succeeds.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
#[path = "../common/mod.rs"]
mod common;

#[cfg(test)]
mod answered_in_advance;
#[cfg(test)]
mod appeared;
#[cfg(test)]
mod attributes;
#[cfg(test)]
mod broker;
#[cfg(test)]
mod bwrap;
#[cfg(test)]
mod command_io;
#[cfg(test)]
mod confinement;
#[cfg(test)]
mod container;
#[cfg(test)]
mod control_groups;
#[cfg(test)]
mod covered;
#[cfg(test)]
mod denied_names;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod extended_files;
#[cfg(test)]
mod file_tools;
#[cfg(test)]
mod first_configs;
#[cfg(test)]
mod fork_bomb;
#[cfg(test)]
mod git;
#[cfg(test)]
mod hook_links;
mod hook_targets;
#[cfg(test)]
mod host;
#[cfg(test)]
#[cfg(test)]
mod limits;
#[cfg(test)]
mod missing_programs;
#[cfg(test)]
mod namespaces;
#[cfg(test)]
mod nested_roots;
#[cfg(test)]
mod new_work_trees;
#[cfg(test)]
mod older_landlock;
#[cfg(test)]
mod other_users;
#[cfg(test)]
mod own_mounts;
#[cfg(test)]
mod own_program;
#[cfg(test)]
mod preset_flags;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod protected;
#[cfg(test)]
mod protected_names;
#[cfg(test)]
mod real_tools;
#[cfg(test)]
mod remembered;
#[cfg(test)]
mod replaced;
#[cfg(test)]
mod same_answers;
#[cfg(test)]
mod same_sandbox;
#[cfg(test)]
mod scale;
#[cfg(test)]
mod seccomp;
#[cfg(test)]
mod shut;
#[cfg(test)]
mod start_directory;
#[cfg(test)]
mod stopped;
#[cfg(test)]
mod toolchains;
#[cfg(test)]
mod tracked;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod wide_roots;
#[cfg(test)]
mod without_landlock;
#[cfg(test)]
mod work_trees;
