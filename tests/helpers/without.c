/* Runs a program on a machine that lacks something: a seccomp filter makes the kernel answer as one without it.
 *
 *     without landlock|enabled-landlock|seccomp|namespaces|unprivileged-namespaces|mounts|room|new-mounts|sessions|scheduling|
 *             setting-scheduling|openat2|close-range|fchmodat2|reading-memory|container|ABI PROGRAM ARGUMENT...
 *
 * `landlock`: no kernel support; `enabled-landlock`: compiled in, not enabled at boot; `seccomp`: no filters;
 * `namespaces`: no user namespace may be made; `unprivileged-namespaces`: only who has CAP_SYS_ADMIN may make one, as with
 * kernel.unprivileged_userns_clone=0; `mounts`: no mount can be made; `room`: a mount finds no room; `new-mounts`: mounts are
 * made by path alone, as before Linux 5.2; `sessions`: nobody can begin a session of processes, which is the first step of a start;
 * `scheduling`, `setting-scheduling`: a filter that keeps processes to the scheduling they have;
 * `openat2`, `close-range`, `fchmodat2`: a kernel or a filter without that call; `reading-memory`: nobody may read the memory of
 * another process, as with kernel.yama.ptrace_scope=2; `container`: what Docker's default profile refuses to a container without capabilities; a number: the Landlock version the kernel names. Compiled and run by tests/common/without.rs. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define CREATE_RULESET 444
#define ASKS_FOR_VERSION 1
#define FCHMODAT2 452

static int install(struct sock_filter *filter, unsigned short length, unsigned flags) {
    struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* Has two calls fail, which may be the same. */
static int fail_calls(unsigned number, unsigned other, unsigned error) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(filter, sizeof filter / sizeof *filter, 0);
}

/* Refuses clone() with a new user namespace, as a hardened kernel does; or has who traces decide. */
static int fail_user_namespaces(unsigned refusal) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 2),
        BPF_STMT(BPF_RET | BPF_K, refusal),
        /* What libraries fall back from: its flags lie where a filter cannot look. */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(filter, sizeof filter / sizeof *filter, 0);
}

/* Refuses what the default profile of container runtimes leaves out of its list, and clone() with any namespace. */
static int as_in_a_container(void) {
    static const unsigned refused[] = {
        SYS_acct, SYS_add_key, SYS_bpf, SYS_chroot, SYS_clock_settime, SYS_delete_module, SYS_fanotify_init,
        SYS_finit_module, SYS_fsconfig, SYS_fsmount, SYS_fsopen, SYS_fspick, SYS_get_mempolicy, SYS_init_module,
        SYS_io_uring_enter, SYS_io_uring_register, SYS_io_uring_setup, SYS_kcmp, SYS_kexec_load, SYS_keyctl,
        SYS_lookup_dcookie, SYS_mbind, SYS_migrate_pages, SYS_mount, SYS_move_mount, SYS_move_pages,
        SYS_open_by_handle_at, SYS_open_tree, SYS_perf_event_open, SYS_pidfd_getfd, SYS_pivot_root,
        SYS_process_madvise, SYS_quotactl, SYS_reboot, SYS_request_key, SYS_set_mempolicy, SYS_setdomainname,
        SYS_sethostname, SYS_setns, SYS_settimeofday, SYS_swapoff, SYS_swapon, SYS_syslog, SYS_umount2, SYS_unshare,
        SYS_userfaultfd, SYS_vhangup,
    };
    struct sock_filter namespaces[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x7e020000, 0, 2),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    enum { COUNT = sizeof refused / sizeof *refused };
    struct sock_filter filter[COUNT + 3];
    filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned place = 0; place < COUNT; place++)
        filter[place + 1] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[place], (unsigned char)(COUNT - place), 0);
    filter[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    if (install(filter, COUNT + 3, 0)) return -1;
    return install(namespaces, sizeof namespaces / sizeof *namespaces, 0);
}

/* Traced, not notified: of all filters of a process only one may have a listener, and commands get one. */
static int trace_questions(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CREATE_RULESET, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ASKS_FOR_VERSION, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(filter, sizeof filter / sizeof *filter, 0);
}

/* Has the stopped process skip its call and see `value` come back from it. */
static int answer(pid_t pid, long value) {
#if defined(__x86_64__)
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, pid, 0, &registers)) return -1;
    registers.orig_rax = -1;
    registers.rax = value;
    return (int)ptrace(PTRACE_SETREGS, pid, 0, &registers);
