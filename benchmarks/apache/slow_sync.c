/* Loaded before the system's library: every sync takes SLOW_SYNC_US microseconds longer.

   Syncs are fsync, fdatasync, sync_file_range, and writes to files that were opened with O_SYNC or O_DSYNC. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NEXT(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

static void wait_longer(void) {
    const char *set = getenv("SLOW_SYNC_US");
    long us = set ? atol(set) : 0;
    struct timespec span = {us / 1000000, us % 1000000 * 1000};
    while (us > 0 && nanosleep(&span, &span)) {}
}

static int is_synced(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags != -1 && (flags & O_DSYNC);  /* O_SYNC has this bit, too */
}

int fsync(int fd) { int done = NEXT(int, fsync, int)(fd); wait_longer(); return done; }
int fdatasync(int fd) { int done = NEXT(int, fdatasync, int)(fd); wait_longer(); return done; }
int sync_file_range(int fd, off64_t at, off64_t n, unsigned flags) {
    int done = NEXT(int, sync_file_range, int, off64_t, off64_t, unsigned)(fd, at, n, flags);
    if (flags & SYNC_FILE_RANGE_WAIT_AFTER) wait_longer();
    return done;
}

#define AFTER(done, fd) if (is_synced(fd)) wait_longer(); return done

ssize_t write(int fd, const void *from, size_t n) {
    ssize_t done = NEXT(ssize_t, write, int, const void *, size_t)(fd, from, n);
    AFTER(done, fd);
}
ssize_t writev(int fd, const struct iovec *from, int n) {
    ssize_t done = NEXT(ssize_t, writev, int, const struct iovec *, int)(fd, from, n);
    AFTER(done, fd);
}
ssize_t pwrite(int fd, const void *from, size_t n, off_t at) {
    ssize_t done = NEXT(ssize_t, pwrite, int, const void *, size_t, off_t)(fd, from, n, at);
    AFTER(done, fd);
}
ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) {
    ssize_t done = NEXT(ssize_t, pwrite64, int, const void *, size_t, off64_t)(fd, from, n, at);
    AFTER(done, fd);
}
ssize_t pwritev(int fd, const struct iovec *from, int n, off_t at) {
    ssize_t done = NEXT(ssize_t, pwritev, int, const struct iovec *, int, off_t)(fd, from, n, at);
    AFTER(done, fd);
}
ssize_t pwritev64(int fd, const struct iovec *from, int n, off64_t at) {
    ssize_t done = NEXT(ssize_t, pwritev64, int, const struct iovec *, int, off64_t)(fd, from, n, at);
    AFTER(done, fd);
}
ssize_t pwritev2(int fd, const struct iovec *from, int n, off_t at, int flags) {
    ssize_t done = NEXT(ssize_t, pwritev2, int, const struct iovec *, int, off_t, int)(fd, from, n, at, flags);
    AFTER(done, fd);
}
ssize_t pwritev64v2(int fd, const struct iovec *from, int n, off64_t at, int flags) {
    ssize_t done = NEXT(ssize_t, pwritev64v2, int, const struct iovec *, int, off64_t, int)(fd, from, n, at, flags);
    AFTER(done, fd);
}
