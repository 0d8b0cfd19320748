/* Runs a program on a machine that lacks something: a seccomp filter makes the kernel answer as one without it.
 *
 *     without landlock|enabled-landlock|seccomp|ABI PROGRAM ARGUMENT...
 *
 * `landlock`: no kernel support; `enabled-landlock`: compiled in, not enabled at boot; `seccomp`: no filters;
 * a number: the Landlock version the kernel names. Compiled and run by tests/without_landlock.rs. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CREATE_RULESET 444
#define ASKS_FOR_VERSION 1

static int install(struct sock_filter *filter, unsigned short length, unsigned flags) {
    struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static int fail_call(unsigned number, unsigned error) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(filter, sizeof filter / sizeof *filter, 0);
}

/* The descriptor on which questions for the version arrive. */
static int ask_about_version(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CREATE_RULESET, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ASKS_FOR_VERSION, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(filter, sizeof filter / sizeof *filter, SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

struct start { char **argv; int listener; };

static int run(void *given) {
    struct start *start = given;
    start->listener = ask_about_version();
    if (start->listener < 0) _exit(3);
    execv(start->argv[0], start->argv);
    _exit(4);
}

/* Answers every question with `version` until nobody is left to ask. */
static int with_version(int version, char **argv) {
    static char stack[65536];
    static struct start start;
    int status;
    start.argv = argv;
    /* The child shares memory and descriptors until it becomes the program; so the listener is ours too. */
    pid_t child = clone(run, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &start);
    if (child < 0 || start.listener < 0) return 3;
    for (;;) {
        struct pollfd ready = {start.listener, POLLIN, 0};
        struct seccomp_notif question;
        struct seccomp_notif_resp answer;
        if (poll(&ready, 1, -1) < 0) continue;
        if (!(ready.revents & POLLIN)) break;
        memset(&question, 0, sizeof question);
        memset(&answer, 0, sizeof answer);
        if (ioctl(start.listener, SECCOMP_IOCTL_NOTIF_RECV, &question)) continue;
        answer.id = question.id;
        answer.val = version;
        ioctl(start.listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    if (waitpid(child, &status, 0) != child) return 3;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
    int made;
    if (argc < 3) return 2;
    if (atoi(argv[1]) > 0) return with_version(atoi(argv[1]), argv + 2);
    if (!strcmp(argv[1], "landlock")) made = fail_call(CREATE_RULESET, ENOSYS);
    else if (!strcmp(argv[1], "enabled-landlock")) made = fail_call(CREATE_RULESET, EOPNOTSUPP);
    else if (!strcmp(argv[1], "seccomp")) made = fail_call(SYS_seccomp, EINVAL);
    else return 2;
    if (made) { perror("without: seccomp"); return 3; }
    execv(argv[2], argv + 2);
    perror("without: execv");
    return 4;
}
