// Preloaded into a process: the n-th call that changes a file in one folder fails, or kills the process.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { OFF, FAILS, KILLS, TEARS };  // TEARS: half of a write is written, then the process is killed

static char folder[4096];
static long calls, at;
static int how = OFF;

void faults_arm(const char *where, long call, int kind) {
    snprintf(folder, sizeof folder, "%s/", where);
    calls = 0;
    at = call;
    how = kind;
}

long faults_calls(void) { return calls; }

void faults_disarm(void) { how = OFF; }

static int in_folder(const char *path) {
    char full[4096];
    if (path[0] != '/') {
        if (!getcwd(full, sizeof full)) return 0;
        strncat(full, "/", sizeof full - strlen(full) - 1);
        strncat(full, path, sizeof full - strlen(full) - 1);
        path = full;
    }
    return strncmp(path, folder, strlen(folder)) == 0;
}

static int of_folder(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 2);
    if (size < 0) return 0;
    path[size] = '/';  // the folder itself counts too
    path[size + 1] = 0;
    return in_folder(path);
}

// Whether this call is to fail.
static int hit(int error) {
    if (++calls != at) return 0;
    if (how == FAILS) {
        errno = error;
        return 1;
    }
    kill(getpid(), SIGKILL);
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define WRITES(name, position_type, position, given)                                        \
    ssize_t name(int fd, const void *data, size_t size position_type) {                     \
        if (how != OFF && of_folder(fd)) {                                                  \
            if (how == TEARS && calls + 1 == at) REAL(name)(fd, data, size / 2 given);      \
            if (hit(ENOSPC)) return -1;                                                     \
        }                                                                                   \
        return REAL(name)(fd, data, size given);                                            \
    }
#define AT , off_t position
#define AT64 , off64_t position
#define POSITION , position
#define NOTHING
WRITES(write, NOTHING, NOTHING, NOTHING)
WRITES(pwrite, AT, position, POSITION)
WRITES(pwrite64, AT64, position, POSITION)

#define OF_FD(name, error, type, more, given)                       \
    int name(int fd more) {                                         \
        if (how != OFF && of_folder(fd) && hit(error)) return -1;   \
        return REAL(name)(fd given);                                \
    }
OF_FD(fsync, EIO, int, NOTHING, NOTHING)
OF_FD(fdatasync, EIO, int, NOTHING, NOTHING)
#define LENGTH , off_t length
#define LENGTH64 , off64_t length
#define GIVEN , length
OF_FD(ftruncate, EIO, int, LENGTH, GIVEN)
OF_FD(ftruncate64, EIO, int, LENGTH64, GIVEN)

int rename(const char *from, const char *to) {
    if (how != OFF && in_folder(to) && hit(EIO)) return -1;
    return REAL(rename)(from, to);
}

int unlink(const char *path) {
    if (how != OFF && in_folder(path) && hit(EIO)) return -1;
    return REAL(unlink)(path);
}

int rmdir(const char *path) {
    if (how != OFF && in_folder(path) && hit(EIO)) return -1;
    return REAL(rmdir)(path);
}

int unlinkat(int fd, const char *path, int flags) {
    if (how != OFF && (path[0] == '/' ? in_folder(path) : of_folder(fd)) && hit(EIO)) return -1;
    return REAL(unlinkat)(fd, path, flags);
}

int mkdir(const char *path, mode_t mode) {
    if (how != OFF && in_folder(path) && hit(ENOSPC)) return -1;
    return REAL(mkdir)(path, mode);
}

int symlink(const char *text, const char *path) {
    if (how != OFF && in_folder(path) && hit(ENOSPC)) return -1;
    return REAL(symlink)(text, path);
}

#define OPENS(name)                                                             \
    int name(const char *path, int flags, ...) {                                \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, int) : 0;  \
        va_end(rest);                                                           \
        if (how != OFF && flags & O_CREAT && in_folder(path) && hit(ENOSPC)) return -1; \
        return REAL(name)(path, flags, mode);                                   \
    }
OPENS(open)
OPENS(open64)