#elif defined(__aarch64__)
    struct user_regs_struct registers;
    int none = -1;
    struct iovec all = {&registers, sizeof registers}, call = {&none, sizeof none};
    if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &all)) return -1;
    registers.regs[0] = value;
    if (ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &call)) return -1;
    return (int)ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &all);
#else
#error "no way to answer a call on this machine"
#endif
}

static int trace_namespaces(void) { return fail_user_namespaces(SECCOMP_RET_TRACE); }

/* Whether a process acts with CAP_SYS_ADMIN. */
static int is_admin(pid_t pid) {
    char path[32], line[256];
    unsigned long long effective = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "CapEff: %llx", &effective) == 1) break;
    if (status) fclose(status);
    return effective >> 21 & 1;
}

/* Runs the program under a filter that stops some calls of its own and of all it starts, until none is left. Such a call gets
 * `version`, or, with 0, is refused to who is no administrator. */
static int traced(int (*filter)(void), int version, char **argv) {
    const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                         PTRACE_O_EXITKILL;
    int status, result = 3;
    pid_t pid, child = fork();
    if (child < 0) return 3;
    if (child == 0) {
        raise(SIGSTOP);
        if (filter()) _exit(3);
        execv(argv[0], argv);
        _exit(4);
    }
    if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) return 3;
    if (ptrace(PTRACE_SEIZE, child, 0, options) || kill(child, SIGCONT)) return 3;
    while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        int event = status >> 16, signal = 0;
        if (!WIFSTOPPED(status)) {
            if (pid == child) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            continue;
        }
        if (event == PTRACE_EVENT_SECCOMP) {
            if (version ? answer(pid, version) : !is_admin(pid) && answer(pid, -EPERM)) kill(pid, SIGKILL);
        } else if (event == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP) {
            /* Stopped as a group, and to stay so until it is told to go on. */
            ptrace(PTRACE_LISTEN, pid, 0, 0);
            continue;
        } else if (event == 0) {
            signal = WSTOPSIG(status);
        }
        ptrace(PTRACE_CONT, pid, 0, signal);
    }
    return result;
}

int main(int argc, char **argv) {
    int made;
    if (argc < 3) return 2;
    if (atoi(argv[1]) > 0) return traced(trace_questions, atoi(argv[1]), argv + 2);
    if (!strcmp(argv[1], "unprivileged-namespaces")) return traced(trace_namespaces, 0, argv + 2);
    if (!strcmp(argv[1], "landlock")) made = fail_calls(CREATE_RULESET, CREATE_RULESET, ENOSYS);
    else if (!strcmp(argv[1], "enabled-landlock")) made = fail_calls(CREATE_RULESET, CREATE_RULESET, EOPNOTSUPP);
    else if (!strcmp(argv[1], "seccomp")) made = fail_calls(SYS_seccomp, SYS_seccomp, EINVAL);
    else if (!strcmp(argv[1], "namespaces")) made = fail_user_namespaces(SECCOMP_RET_ERRNO | EPERM);
    else if (!strcmp(argv[1], "mounts")) made = fail_calls(SYS_mount, SYS_move_mount, EACCES);
    else if (!strcmp(argv[1], "room")) made = fail_calls(SYS_mount, SYS_move_mount, ENOSPC);
    else if (!strcmp(argv[1], "new-mounts")) made = fail_calls(SYS_fsopen, SYS_open_tree, ENOSYS);
    else if (!strcmp(argv[1], "sessions")) made = fail_calls(SYS_setsid, SYS_setsid, EPERM);
    else if (!strcmp(argv[1], "scheduling")) made = fail_calls(SYS_sched_getattr, SYS_sched_setattr, EPERM);
    else if (!strcmp(argv[1], "setting-scheduling")) made = fail_calls(SYS_sched_setattr, SYS_sched_setattr, EPERM);
    else if (!strcmp(argv[1], "openat2")) made = fail_calls(SYS_openat2, SYS_openat2, ENOSYS);
    else if (!strcmp(argv[1], "close-range")) made = fail_calls(SYS_close_range, SYS_close_range, ENOSYS);
    else if (!strcmp(argv[1], "fchmodat2")) made = fail_calls(FCHMODAT2, FCHMODAT2, ENOSYS);
    else if (!strcmp(argv[1], "reading-memory")) made = fail_calls(SYS_process_vm_readv, SYS_process_vm_readv, EPERM);
    else if (!strcmp(argv[1], "container")) made = as_in_a_container();
    else return 2;
    if (made) { perror("without: seccomp"); return 3; }
    execv(argv[2], argv + 2);
    perror("without: execv");
    return 4;
}
