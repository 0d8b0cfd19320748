/* Performs operations that stdin lists and prints what came of each: "ERRNO AFTERWARDS" a line.
 *
 * `B`, `R` and `E` enter a layer of Landlock first.
 * Each operation is a letter and two arguments, all three ended by NUL bytes. AFTERWARDS is the errno of reading what
 * was moved or linked by its new name, or -1. With arguments it performs the one operation that they are, and ends with
 * its errno. Compiled statically and run confined by tests/reexec/differential and tests/kernel/explain. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
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

/* Opens what lies below a descriptor of a folder that `who` has, by what /proc says of it; by a child of its own, if asked. */
static int through(const char *who, const char *folder, const char *below, int flags, int by_child) {
    char path[1 << 13];
    int status, e, place = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (place < 0) return errno;
    snprintf(path, sizeof path, "/proc/%s/fd/%d/%s", who, place, below);
    pid_t pid = by_child ? fork() : 0;
    if (pid < 0) return errno;
    if (pid == 0) {
        e = reads(open(path, flags | O_CLOEXEC, 0644));
        if (by_child) _exit(e);
    } else if (waitpid(pid, &status, 0) != pid) {
        e = errno;
    } else {
        e = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
    }
    close(place);
    return e;
}

static const char *myself(void) {
    static char number[16];
    snprintf(number, sizeof number, "%d", getpid());
    return number;
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

/* Reaches an address: a number and a port, over TCP or by a datagram. */
static int reaches(const char *number, const char *port, int type) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(port))};
    int is_four = inet_pton(AF_INET, number, &four.sin_addr) == 1;
    if (!is_four && inet_pton(AF_INET6, number, &six.sin6_addr) != 1) return 254;
    struct sockaddr *to = is_four ? (struct sockaddr *)&four : (struct sockaddr *)&six;
    socklen_t length = is_four ? sizeof four : sizeof six;
    int fd = socket(to->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return errno;
    int e = err(type == SOCK_STREAM ? connect(fd, to, length) : sendto(fd, "x", 1, 0, to, length));
    close(fd);
    return e;
}

/* Gives an address to what is no socket: nothing that is open, and a folder. 0 is any other answer than that. */
static int misaddresses(const char *number, int connecting) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(80)};
    struct sockaddr *to = (struct sockaddr *)&in;
    if (inet_pton(AF_INET, number, &in.sin_addr) != 1) return 0;
    int folder = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int e = err(connecting ? connect(-1, to, sizeof in) : sendto(-1, "x", 1, 0, to, sizeof in));
    if (e == EBADF) e = err(connecting ? connect(folder, to, sizeof in) : sendto(folder, "x", 1, 0, to, sizeof in));
    close(folder);
    return e == ENOTSOCK ? e : 0;
}

/* A socket that takes a path. */
static int binds_to_path(const char *path) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    strncpy(at.sun_path, path, sizeof at.sun_path - 1);
    int e = err(bind(fd, (struct sockaddr *)&at, sizeof at));
    close(fd);
    return e;
}

static int perform(char what, const char *a, const char *b);

/* An operation whose letter stands before its first argument. */
static void *in_thread(void *arguments) {
    const char **both = arguments;
    return (void *)(intptr_t)perform(both[0][0], both[0] + 1, both[1]);
}

static int by_thread(const char *a, const char *b) {
    const char *both[] = {a, b};
    pthread_t thread;
    void *e;
    if (pthread_create(&thread, NULL, in_thread, both)) return 254;
    pthread_join(thread, &e);
    return (int)(intptr_t)e;
}

static int by_child(const char *a, const char *b, int depth, int again) {
    int status;
    pid_t pid = fork();
    if (pid < 0) return 254;
    if (pid == 0) {
        char what[] = {*a, 0}, *argv[] = {"operate", what, (char *)a + 1, (char *)b, NULL}, *envp[] = {NULL};
        if (depth > 1) _exit(by_child(a, b, depth - 1, again));
        if (again) execve("/proc/self/exe", argv, envp);
        _exit(again ? 254 : perform(*a, a + 1, b));
    }
    if (waitpid(pid, &status, 0) != pid) return 254;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static char swapped[1 << 13];
static const char *ones[2];
static volatile int done, leaked;

static void *swaps(void *nothing) {
    for (unsigned round = 0; !done; round++) strcpy(swapped, ones[round & 1]);
    return nothing;
}

/* Opens a path that another thread changes between two, over and over, and until that one came often enough where the machine is busy. What
   the second one holds is never read. */
static int races(const char *a, const char *b) {
    pthread_t thread;
    char byte;
    ones[0] = a, ones[1] = b;
    strcpy(swapped, a);
    if (pthread_create(&thread, NULL, swaps, NULL)) return 254;
    for (int round = 0, refused = 0; round < 2000 || (refused < 20 && round < 100000); round++) {
        int fd = open(swapped, O_RDONLY | O_CLOEXEC);
        refused += fd < 0 && !strcmp(swapped, b);
        if (fd >= 0 && read(fd, &byte, 1) == 1 && byte != 0x7f) leaked = 1;
        if (fd >= 0) close(fd);
    }
    done = 1;
    pthread_join(thread, NULL);
    return leaked;
}

static int perform(char what, const char *a, const char *b) {
    switch (what) {
    case '3': return races(a, b);
    case '4': return leaked;
    case 'A': return by_thread(a, b);
    case 'J': return by_child(a, b, 2, 0);
    case 'X': return by_child(a, b, 1, 1);
    case 'I': return reaches(a, b, SOCK_STREAM);
    case 'G': return reaches(a, b, SOCK_DGRAM);
    case '9': return misaddresses(a, 0);
    case '0': return misaddresses(a, 1);
    case '1': return closing(socket(atoi(a), SOCK_STREAM | SOCK_CLOEXEC, 0));
    case 'F': return closing(socket(atoi(a), SOCK_RAW | SOCK_CLOEXEC, atoi(b)));
    case 'W': return binds_to_path(a);
    case 'M': return err(mount("none", a, "tmpfs", 0, NULL));
    case 'v': return err(unshare(CLONE_NEWNS));
    case 'y': return err(syscall(SYS_keyctl, 0, -3, 0));
    case 'Q': return err(access(a, W_OK | X_OK));
    case '5': return through("self", a, b, O_RDONLY, 0);
    case '6': return through("self", a, b, O_RDONLY | O_CREAT, 0);
    case '7': return through(myself(), a, b, O_RDONLY, 0);
    case '8': return through(myself(), a, b, O_RDONLY, 1);
    case 'Z': return reads(open(a, O_RDONLY | O_CREAT | O_CLOEXEC, 0644));
    case 'L': return err(truncate(a, 1));
    case '2': return closing(syscall(SYS_openat2, AT_FDCWD, a, (uint64_t[]){0, 0, 0}, 24));
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
    case '%': return err(mknod(a, S_IFCHR | 0600, atoi(b) ? makedev(1, atoi(b)) : 0));
    case '@': return err(mknod(a, S_IFBLK | 0600, makedev(7, atoi(b))));
    case '+': return err(chmod(a, 04755));
    case '=': return err(chmod(a, 02755));
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

int main(int argc, char **argv) {
    if (argc == 4) return perform(*argv[1], argv[2], argv[3]);
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
