/* Makes system calls and prints what came of each: "name ok" or "name E<number>".
 * Compiled and run by tests/kernel/seccomp.rs, bare and under the filters. With a second argument it installs filters
 * and nothing else. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIGH (1L << 32)

static long call(long nr, long a, long b, long c, long d, long e, long f) { return syscall(nr, a, b, c, d, e, f); }

static void report(const char *name, long result) {
    if (result >= 0) printf("%s ok\n", name);
    else printf("%s E%d\n", name, errno);
    fflush(stdout);
}

/* Reports the result; a descriptor that came of it is closed. */
static void opens(const char *name, long result) {
    int saved = errno;
    if (result >= 0) close((int)result);
    errno = saved;
    report(name, result);
}

/* In a child, so that what succeeds ends with it; prints the signal that ended it, if one did. */
static void forked(const char *name, long (*attempt)(void)) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        long result = attempt();
        _exit(result < 0 ? errno : 0);
    }
    if (waitpid(pid, &status, 0) != pid) { report(name, -1); return; }
    if (WIFSIGNALED(status)) printf("%s S%d\n", name, WTERMSIG(status));
    else if (WEXITSTATUS(status)) printf("%s E%d\n", name, WEXITSTATUS(status));
    else printf("%s ok\n", name);
    fflush(stdout);
}

#define S(name, nr, ...) report(name, call(nr, __VA_ARGS__))

static long do_unshare_user(void) { return call(SYS_unshare, 0x10000000, 0, 0, 0, 0, 0); }
static long do_unshare_files(void) { return call(SYS_unshare, 0x400, 0, 0, 0, 0, 0); }
static long do_unshare_high(void) { return call(SYS_unshare, 0x10000000 | HIGH, 0, 0, 0, 0, 0); }
static long spawn(long flags) {
    long pid = call(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    return pid;
}
static long do_clone(void) { return spawn(0); }
static long do_clone_user(void) { return spawn(0x10000000); }
static long do_clone3(void) {
    unsigned long long args[11] = {0};
    args[4] = SIGCHLD;
    long pid = call(SYS_clone3, (long)args, sizeof args, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    return pid;
}
#ifdef __x86_64__
static long do_int80(void) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory"); /* getpid of i386 */
    return result;
}
#endif

/* One filter that allows everything; what came of it ends with the child that installed it. */
static struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
static struct sock_fprog program = {1, &allow};
static long install(long flags) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, (long)&program, 0, 0, 0);
}
static long do_filter(void) { return install(0); }
static long do_filter_for_all_threads(void) { return install(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG); }
static long do_filter_by_prctl(void) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
static long do_listener(void) { return install(SECCOMP_FILTER_FLAG_NEW_LISTENER); }
static long do_listener_high(void) { return install(SECCOMP_FILTER_FLAG_NEW_LISTENER | HIGH); }
static long do_listener_with_more(void) {
    return install(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH);
}

static int install_filters(void) {
    forked("filter", do_filter);
    forked("filter-for-all-threads", do_filter_for_all_threads);
    forked("filter-by-prctl", do_filter_by_prctl);
    forked("listener", do_listener);
    forked("listener-high", do_listener_high);
    forked("listener-with-more", do_listener_with_more);
    return 0;
}

