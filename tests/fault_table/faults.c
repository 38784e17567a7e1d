/* Loaded before the system's library: lets one call fail, as the environment says, once a file says "now".

   FAULT_CALL open | pwrite | fdatasync | fsync | rename | unlink | ftruncate | pread | close
   FAULT_ROOT, FAULT_PATH   only paths that begin with the one and contain the other
   FAULT_ERRNO, FAULT_AFTER, FAULT_TIMES   which error, how many pass before, how many fail
   FAULT_SHORT   not empty: a pwrite that is to fail writes half of it, and the call after it fails
   FAULT_ARMED   nothing fails before this file is there; FAULT_MET   made when the first call fails */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long passed, failed;

static const char *set(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

/* The error that this call meets; 0: none. */
static int meets(const char *call, const char *path) {
    if (!path || strcmp(call, set("FAULT_CALL")) || strncmp(path, set("FAULT_ROOT"), strlen(set("FAULT_ROOT")))) return 0;
    if (!strstr(path, set("FAULT_PATH")) || syscall(SYS_access, set("FAULT_ARMED"), F_OK)) return 0;
    if (passed < atol(set("FAULT_AFTER"))) { passed++; return 0; }
    if (failed >= atol(set("FAULT_TIMES"))) return 0;
    if (!failed++) syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, set("FAULT_MET"), O_CREAT | O_WRONLY, 0600));
    return atoi(set("FAULT_ERRNO"));
}

static int meets_fd(const char *call, int fd) {
    char link[64], path[PATH_MAX];
    if (strcmp(call, set("FAULT_CALL"))) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = syscall(SYS_readlink, link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return meets(call, path);
}

#define FAIL(error) do { errno = (error); return -1; } while (0)
#define NEXT(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

static int open_(const char *path, int flags, mode_t mode) {
    int error = meets("open", path);
    if (error) FAIL(error);
    return syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
int open(const char *path, int flags, ...) {
    va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest);
    return open_(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest);
    return open_(path, flags, mode);
}

static int half_done;
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    int error = meets_fd("pwrite", fd);
    if (error && *set("FAULT_SHORT") && !half_done && size > 4096) {
        half_done = 1; failed--; /* the call that goes on is the one that fails */
        size = size / 2 / 4096 * 4096;
    } else if (error) { half_done = 0; FAIL(error); }
    return syscall(SYS_pwrite64, fd, data, size, offset);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) { return pwrite64(fd, data, size, offset); }

ssize_t pread64(int fd, void *data, size_t size, off64_t offset) {
    int error = meets_fd("pread", fd);
    if (error) FAIL(error);
    return syscall(SYS_pread64, fd, data, size, offset);
}
ssize_t pread(int fd, void *data, size_t size, off_t offset) { return pread64(fd, data, size, offset); }
ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset) {
    int error = meets_fd("pread", fd);
    if (error) FAIL(error);
    return NEXT(ssize_t, preadv64, int, const struct iovec *, int, off64_t)(fd, parts, count, offset);
}
ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags) {
    int error = meets_fd("pread", fd);
    if (error) FAIL(error);
    return NEXT(ssize_t, preadv64v2, int, const struct iovec *, int, off64_t, int)(fd, parts, count, offset, flags);
}

int fdatasync(int fd) {
    int error = meets_fd("fdatasync", fd);
    if (error) FAIL(error);
    return syscall(SYS_fdatasync, fd);
}
int fsync(int fd) {
    int error = meets_fd("fsync", fd);
    if (error) FAIL(error);
    return syscall(SYS_fsync, fd);
}
int ftruncate64(int fd, off64_t size) {
    int error = meets_fd("ftruncate", fd);
    if (error) FAIL(error);
    return syscall(SYS_ftruncate, fd, size);
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int close(int fd) {
    int error = meets_fd("close", fd);
    int result = syscall(SYS_close, fd);
    if (error) FAIL(error);
    return result;
}
int rename(const char *from, const char *to) {
    int error = meets("rename", to);
    if (error) FAIL(error);
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int unlink(const char *path) {
    int error = meets("unlink", path);
    if (error) FAIL(error);
    return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
