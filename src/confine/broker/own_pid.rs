//! Calls that change how a process runs: which pid they name.
//!
//! Schedulers, thread pools and runtimes name themselves (`sched_setscheduler(gettid(), …)`); 0 means the same and passes the filter.
//! Such a call continues in the kernel: the pid is in a register, which cannot change while the call waits.

use libc as l;

/// The pid or thread id that a call names; `None` if it is another call.
pub(super) fn named_pid(data: &l::seccomp_data) -> Option<i32> {
    let index = match i64::from(data.nr) {
        l::SYS_sched_setaffinity
        | l::SYS_sched_setscheduler
        | l::SYS_sched_setparam
        | l::SYS_sched_setattr
        | l::SYS_prlimit64 => 0,
        // The first says that it is a process; the filter refuses the others.
        l::SYS_setpriority | l::SYS_ioprio_set => 1,
        _ => return None,
    };
    #[expect(clippy::cast_possible_truncation, reason = "the kernel takes the low half, too")]
    let number = data.args[index] as u32;
    Some(number.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(nr: i64, args: [u64; 2]) -> Option<i32> {
        named_pid(&l::seccomp_data {
            nr: i32::try_from(nr).unwrap(),
            arch: 0,
            instruction_pointer: 0,
            args: [args[0], args[1], 0, 0, 0, 0],
        })
    }

    #[test]
    fn the_number_is_the_low_half_of_its_argument() {
        assert_eq!(call(l::SYS_sched_setscheduler, [7 | 1 << 32, 9]), Some(7));
        assert_eq!(call(l::SYS_prlimit64, [u64::MAX, 9]), Some(-1));
        assert_eq!(call(l::SYS_setpriority, [0, 9]), Some(9));
        assert_eq!(call(l::SYS_ioprio_set, [1, 9]), Some(9));
        assert_eq!(call(l::SYS_fchmod, [7, 9]), None);
    }
}
