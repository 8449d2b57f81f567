/* A clock that goes back: preloaded, it takes an hour off the wall clock every other second.
   All processes agree on it, for the monotonic clock since CLOCK_BASE decides. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

typedef int (*clock_function)(clockid_t, struct timespec *);

static clock_function real(void) {
    static clock_function found;
    if (!found) found = (clock_function)dlsym(RTLD_NEXT, "clock_gettime");
    return found;
}

int clock_gettime(clockid_t which, struct timespec *at) {
    int failed = real()(which, at);
    const char *base = getenv("CLOCK_BASE");
    struct timespec now;
    if (failed || !base || (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE)) return failed;
    real()(CLOCK_MONOTONIC, &now);
    at->tv_sec -= 3600 * ((now.tv_sec - atol(base)) / 2);
    return 0;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    (void)zone;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
