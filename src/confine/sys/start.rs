//! What a process was started with: its arguments and its environment.

use std::ffi::{CStr, c_char};
use std::ptr;

unsafe extern "C" {
    /// The strings of the environment, by address, and a null.
    static environ: *const *const c_char;
    /// The first argument.
    static program_invocation_name: *const c_char;
}

/// Forgets arguments and environment, and says `word` where a list of processes shows the former behind the program's name.
///
/// For a process that was forked from one which still needs both, and that has no other thread: whatever asks for
/// either afterwards is told nothing. See `proc_pid_cmdline(5)` and `proc_pid_environ(5)`.
pub(crate) fn forget_start(word: &str) {
    let count = std::env::args_os().len();
    // SAFETY: the C library sets it before `main`, and no other thread exists that could change it.
    let name = unsafe { program_invocation_name };
    // SAFETY: as above.
    let mut variables = unsafe { environ };
    if name.is_null() || count == 0 {
        return;
    }
    // The kernel lays out the strings of both one behind the other. What was added since does not lie there, and is nobody's secret.
    // SAFETY: it is the first of `count` strings.
    let room = unsafe { behind(name) };
    // SAFETY: as many are left.
    let arguments = (1..count).fold(room, |at, _| unsafe { behind(at) });
    let mut end = arguments;
    // SAFETY: the list ends with a null, which is nobody's address.
    while !variables.is_null() && unsafe { *variables } == end {
        // SAFETY: it is a string of the environment.
        end = unsafe { behind(end) };
        // SAFETY: an entry that is not null is followed by another.
        variables = unsafe { variables.add(1) };
    }
    let room = room.cast_mut();
    // SAFETY: the strings are the program's to write (`execve(2)`), from `room` to `end` there is nothing else, and nobody
    // refers to them: the list of variables is emptied below.
    unsafe { ptr::write_bytes(room, 0, distance(room, end)) };
    // SAFETY: no other thread reads the environment.
    unsafe { libc::clearenv() };
    // One byte less than the arguments have: a zero ends the last.
    if word.len() < distance(room, arguments) {
        // SAFETY: it fits in what was just written, and does not lie there.
        unsafe { ptr::copy_nonoverlapping(word.as_ptr().cast(), room, word.len()) };
    }
}

/// Where the next string lies.
///
/// # Safety
///
/// `string` is the start of one of those that this process was started with.
unsafe fn behind(string: *const c_char) -> *const c_char {
    // SAFETY: as promised; they last as long as the process.
    let length = unsafe { CStr::from_ptr(string) }.count_bytes();
    // SAFETY: behind the last one is the name of the file that was executed, in the same memory.
    unsafe { string.add(length + 1) }
}

/// The bytes between two places of that block.
fn distance(from: *const c_char, to: *const c_char) -> usize {
    to.addr() - from.addr()
}
