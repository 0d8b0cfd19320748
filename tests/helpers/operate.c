/* Performs operations that stdin lists and prints what came of each: "ERRNO AFTERWARDS" a line.
 *
 * `B`, `R` and `E` enter a layer of Landlock first.
 * Each operation is a letter and two arguments, all three ended by NUL bytes. AFTERWARDS is the errno of reading what
 * was moved or linked by its new name, or -1. Compiled statically and run confined by tests/differential. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char input[1 << 20];
static int afterwards;

/* 0, or the errno of the call that gave r. */
static int err(long r) { return r < 0 ? errno : 0; }

static int closing(int fd) {
    int e = err(fd);
    if (fd >= 0) close(fd);
    return e;
}

static int reads(int fd) {
    char byte;
    int e = err(fd);
    if (fd >= 0) {
        e = err(read(fd, &byte, 1));
        close(fd);
    }
    return e;
}

/* Writes the byte that every file here begins with, so that no later operation is disturbed. */
static int writes(int fd) {
    int e = err(fd);
    if (fd >= 0) {
        e = err(write(fd, "\x7f", 1));
        close(fd);
    }
    return e;
}

static int lists(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    DIR *dir = fdopendir(fd);
    errno = 0;
    readdir(dir);
    int e = errno;
    closedir(dir);
    return e;
}

static int executes(const char *path) {
    char *argv[] = {(char *)path, NULL}, *envp[] = {NULL};
    int status;
    pid_t pid = fork();
    if (pid < 0) return errno;
    if (pid == 0) {
        execve(path, argv, envp);
        _exit(errno);
    }
    if (waitpid(pid, &status, 0) != pid) return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Opens by a second way to the object: a place descriptor, reopened through /proc. */
static int reopened(const char *path, int flags) {
    char link[64];
    int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0) return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", place);
    int fd = open(link, flags | O_CLOEXEC), saved = errno;
    close(place);
    errno = saved;
    return fd;
}

/* A descriptor of the folder of a path; *name is what follows. */
static int folder_of(const char *path, const char **name) {
    static char folder[1 << 13];
    const char *slash = strrchr(path, '/');
    size_t length = slash - path;
    memcpy(folder, path, length);
    folder[length] = 0;
    *name = slash + 1;
    return open(length ? folder : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int relative(const char *path, int flags) {
    const char *name;
    int dir = folder_of(path, &name);
    if (dir < 0) return -1;
    int fd = openat(dir, name, flags | O_CLOEXEC, 0755), saved = errno;
    close(dir);
    errno = saved;
    return fd;
}

/* A file without a name that is given one. */
static int unnamed(const char *path) {
    char link[64];
    const char *name;
    int dir = folder_of(path, &name), e;
    if (dir < 0) return errno;
    int fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    e = err(fd);
    if (fd >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        e = err(linkat(AT_FDCWD, link, dir, name, AT_SYMLINK_FOLLOW));
        close(fd);
    }
    close(dir);
    return e;
}

static int truncates(const char *path) {
    struct stat st;
    return stat(path, &st) < 0 ? errno : err(truncate(path, st.st_size));
}

static int after(int e, const char *path) {
    struct stat st;
    if (e == 0 && lstat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode)) afterwards = lists(path);
        else if (S_ISREG(st.st_mode)) afterwards = reads(open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    }
    return e;
}

static int reads_memory(pid_t pid) {
    char byte;
    struct iovec ours = {&byte, 1}, theirs = {&input, 1};
    return err(process_vm_readv(pid, &ours, 1, &theirs, 1, 0));
}

/* Reaches a listener on the host's loopback. */
static int connects(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    int e = err(connect(fd, (struct sockaddr *)&to, sizeof to));
    close(fd);
    return e;
}

static int connects_to_path(const char *path) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    strncpy(to.sun_path, path, sizeof to.sun_path - 1);
    int e = err(connect(fd, (struct sockaddr *)&to, sizeof to));
    close(fd);
    return e;
}

