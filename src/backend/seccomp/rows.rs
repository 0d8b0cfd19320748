//! The rows that answer a call whatever its arguments.

use libc as l;

use super::number as n;
use super::row::{Action, Condition, Errno, Row};

const EPERM: Action = Action::Error(Errno::Perm);
const ENOSYS: Action = Action::Error(Errno::NoSys);

/// The rows of every architecture.
pub(super) const ROWS: &[Row] = &[
    // Not EPERM: rustup, node and Python take that for a failure; on ENOSYS the C library uses clone, whose flags can be seen.
    Row::both(
        "its flags, new namespaces among them, lie in memory where no filter sees them",
        &[l::SYS_clone3],
        ENOSYS,
    ),
    Row::both(
        "what is submitted on a ring passes no filter",
        &[l::SYS_io_uring_setup, l::SYS_io_uring_enter, l::SYS_io_uring_register],
        ENOSYS,
    ),
    Row::both(
        "reaches into another process",
        &[
            l::SYS_ptrace,
            l::SYS_process_vm_writev,
            l::SYS_kcmp,
            l::SYS_process_madvise,
            l::SYS_process_mrelease,
        ],
        EPERM,
    ),
    // The broker reads the arguments of a held call, and takes the descriptor it names.
    Row::command(
        "reads another process",
        &[l::SYS_process_vm_readv, l::SYS_pidfd_getfd],
        EPERM,
    ),
    Row::both(
        "changes or lists mounts, or the root",
        &[
            l::SYS_mount,
            l::SYS_umount2,
            l::SYS_pivot_root,
            l::SYS_chroot,
            l::SYS_move_mount,
            l::SYS_open_tree,
            n::OPEN_TREE_ATTR,
            l::SYS_fsopen,
            l::SYS_fsconfig,
            l::SYS_fsmount,
            l::SYS_fspick,
            l::SYS_mount_setattr,
            n::LISTMOUNT,
        ],
        EPERM,
    ),
    // The forker asks where those are that hold the profile.
    Row::command("tells of a mount", &[n::STATMOUNT], EPERM),
    Row::both("enters another namespace", &[l::SYS_setns], EPERM),
    Row::both(
        "reaches a file without walking to it",
        &[l::SYS_open_by_handle_at, l::SYS_name_to_handle_at],
        EPERM,
    ),
    Row::both(
        "loads code into the kernel or looks into it",
        &[
            l::SYS_bpf,
            l::SYS_perf_event_open,
            l::SYS_kexec_load,
            l::SYS_kexec_file_load,
            l::SYS_init_module,
            l::SYS_finit_module,
            l::SYS_delete_module,
            l::SYS_lookup_dcookie,
            l::SYS_nfsservctl,
        ],
        EPERM,
    ),
    Row::both(
        "stalls the kernel in the middle of a copy",
        &[l::SYS_userfaultfd],
        ENOSYS,
    ),
    Row::both(
        "concerns the whole machine",
        &[
            l::SYS_acct,
            l::SYS_swapon,
            l::SYS_swapoff,
            l::SYS_reboot,
            l::SYS_quotactl,
            l::SYS_quotactl_fd,
            l::SYS_settimeofday,
            l::SYS_clock_settime,
            l::SYS_adjtimex,
            l::SYS_clock_adjtime,
            l::SYS_syslog,
            l::SYS_vhangup,
            l::SYS_sethostname,
            l::SYS_setdomainname,
        ],
        EPERM,
    ),
    Row::both(
        "keyrings are shared by the whole uid",
        &[l::SYS_add_key, l::SYS_request_key, l::SYS_keyctl],
        ENOSYS,
    ),
    Row::both(
        "System V objects are shared by the whole uid",
        &[
            l::SYS_shmget,
            l::SYS_shmat,
            l::SYS_shmdt,
            l::SYS_shmctl,
            l::SYS_msgget,
            l::SYS_msgsnd,
            l::SYS_msgrcv,
            l::SYS_msgctl,
            l::SYS_semget,
            l::SYS_semop,
            l::SYS_semtimedop,
            l::SYS_semctl,
        ],
        ENOSYS,
    ),
    Row::both(
        "message queues are shared by the whole machine",
        &[l::SYS_mq_open, l::SYS_mq_unlink],
        ENOSYS,
    ),
    Row::both(
        "watches whole file systems",
        &[l::SYS_fanotify_init, l::SYS_fanotify_mark],
        EPERM,
    ),
    Row::both(
        "old kernel surface that nothing needs",
        &[l::SYS_remap_file_pages],
        ENOSYS,
    ),
    // C libraries and runtimes fall back to openat, whose flags and mode can be seen.
    Row::command(
        "its mode, the set-uid bits among it, lies in memory",
        &[l::SYS_openat2],
        ENOSYS,
    ),
    // For the forker too: the broker performs what the classic calls ask.
    Row::both(
        "sets attributes that the broker does not know",
        &[n::FILE_SETATTR],
        ENOSYS,
    ),
];

/// The rows of calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
pub(super) const LEGACY: &[Row] = &[
    Row::both(
        "gives a process the machine's ports",
        &[l::SYS_iopl, l::SYS_ioperm],
        EPERM,
    ),
    Row::both(
        "old kernel surface that nothing needs",
        &[
            l::SYS_modify_ldt,
            l::SYS_uselib,
            l::SYS__sysctl,
            l::SYS_ustat,
            l::SYS_sysfs,
            n::CREATE_MODULE,
            n::GET_KERNEL_SYMS,
            n::QUERY_MODULE,
            l::SYS_getpmsg,
            l::SYS_putpmsg,
            l::SYS_afs_syscall,
            l::SYS_tuxcall,
            l::SYS_security,
            l::SYS_vserver,
        ],
        ENOSYS,
    ),
];
/// The rows of calls that only this architecture has: none.
#[cfg(target_arch = "aarch64")]
pub(super) const LEGACY: &[Row] = &[];

/// Every row stands under every setting; the ones that do not are in [`super::conditions`].
const _: () = {
    let mut index = 0;
    while index < ROWS.len() {
        assert!(
            matches!(ROWS[index].condition, Condition::Every),
            "a row of this file depends on no setting"
        );
        index += 1;
    }
};
