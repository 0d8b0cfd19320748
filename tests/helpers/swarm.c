// Makes siblings of itself: some that sleep, and one that makes more, which end at once. The runner is the parent of all.
// swarm SLEEPERS SECONDS WAIT: for so long it makes more; so long it waits itself before it ends with 7.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char stacks[64][1024] __attribute__((aligned(64)));

static int ends(void *nothing) {
    (void)nothing;
    syscall(SYS_exit, 0);
    return 0;
}

static double now(void) {
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return moment.tv_sec + moment.tv_nsec / 1e9;
}

static long sibling(void) {
    long made = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (made == 0) {
        close(0);
        close(1);
        close(2);
    }
    return made;
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    double seconds = atof(words[2]);
    for (int left = atoi(words[1]); left > 0; left--) {
        long made = sibling();
        if (made < 0)
            return 3;
        if (made == 0) {
            alarm((unsigned)seconds + 30);
            pause();
            _exit(0);
        }
    }
    if (sibling() == 0) {
        double end = now() + seconds;
        for (unsigned turn = 0; now() < end; turn++) {
            double next = now() + 30e-6;
            clone(ends, stacks[turn % 64] + sizeof stacks[0], CLONE_PARENT | CLONE_VM | SIGCHLD, 0);
            while (now() < next)
                ;
        }
        _exit(0);
    }
    usleep((useconds_t)(atof(words[3]) * 1e6));
    return 7;
}