static int looks_up(const char *path) {
    struct stat st;
    return err(lstat(path, &st));
}

/* A child of our own may be signalled and ended. */
static int ends_a_child(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    int e = err(kill(pid, SIGKILL));
    waitpid(pid, &status, 0);
    return e;
}

static int layer = -1;

/* A ruleset of our own: the layer of a second profile inside the one that confines us. */
static int begins(const char *handled_fs, const char *handled_net) {
    struct { uint64_t fs, net, scoped; } attr = {strtoull(handled_fs, NULL, 10), strtoull(handled_net, NULL, 10), 3};
    return err(layer = syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0));
}

static int rules(const char *path, const char *access) {
    int place = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0) return errno;
    struct { uint64_t access; int32_t parent; } __attribute__((packed)) rule = {strtoull(access, NULL, 10), place};
    int e = err(syscall(SYS_landlock_add_rule, layer, 1, &rule, 0));
    close(place);
    return e;
}

static int perform(char what, const char *a, const char *b) {
    switch (what) {
    case 'r': return reads(open(a, O_RDONLY | O_CLOEXEC));
    case 'w': return writes(open(a, O_WRONLY | O_CLOEXEC));
    case 'b': return writes(open(a, O_RDWR | O_CLOEXEC));
    case 'a': return writes(open(a, O_WRONLY | O_APPEND | O_CLOEXEC));
    case 't': return truncates(a);
    case 'T': return closing(open(a, O_WRONLY | O_TRUNC | O_CLOEXEC));
    case 'p': return reads(reopened(a, O_RDONLY));
    case 'P': return writes(reopened(a, O_WRONLY));
    case 'h': return reads(relative(a, O_RDONLY));
    case 'H': return writes(relative(a, O_WRONLY));
    case 'l': return lists(a);
    case 'x': return executes(a);
    case 'c': return writes(open(a, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
    case 'C': return writes(relative(a, O_WRONLY | O_CREAT | O_EXCL));
    case 'd': return err(mkdir(a, 0755));
    case 'D': return err(rmdir(a));
    case 'u': return err(unlink(a));
    case 'm': return after(err(rename(a, b)), b);
    case 'e': return after(err(renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE)), b);
    case 'k': return after(err(link(a, b)), b);
    case 's': return err(symlink("nowhere", a));
    case 'S': return symlink(b, a) < 0 ? errno : writes(open(a, O_WRONLY | O_CLOEXEC));
    case 'f': return err(mkfifo(a, 0644));
    case 'z': return unnamed(a);
    case 'o': return err(chmod(a, 0755));
    case 'O': return err(chown(a, getuid(), getgid()));
    case 'i': return err(utimensat(AT_FDCWD, a, NULL, 0));
    case 'g': return err(setxattr(a, "user.note", "x", 1, 0));
    case 'n': return connects(atoi(a));
    case 'N': return closing(socket(AF_UNIX, SOCK_STREAM, 0));
    case 'U': return connects_to_path(a);
    case 'q': return looks_up(a);
    case 'K': return err(kill(atoi(a), 0));
    case 'Y': return err(ptrace(PTRACE_SEIZE, atoi(a), 0, 0));
    case 'V': return reads_memory(atoi(a));
    case 'j': return ends_a_child();
    case 'B': return begins(a, b);
    case 'R': return rules(a, b);
    case 'E': return err(syscall(SYS_landlock_restrict_self, layer, 0));
    default: return 254;
    }
}

int main(void) {
    size_t length = 0;
    ssize_t n;
    while ((n = read(0, input + length, sizeof input - 1 - length)) > 0) length += n;
    for (char *at = input; at < input + length;) {
        char *a = at + strlen(at) + 1, *b = a + strlen(a) + 1;
        afterwards = -1;
        int e = perform(*at, a, b);
        printf("%d %d\n", e, afterwards);
        fflush(stdout);
        at = b + strlen(b) + 1;
    }
    return 0;
}