int main(int argc, char **argv) {
    int pair[2], terminal;
    char path[4096];
    struct stat st;
    pid_t outsider = getppid();
    if (argc < 2 || chdir(argv[1])) return 2;
    if (argc > 2) return install_filters();

    for (int family = 0; family < 48; family++) {
        snprintf(path, sizeof path, "socket-family-%d", family);
        opens(path, call(SYS_socket, family, family == 16 || family == 17 ? 3 : 1, 0, 0, 0, 0));
    }
    opens("socket-inet-high", call(SYS_socket, 2 | HIGH, 1, 0, 0, 0, 0));
    opens("socket-packet-high", call(SYS_socket, 17 | HIGH, 3, 0, 0, 0, 0));
    opens("socket-udp", call(SYS_socket, 2, 2, 0, 0, 0, 0));
    opens("socket-mptcp", call(SYS_socket, 2, 1, 262, 0, 0, 0));
    opens("socket-sctp", call(SYS_socket, 2, 1, 132, 0, 0, 0));
    opens("socket-netlink-audit", call(SYS_socket, 16, 3, 9, 0, 0, 0));
    for (int type = 1; type <= 5; type++) {
        if (type == 3 || type == 4) continue;
        snprintf(path, sizeof path, "socketpair-%d", type);
        long result = call(SYS_socketpair, 1, type | 02000000, 0, (long)pair, 0, 0);
        report(path, result);
        if (result == 0 && type == 1) {
            report("sendto", call(SYS_sendto, pair[0], (long)"x", 1, 0, 0, 0));
            report("sendto-fastopen", call(SYS_sendto, pair[0], (long)"x", 1, 0x20000000, 0, 0));
            struct { void *name; int len; void *iov; size_t iovs; void *control; size_t controls; int flags; } message = {0};
            report("sendmsg", call(SYS_sendmsg, pair[0], (long)&message, 0, 0, 0, 0));
            report("sendmsg-fastopen", call(SYS_sendmsg, pair[0], (long)&message, 0x20000000 | HIGH, 0, 0, 0));
            report("sendmmsg", call(SYS_sendmmsg, pair[0], 0, 0, 0, 0, 0));
            report("sendmmsg-fastopen", call(SYS_sendmmsg, pair[0], 0, 0, 0x20000000, 0, 0));
        }
        if (result == 0 && type == 1) {
            struct { unsigned short family; char name[32]; } abstract = {1, ""}, file = {1, "pair"};
            int length = 2 + 1 + sprintf(abstract.name + 1, "stockade-pair-%d", getpid());
            S("pair-bind-abstract", SYS_bind, pair[0], (long)&abstract, length, 0, 0, 0);
            S("pair-bind-file", SYS_bind, pair[1], (long)&file, sizeof file, 0, 0, 0);
            S("pair-listen", SYS_listen, pair[0], 1, 0, 0, 0, 0);
            opens("pair-accept", call(SYS_accept, pair[0], 0, 0, 0, 0, 0));
            opens("pair-accept4", call(SYS_accept4, pair[0], 0, 0, 0, 0, 0));
            S("pair-connect", SYS_connect, pair[0], (long)&file, sizeof file, 0, 0, 0);
            char interface[40] = {0};
            interface[16] = 1; /* the index of lo */
            int waiting;
            S("pair-FIONREAD", SYS_ioctl, pair[0], 0x541B, (long)&waiting, 0, 0, 0);
            S("SIOCGIFNAME", SYS_ioctl, pair[0], 0x8910, (long)interface, 0, 0, 0);
            S("SIOCGIFNAME-high", SYS_ioctl, pair[0], 0x8910 | HIGH, (long)interface, 0, 0, 0);
            S("SIOCGIFHWADDR", SYS_ioctl, pair[0], 0x8927, (long)interface, 0, 0, 0);
            S("pair-shutdown", SYS_shutdown, pair[0], 2, 0, 0, 0, 0);
        }
        if (result == 0) { close(pair[0]); close(pair[1]); }
    }

    forked("clone", do_clone);
    forked("clone-user", do_clone_user);
    forked("clone3", do_clone3);
    forked("unshare-files", do_unshare_files);
    forked("unshare-user", do_unshare_user);
    forked("unshare-user-high", do_unshare_high);
#ifdef __x86_64__
    forked("int80", do_int80);
    S("x32-getpid", 0x40000000L | SYS_getpid, 0, 0, 0, 0, 0, 0);
#endif
    S("getpid", SYS_getpid, 0, 0, 0, 0, 0, 0);
    S("beyond", 470, 0, 0, 0, 0, 0, 0);

    char ring[128] = {0};
    opens("io_uring_setup", call(SYS_io_uring_setup, 1, (long)ring, 0, 0, 0, 0));
    S("keyctl", SYS_keyctl, 0, -3, 0, 0, 0, 0);
    S("ptrace", SYS_ptrace, 2, getpid(), 0, 0, 0, 0);
    S("mount", SYS_mount, (long)"none", (long)argv[1], (long)"tmpfs", 0, 0, 0);
    S("umount2", SYS_umount2, (long)argv[1], 0, 0, 0, 0, 0);
    S("chroot", SYS_chroot, (long)"/nowhere", 0, 0, 0, 0, 0);
    S("setns", SYS_setns, -1, 0, 0, 0, 0, 0);
    S("bpf", SYS_bpf, 0, 0, 0, 0, 0, 0);
    S("userfaultfd", SYS_userfaultfd, -1, 0, 0, 0, 0, 0);
    S("shmget", SYS_shmget, 0, 4096, 0600, 0, 0, 0);
    S("mq_unlink", SYS_mq_unlink, (long)"nothing", 0, 0, 0, 0, 0);
    S("process_vm_readv", SYS_process_vm_readv, getpid(), 0, 0, 0, 0, 0);
    S("statmount", 457, 0, 0, 0, 0, 0, 0);
    S("listmount", 458, 0, 0, 0, 0, 0, 0);
    S("personality", SYS_personality, 0xffffffff, 0, 0, 0, 0, 0);
    S("personality-exec", SYS_personality, 0x0400000, 0, 0, 0, 0, 0);
    S("personality-back", SYS_personality, 0, 0, 0, 0, 0, 0);

    unsigned long mask[16];
    unsigned long limit[2];
    S("prlimit-self", SYS_prlimit64, 0, 7, 0, (long)limit, 0, 0);
    S("prlimit-self-high", SYS_prlimit64, HIGH, 7, 0, (long)limit, 0, 0);
    S("prlimit-other", SYS_prlimit64, outsider, 7, 0, (long)limit, 0, 0);
    S("setpriority-self", SYS_setpriority, 0, 0, 0, 0, 0, 0);
    S("setpriority-other", SYS_setpriority, 0, outsider, 0, 0, 0, 0);
    S("setpriority-user", SYS_setpriority, 2, 0, 0, 0, 0, 0);
    S("getaffinity", SYS_sched_getaffinity, 0, sizeof mask, (long)mask, 0, 0, 0);
    S("setaffinity-self", SYS_sched_setaffinity, 0, sizeof mask, (long)mask, 0, 0, 0);
    S("setaffinity-other", SYS_sched_setaffinity, outsider, sizeof mask, (long)mask, 0, 0, 0);
    opens("pidfd_open", call(SYS_pidfd_open, outsider, 0, 0, 0, 0, 0));

    terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    int size[2];
    S("tty-size", SYS_ioctl, terminal, 0x5413, (long)size, 0, 0, 0);
    S("tty-size-high", SYS_ioctl, terminal, 0x5413 | HIGH, (long)size, 0, 0, 0);
    S("TIOCSTI", SYS_ioctl, terminal, 0x5412, (long)"x", 0, 0, 0);
    S("TIOCSTI-high", SYS_ioctl, terminal, 0x5412 | HIGH, (long)"x", 0, 0, 0);
    S("TIOCLINUX", SYS_ioctl, terminal, 0x541C, (long)"x", 0, 0, 0);
    int file = open("file", O_RDWR | O_CREAT, 0600);
    int flags = 0;
    S("file", SYS_fcntl, file, F_GETFD, 0, 0, 0, 0);
    S("GETFLAGS", SYS_ioctl, file, 0x80086601, (long)&flags, 0, 0, 0);
    S("SETFLAGS", SYS_ioctl, file, 0x40086602, (long)&flags, 0, 0, 0);
    S("prctl-name", SYS_prctl, 15, (long)"name", 0, 0, 0, 0);
    S("prctl-ptracer", SYS_prctl, 0x59616d61, outsider, 0, 0, 0, 0);

    opens("create", call(SYS_openat, AT_FDCWD, (long)"plain", O_CREAT | O_WRONLY, 0755, 0, 0));
    opens("create-setuid", call(SYS_openat, AT_FDCWD, (long)"suid", O_CREAT | O_WRONLY, 04755, 0, 0));
    opens("open-odd-mode", call(SYS_openat, AT_FDCWD, (long)"plain", O_RDONLY, 04755, 0, 0));
    S("mknod", SYS_mknodat, AT_FDCWD, (long)"node", 0100644, 0, 0, 0);
    S("mknod-setuid", SYS_mknodat, AT_FDCWD, (long)"snode", 0104755, 0, 0, 0);
    int reading = open("plain", O_RDONLY), here = open(".", O_RDONLY | O_DIRECTORY);
    unsigned short delegation[4] = {0}; /* d_type 0 is F_RDLCK */
    S("lease-get", SYS_fcntl, reading, 1025, 0, 0, 0, 0);
    S("lease", SYS_fcntl, reading, 1024, 0, 0, 0, 0);
    S("lease-high", SYS_fcntl, reading, 1024 | HIGH, 0, 0, 0, 0);
    S("lease-end", SYS_fcntl, reading, 1024, 2, 0, 0, 0);
    S("delegation", SYS_fcntl, here, 1040, (long)delegation, 0, 0, 0);
    S("notify", SYS_fcntl, here, 1026, 4, 0, 0, 0);
    S("notify-high", SYS_fcntl, here, 1026 | HIGH, 0, 0, 0, 0);
    opens("dup", call(SYS_fcntl, here, 1030, 0, 0, 0, 0));
    close(reading);
    close(here);
    unsigned long long how[3] = {0};
    opens("openat2", call(SYS_openat2, AT_FDCWD, (long)"plain", (long)how, sizeof how, 0, 0));

    S("fchmodat", SYS_fchmodat, AT_FDCWD, (long)"plain", 0700, 0, 0, 0);
    S("fchmod", SYS_fchmod, file, 0600, 0, 0, 0, 0);
    S("fchownat", SYS_fchownat, AT_FDCWD, (long)"plain", -1, -1, 0, 0);
    S("utimensat", SYS_utimensat, AT_FDCWD, (long)"plain", 0, 0, 0, 0);
    S("fremovexattr", SYS_fremovexattr, file, (long)"user.none", 0, 0, 0, 0);
    report("stat", stat("plain", &st));
    report("mkdir", mkdir("folder", 0755));
    return 0;
}
