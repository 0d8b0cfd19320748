//! What a process was started with: its arguments and its environment.

use std::fs;
use std::io;
use std::ops::Range;
use std::{ptr, slice};

/// Where the kernel says that each begins and ends: the fields from `arg_start` on, of which the first behind the name is the third.
const FIELDS: Range<usize> = 48 - 3..52 - 3;

/// Wipes the memory in which the kernel laid out arguments and environment, and has a list of processes show `title` and nothing
/// of the former, nor how long they were.
///
/// For a process that was forked from one which still needs both, and that has no other thread. Whoever asks for the environment
/// afterwards is told of none, and whoever asks for the arguments of what is left there. See `proc_pid_stat(5)`.
pub(crate) fn forget_start(title: &str) -> io::Result<()> {
    let [arguments, environment] = laid_out(&fs::read("/proc/self/stat")?).ok_or(io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel says that the environment lies there, and the program may change it (`execve(2)`). Who has addresses in
    // there, the C library, forgets them below before anybody asks it.
    unsafe { ptr::write_bytes(at(environment.start), 0, environment.len()) };
    // SAFETY: no other thread reads the environment.
    unsafe { libc::clearenv() };
    let end = if environment.start == arguments.end {
        environment.end
    } else {
        arguments.end
    };
    // SAFETY: as above; the two are one block, or it ends with the arguments. std and the C library have addresses in there, and read from
    // each of them to the next zero, which is in there or the end of the name of the file that was executed.
    let block = unsafe { slice::from_raw_parts_mut(at(arguments.start), end - arguments.start) };
    say(block, arguments.len(), title.as_bytes());
    Ok(())
}

/// Leaves nothing of a block that begins with arguments of this length but a title, where it has room for one.
fn say(block: &mut [u8], arguments: usize, title: &[u8]) {
    block.fill(0);
    if title.len() >= block.len() {
        return;
    }
    block.iter_mut().zip(title).for_each(|(place, byte)| *place = *byte);
    // Where the last byte of the arguments is no zero, the kernel shows what lies there up to the first, as `setproctitle` wants it.
    if let Some(last) = arguments.checked_sub(1).filter(|last| *last > title.len())
        && let Some(last) = block.get_mut(last)
    {
        *last = b'.';
    }
}

/// Where arguments and environment lie, as the kernel tells; nothing where it does not.
fn laid_out(stat: &[u8]) -> Option<[Range<usize>; 2]> {
    // A name may hold anything, and ends at the last parenthesis.
    let name = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name + 1..)?).ok()?;
    let places: Vec<usize> = fields
        .split_whitespace()
        .skip(FIELDS.start)
        .take(FIELDS.len())
        .map_while(|field| field.parse().ok())
        .collect();
    let [arguments, end, environment, last] = *places.as_slice() else {
        return None;
    };
    let is_told = arguments != 0 && arguments < end && environment != 0 && environment <= last;
    is_told.then_some([arguments..end, environment..last])
}

/// What lies at an address that the kernel tells.
fn at(address: usize) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_all_that_is_left_where_it_has_room() {
        for (arguments, behind, after) in [
            ("st\0run\0-- true\0", "A=b\0", "title\0\0\0\0\0\0\0\0\0.\0\0\0\0"),
            ("st\0run\0", "A=b\0", "title\0.\0\0\0\0"),
            ("st\0ru\0", "A=b\0", "title\0\0\0\0\0"),
            ("st\0r\0", "A=b\0", "title\0\0\0\0"),
            ("s\0r\0", "", "\0\0\0\0"),
        ] {
            let mut bytes = format!("{arguments}{behind}").into_bytes();
            say(&mut bytes, arguments.len(), b"title");
            assert_eq!(String::from_utf8(bytes).unwrap(), after, "{arguments:?}");
        }
    }

    #[test]
    fn the_kernel_tells_where_both_lie() {
        let [arguments, environment] = laid_out(&fs::read("/proc/self/stat").unwrap()).unwrap();
        assert!(arguments.end <= environment.start && environment.len() > 1);
        for (name, range) in [("cmdline", arguments), ("environ", environment)] {
            assert_eq!(
                fs::read(format!("/proc/self/{name}")).unwrap().len(),
                range.len(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_moves_no_field() {
        let numbers: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let stat = format!("7 (a) b ) (c)) R {}\n", numbers.join(" "));
        assert_eq!(laid_out(stat.as_bytes()), Some([48..49, 50..51]));
        for hidden in [
            stat.replace(" 48 49 ", " 0 0 "),
            stat.replace(" 51 ", " x "),
            String::new(),
        ] {
            assert_eq!(laid_out(hidden.as_bytes()), None, "{hidden}");
        }
    }
}
