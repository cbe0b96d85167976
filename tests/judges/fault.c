/* A faulty disk: preloaded, it fails the n-th call of a group below a directory, or kills the process there.

   fault_arm(directory, calls, at, error, sticky, victim) starts counting calls named in `calls`
   (" write fsync ") on files below `directory`; call number `at` (from 1) fails with `error`, and with
   `sticky` all later ones too. at 0 only counts. error 0 makes writes short; a negative one down to -64
   sends that signal; at -101 somebody cuts the file `victim` in half, and at -102 somebody writes into it.
   fault_count() is the count so far. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[4096], calls[256], victim[4096];
static size_t root_size;
static atomic_long count;
static long at;
static int number, sticky;

void fault_arm(const char *directory, const char *names, long n, int error, int again, const char *input) {
    root_size = strlen(directory);
    memcpy(root, directory, root_size + 1);
    snprintf(calls, sizeof calls, "%s", names);
    snprintf(victim, sizeof victim, "%s", input);
    atomic_store(&count, 0);
    at = n, number = error, sticky = again;
}

long fault_count(void) { return atomic_load(&count); }

static int below(const char *path) { return path && root_size && !strncmp(path, root, root_size); }

static int below_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return below(path);
}

/* Something from outside: a signal, or somebody who writes to the file `victim` or cuts it. */
static void spoil(void) {
    if (number > -100) kill(getpid(), -number);
    int fd = syscall(SYS_open, victim, O_WRONLY);
    if (number == -101) syscall(SYS_ftruncate, fd, syscall(SYS_lseek, fd, 0, SEEK_END) / 2);
    if (number == -102) syscall(SYS_pwrite64, fd, "changed!", 8, syscall(SYS_lseek, fd, 0, SEEK_END) / 3);
    syscall(SYS_close, fd);
}

/* 1: fail with errno set; 2: be short; 0: go on. */
static int faulty(const char *name) {
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    if (!root_size || !strstr(calls, word)) return 0;
    long now = atomic_fetch_add(&count, 1) + 1;
    if (!at || (sticky ? now < at : now != at)) return 0;
    if (number == 0) return 2;
    if (number < 0) return spoil(), 0;
    errno = number;
    return 1;
}

#define REAL(type, name, ...)                                      \
    static type (*real)(__VA_ARGS__);                              \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define WRITER(name, word, params, parameters, pass, half)          \
    ssize_t name params {                                           \
        REAL(ssize_t, #name, parameters);                           \
        int saved = errno, fault = below_fd(fd) ? faulty(word) : 0; \
        if (fault == 1) return -1;                                  \
        errno = saved;                                              \
        if (fault == 2 && size > 1) size = half;                    \
        return real pass;                                           \
    }
#define COMMA ,

WRITER(write, "write", (int fd, const void *data, size_t size), int COMMA const void * COMMA size_t,
       (fd, data, size), (size + 1) / 2)
WRITER(pwrite, "write", (int fd, const void *data, size_t size, off_t offset),
       int COMMA const void * COMMA size_t COMMA off_t, (fd, data, size, offset), (size + 1) / 2)
WRITER(pwrite64, "write", (int fd, const void *data, size_t size, off_t offset),
       int COMMA const void * COMMA size_t COMMA off_t, (fd, data, size, offset), (size + 1) / 2)
WRITER(read, "read", (int fd, void *data, size_t size), int COMMA void * COMMA size_t, (fd, data, size),
       (size + 1) / 2)
WRITER(pread, "read", (int fd, void *data, size_t size, off_t offset),
       int COMMA void * COMMA size_t COMMA off_t, (fd, data, size, offset), (size + 1) / 2)
WRITER(pread64, "read", (int fd, void *data, size_t size, off_t offset),
       int COMMA void * COMMA size_t COMMA off_t, (fd, data, size, offset), (size + 1) / 2)

ssize_t copy_file_range(int in, off64_t *from, int fd, off64_t *to, size_t size, unsigned flags) {
    REAL(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned);
    int fault = below_fd(fd) ? faulty("write") : 0;
    if (fault == 1) return -1;
    if (fault == 2 && size > 1) size = (size + 1) / 2;
    return real(in, from, fd, to, size, flags);
}

ssize_t sendfile(int fd, int in, off_t *offset, size_t size) {
    REAL(ssize_t, "sendfile", int, int, off_t *, size_t);
    if (below_fd(fd) && faulty("write") == 1) return -1;
    return real(fd, in, offset, size);
}
ssize_t sendfile64(int fd, int in, off_t *offset, size_t size) {
    REAL(ssize_t, "sendfile64", int, int, off_t *, size_t);
    if (below_fd(fd) && faulty("write") == 1) return -1;
    return real(fd, in, offset, size);
}

#define ON_FD(name, word, params, parameters, pass)      \
    int name params {                                    \
        REAL(int, #name, parameters);                    \
        if (below_fd(fd) && faulty(word) == 1) return -1; \
        return real pass;                                \
    }
ON_FD(fsync, "fsync", (int fd), int, (fd))
ON_FD(ftruncate, "truncate", (int fd, off_t size), int COMMA off_t, (fd, size))
ON_FD(ftruncate64, "truncate", (int fd, off_t size), int COMMA off_t, (fd, size))
ON_FD(fchmod, "attribute", (int fd, mode_t mode), int COMMA mode_t, (fd, mode))
ON_FD(fchown, "attribute", (int fd, uid_t user, gid_t group), int COMMA uid_t COMMA gid_t, (fd, user, group))
ON_FD(futimens, "attribute", (int fd, const struct timespec t[2]), int COMMA const struct timespec *, (fd, t))

#define ON_PATH(name, word, params, parameters, pass)     \
    int name params {                                     \
        REAL(int, #name, parameters);                     \
        if (below(path) && faulty(word) == 1) return -1;  \
        return real pass;                                 \
    }
ON_PATH(rename, "rename", (const char *path, const char *to), const char * COMMA const char *, (path, to))
ON_PATH(link, "rename", (const char *path, const char *to), const char * COMMA const char *, (path, to))
ON_PATH(unlink, "unlink", (const char *path), const char *, (path))
ON_PATH(mkdir, "mkdir", (const char *path, mode_t mode), const char * COMMA mode_t, (path, mode))
ON_PATH(linkat, "rename", (int from, const char *path, int dir, const char *to, int flags),
        int COMMA const char * COMMA int COMMA const char * COMMA int, (from, path, dir, to, flags))

DIR *opendir(const char *path) {
    REAL(DIR *, "opendir", const char *);
    if (below(path) && faulty("open") == 1) return NULL;
    return real(path);
}

#define OPEN(name)                                                                             \
    int name(const char *path, int flags, ...) {                                               \
        REAL(int, #name, const char *, int, ...);                                              \
        mode_t mode = 0;                                                                       \
        if (flags & (O_CREAT | __O_TMPFILE)) {                                                 \
            va_list rest;                                                                      \
            va_start(rest, flags);                                                             \
            mode = va_arg(rest, mode_t);                                                       \
            va_end(rest);                                                                      \
        }                                                                                      \
        if (below(path)) {                                                                     \
            const char *word = flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR) ? "create" : "open"; \
            if (faulty(word) == 1) return -1;                                                  \
        }                                                                                      \
        return real(path, flags, mode);                                                        \
    }
OPEN(open)
OPEN(open64)
