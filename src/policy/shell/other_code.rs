//! Programs that run what their files or arguments say: a rule that names one answers for all of that.

use super::matching::base_name;
use super::programs::{is_build_tool, is_interpreter, is_opaque, is_shell};
use super::wrapper::is_wrapper;

/// Whether the program of a pattern is a shell, an interpreter, a build tool, or one that starts others.
pub fn runs_other_code(pattern: &[String]) -> bool {
    pattern.first().is_some_and(|program| {
        let name = base_name(program);
        is_shell(name) || is_opaque(name) || is_interpreter(name) || is_wrapper(name) || is_build_tool(name)
    })
}
