/* Faults between a process and its libc, by LD_PRELOAD; steered through a mapped file.

     write, create, link, sync  --> counted, refused, or swallowed as the control file says
                                --> journaled, so that a power failure can be computed afterwards
     clock_gettime and friends  --> the wall clock plus an offset; the monotonic clock is left alone

   FAULTS_CONTROL  the control file: 64-bit integers, see `enum slot` (control.py has the same)
   FAULTS_ROOT     faults and journal are for what lies below this directory only
   FAULTS_JOURNAL  where operations are written down; may be missing

   INVARIANTS
     J1  a record is written after its operation succeeded, in the order of the operations: both
         happen under one lock.
     J2  a sync covers the records that stood in the journal when it began, not those during it.
     J3  what changes a file behind the journal's back (a shared mapping, sendfile) ends the process.

   Children do not inherit it: the JVM writes nothing that has to last.
   Not here: stdio. A file written through FILE* would be missing from the journal; the test that
   compares the journal with the directory would tell. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum slot {
    CLOCK_OFFSET_NS,     /* added to the wall clock */
    SYNC_FAILURES,       /* so many syncs of SYNC_KINDS still fail with EIO */
    SYNC_KINDS,
    WRITE_FAILURES,      /* so many writes of WRITE_KINDS still fail with EIO */
    WRITE_KINDS,
    SPACE_LEFT,          /* bytes until ENOSPC; negative: no limit */
    LYING_KINDS,         /* syncs of these kinds return 0 and do nothing */
    SYNCS,               /* counted for the reader */
    REFUSED,             /* operations that failed because of us, counted for the reader */
    FULL,                /* there is no space below the path that stands at FULL_PATH */
    SLOTS
};

/* NO_SPACE is told of a name, and of a descriptor that was opened while it was so. */
enum kind { OUTSIDE = 0, STASH = 1, WAREHOUSE = 2, NO_SPACE = 4 };

#define FULL_PATH 2048 /* bytes from the beginning of the control file; ends with a zero byte */

enum operation { START, CREATE, MKDIR, LINK, UNLINK, RENAME, WRITE, TRUNCATE, SYNC };

struct record {
    uint32_t operation, name_bytes, second_bytes, pad;
    int64_t at_ns;
    uint64_t node, directory, second_directory;
    int64_t offset; /* of a write; length of a truncation; records before the start of a sync */
    uint64_t data_bytes;
};

#define FDS 65536
static volatile int64_t *control;
static char root[PATH_MAX];
static size_t root_bytes;
static int journal = -1;
static int64_t records;
static unsigned char kinds[FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static pid_t own;
static int (*real_clock_gettime)(clockid_t, struct timespec *);
static void put(struct record r, const char *name, const char *second, const void *data);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS_CONTROL"), *above = getenv("FAULTS_ROOT");
    const char *log = getenv("FAULTS_JOURNAL");
    own = getpid();
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    if (!path || !above) return;
    int file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || mapped == MAP_FAILED || !realpath(above, root)) abort();
    syscall(SYS_close, file);
    root_bytes = strlen(root);
    if (log) journal = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log && journal < 0) abort();
    control = mapped;
    unsetenv("LD_PRELOAD");
    put((struct record){.operation = START, .node = own}, NULL, NULL, NULL);
}

/* --- what an operation is about ---------------------------------------------------------------- */

static int kind_of(const char *path) {
    if (strncmp(path, root, root_bytes) != 0 || path[root_bytes] != '/') return OUTSIDE;
    const char *last = strrchr(path, '/'), *below = (const char *)control + FULL_PATH;
    size_t bytes = control[FULL] ? strlen(below) : 0;
    if (bytes && strncmp(path, below, bytes) == 0 && path[bytes] == '/') return WAREHOUSE | NO_SPACE;
    return strncmp(last, "/stash.db", 9) == 0 ? STASH : WAREHOUSE;
}

static int kind_of_fd(int fd) {
    struct stat found;
    if (!control || fd < 0 || fd >= FDS || !kinds[fd]) return OUTSIDE;
    /* libc has ways of its own to close a descriptor (closedir); then a socket may have got it. */
    if (fstat(fd, &found) == 0 && (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode))) return kinds[fd];
    return kinds[fd] = OUTSIDE;
}

static int look_up(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, path, sizeof path - 1);
    if (bytes <= 0) return OUTSIDE;
    path[bytes] = 0;
    /* The root itself counts: what is made in it must be synced, too. */
    return strcmp(path, root) == 0 ? WAREHOUSE : kind_of(path);
}

/* The kind of a path whose last part need not exist; its directory's node and the last part. */
static int kind_at(int at, const char *path, uint64_t *directory, const char **name) {
    char above[PATH_MAX], full[PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct stat found;
    *name = slash ? slash + 1 : path;
    if (!control) return OUTSIDE;
    if (slash) snprintf(above, sizeof above, "%.*s/", (int)(slash - path), path);
    int fd = slash ? syscall(SYS_openat, at, above, O_PATH | O_DIRECTORY | O_CLOEXEC, 0)
           : at == AT_FDCWD ? syscall(SYS_openat, AT_FDCWD, ".", O_PATH | O_CLOEXEC, 0) : at;
    if (fd < 0) return OUTSIDE;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, full, sizeof full - NAME_MAX - 2);
    int kind = OUTSIDE;
    if (bytes > 0 && fstat(fd, &found) == 0) {
        snprintf(full + bytes, sizeof full - bytes, "/%s", *name);
        kind = kind_of(full);
        *directory = found.st_ino;
    }
    if (fd != at) syscall(SYS_close, fd);
    return kind;
}

static uint64_t node_of(int fd) {
    struct stat found;
    return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

static uint64_t node_at(int at, const char *path) {
    struct stat found;
    return fstatat(at, path, &found, AT_SYMLINK_NOFOLLOW) == 0 ? found.st_ino : 0;
}

/* --- writing it down --------------------------------------------------------------------------- */

static void put(struct record r, const char *name, const char *second, const void *data) {
    struct timespec now;
    if (journal < 0) return;
    real_clock_gettime(CLOCK_MONOTONIC, &now);
    r.at_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    r.name_bytes = name ? strlen(name) : 0;
    r.second_bytes = second ? strlen(second) : 0;
    struct iovec parts[] = {
        {&r, sizeof r}, {(void *)name, r.name_bytes}, {(void *)second, r.second_bytes},
        {(void *)data, r.data_bytes},
    };
    size_t all = sizeof r + r.name_bytes + r.second_bytes + r.data_bytes;
    if (syscall(SYS_writev, journal, parts, 4) != (ssize_t)all) abort();
    records++;
}

static int enough_space(int kind) {
    if (kind == OUTSIDE || (control[SPACE_LEFT] != 0 && !(kind & NO_SPACE))) return 1;
    control[REFUSED]++;
    errno = ENOSPC;
    return 0;
}

static int refuse(enum slot left, int64_t wanted, int kind) {
    if (!(wanted & kind) || control[left] <= 0) return 0;
    control[left]--;
    control[REFUSED]++;
    errno = EIO;
    return 1;
}

/* --- names ------------------------------------------------------------------------------------- */

static int open_at(int at, const char *path, int flags, mode_t mode) {
    if (!control) return syscall(SYS_openat, at, path, flags, mode);
    const char *name = path;
    uint64_t directory = 0;
    pthread_mutex_lock(&lock);
    int kind = OUTSIDE, fresh = 0;
    if (flags & O_CREAT) {
        kind = kind_at(at, path, &directory, &name);
        fresh = kind != OUTSIDE && node_at(at, path) == 0;
    }
    int fd = fresh && !enough_space(kind) ? -1 : syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 0 && fd < FDS) {
        kinds[fd] = look_up(fd);
        if (kinds[fd] && (flags & (O_TMPFILE & ~O_DIRECTORY))) abort();
        if (kinds[fd] && fresh)
            put((struct record){.operation = CREATE, .node = node_of(fd), .directory = directory},
                name, NULL, NULL);
        else if (kinds[fd] && (flags & O_TRUNC))
            put((struct record){.operation = TRUNCATE, .node = node_of(fd)}, NULL, NULL, NULL);
    }
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}

#define MODE_OF(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...) { MODE_OF(flags) return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE_OF(flags) return open_at(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE_OF(flags) return open_at(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE_OF(flags) return open_at(at, path, flags, mode); }
int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

int close(int fd) {
    /* Before the kernel may give the number to somebody else. A child between vfork and exec
       closes its own descriptors, in our memory. */
    if (fd >= 0 && fd < FDS && kinds[fd] && getpid() == own) kinds[fd] = OUTSIDE;
    return syscall(SYS_close, fd);
}

static int duplicated(int fd, int copy) {
    if (copy >= 0 && copy < FDS && fd >= 0 && fd < FDS) kinds[copy] = kinds[fd];
    return copy;
}

int closedir(DIR *directory) {
    static int (*next)(DIR *);
    int fd = dirfd(directory);
    if (!next) next = dlsym(RTLD_NEXT, "closedir");
    if (fd >= 0 && fd < FDS && kinds[fd] && getpid() == own) kinds[fd] = OUTSIDE;
    return next(directory);
}

int dup(int fd) { return duplicated(fd, syscall(SYS_dup, fd)); }
int dup2(int fd, int to) { return fd == to ? fd : duplicated(fd, syscall(SYS_dup3, fd, to, 0)); }
int dup3(int fd, int to, int flags) { return duplicated(fd, syscall(SYS_dup3, fd, to, flags)); }

int fcntl(int fd, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    int done = syscall(SYS_fcntl, fd, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(fd, done) : done;
}
int fcntl64(int fd, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return fcntl(fd, command, argument);
}

int mkdirat(int at, const char *path, mode_t mode) {
    const char *name;
    uint64_t directory = 0;
    pthread_mutex_lock(&lock);
    int kind = kind_at(at, path, &directory, &name);
    int done = enough_space(kind) ? syscall(SYS_mkdirat, at, path, mode) : -1;
    if (done == 0 && kind)
        put((struct record){.operation = MKDIR, .node = node_at(at, path), .directory = directory},
            name, NULL, NULL);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int linkat(int from, const char *old, int to, const char *path, int flags) {
    const char *name;
    uint64_t directory = 0;
    pthread_mutex_lock(&lock);
    int kind = kind_at(to, path, &directory, &name);
    int done = enough_space(kind) ? syscall(SYS_linkat, from, old, to, path, flags) : -1;
    if (done == 0 && kind)
        put((struct record){.operation = LINK, .node = node_at(to, path), .directory = directory},
            name, NULL, NULL);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}
int link(const char *old, const char *path) { return linkat(AT_FDCWD, old, AT_FDCWD, path, 0); }

int unlinkat(int at, const char *path, int flags) {
    const char *name;
    uint64_t directory = 0;
    pthread_mutex_lock(&lock);
    int kind = kind_at(at, path, &directory, &name);
    uint64_t node = kind ? node_at(at, path) : 0;
    int done = syscall(SYS_unlinkat, at, path, flags);
    if (done == 0 && kind)
        put((struct record){.operation = UNLINK, .node = node, .directory = directory},
            name, NULL, NULL);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    int done = unlink(path);
    return done != 0 && (errno == EISDIR || errno == EPERM) ? rmdir(path) : done;
}

int renameat2(int from, const char *old, int to, const char *path, unsigned flags) {
    const char *name, *before;
    uint64_t directory = 0, source = 0;
    pthread_mutex_lock(&lock);
    int kind = kind_at(to, path, &directory, &name);
    int kind_before = kind_at(from, old, &source, &before);
    int done = syscall(SYS_renameat2, from, old, to, path, flags);
    if (done == 0 && (kind || kind_before)) {
        if (!kind || !kind_before || flags & ~RENAME_NOREPLACE) abort();
        put((struct record){.operation = RENAME, .node = node_at(to, path), .directory = directory,
                            .second_directory = source},
            name, before, NULL);
    }
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}
int renameat(int from, const char *old, int to, const char *path) { return renameat2(from, old, to, path, 0); }
int rename(const char *old, const char *path) { return renameat2(AT_FDCWD, old, AT_FDCWD, path, 0); }

/* --- content ----------------------------------------------------------------------------------- */

/* offset < 0: at the position of the descriptor. */
static ssize_t write_at(int fd, const void *data, size_t bytes, off_t offset) {
    int kind = kind_of_fd(fd);
    if (!kind)
        return offset < 0 ? syscall(SYS_write, fd, data, bytes)
                          : syscall(SYS_pwrite64, fd, data, bytes, offset);
    pthread_mutex_lock(&lock);
    ssize_t done = -1;
    if (enough_space(kind) && !refuse(WRITE_FAILURES, control[WRITE_KINDS], kind)) {
        int64_t left = control[SPACE_LEFT];
        off_t place = offset;
        struct stat found;
        if (left > 0 && bytes > (size_t)left) bytes = left;
        if (offset < 0)
            place = fcntl(fd, F_GETFL) & O_APPEND && fstat(fd, &found) == 0
                        ? found.st_size : lseek(fd, 0, SEEK_CUR);
        done = offset < 0 ? syscall(SYS_write, fd, data, bytes)
                          : syscall(SYS_pwrite64, fd, data, bytes, offset);
        if (done > 0 && left > 0) control[SPACE_LEFT] = left - done;
        if (done > 0)
            put((struct record){.operation = WRITE, .node = node_of(fd), .offset = place,
                                .data_bytes = done},
                NULL, NULL, data);
    }
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

ssize_t write(int fd, const void *data, size_t bytes) { return write_at(fd, data, bytes, -1); }
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) { return write_at(fd, data, bytes, at); }
ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at) { return write_at(fd, data, bytes, at); }

/* A short write is allowed: the first part is enough, and the caller comes again. */
static ssize_t first_of(int fd, const struct iovec *parts, int count, off_t offset) {
    for (int i = 0; i < count; i++) {
        if (parts[i].iov_len == 0) continue;
        return write_at(fd, parts[i].iov_base, parts[i].iov_len, offset);
    }
    return 0;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    return kind_of_fd(fd) ? first_of(fd, parts, count, -1) : syscall(SYS_writev, fd, parts, count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    return kind_of_fd(fd) ? first_of(fd, parts, count, at)
                          : syscall(SYS_pwritev, fd, parts, count, at, 0);
}

int ftruncate(int fd, off_t length) {
    int kind = kind_of_fd(fd);
    if (!kind) return syscall(SYS_ftruncate, fd, length);
    pthread_mutex_lock(&lock);
    int done = syscall(SYS_ftruncate, fd, length);
    if (done == 0)
        put((struct record){.operation = TRUNCATE, .node = node_of(fd), .offset = length},
            NULL, NULL, NULL);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}
int ftruncate64(int fd, off64_t length) { return ftruncate(fd, length); }

static int unseen(int fd, const char *what) {
    if (!kind_of_fd(fd)) return 0;
    dprintf(2, "faults: %s on a file below the root is not journaled\n", what);
    abort();
}

void *mmap64(void *where, size_t bytes, int protection, int flags, int fd, off64_t at) {
    if (protection & PROT_WRITE && flags & MAP_SHARED) unseen(fd, "a shared mapping");
    return (void *)syscall(SYS_mmap, where, bytes, protection, flags, fd, at);
}
void *mmap(void *where, size_t bytes, int protection, int flags, int fd, off_t at) {
    return mmap64(where, bytes, protection, flags, fd, at);
}
ssize_t sendfile(int to, int from, off_t *at, size_t bytes) {
    unseen(to, "sendfile");
    return syscall(SYS_sendfile, to, from, at, bytes);
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t bytes) { return sendfile(to, from, at, bytes); }
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t bytes, unsigned flags) {
    unseen(to, "copy_file_range");
    return syscall(SYS_copy_file_range, from, a, to, b, bytes, flags);
}
int fallocate(int fd, int mode, off_t at, off_t bytes) {
    unseen(fd, "fallocate");
    return syscall(SYS_fallocate, fd, mode, at, bytes);
}
int fallocate64(int fd, int mode, off64_t at, off64_t bytes) { return fallocate(fd, mode, at, bytes); }
int posix_fallocate(int fd, off_t at, off_t bytes) { return fallocate(fd, 0, at, bytes) ? errno : 0; }
int posix_fallocate64(int fd, off64_t at, off64_t bytes) { return posix_fallocate(fd, at, bytes); }

/* --- durability -------------------------------------------------------------------------------- */

static int sync_of(int fd, long number) {
    int kind = kind_of_fd(fd);
    if (!kind) return syscall(number, fd);
    pthread_mutex_lock(&lock);
    int refused = refuse(SYNC_FAILURES, control[SYNC_KINDS], kind);
    int lying = !refused && (control[LYING_KINDS] & kind);
    int64_t before = records;
    control[SYNCS]++;
    pthread_mutex_unlock(&lock);
    if (refused || lying) return refused ? -1 : 0;
    int done = syscall(number, fd);
    if (done != 0) return done;
    pthread_mutex_lock(&lock);
    put((struct record){.operation = SYNC, .node = node_of(fd), .offset = before}, NULL, NULL, NULL);
    pthread_mutex_unlock(&lock);
    return 0;
}

int fsync(int fd) { return sync_of(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_of(fd, SYS_fdatasync); }

/* --- time -------------------------------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = real_clock_gettime ? real_clock_gettime(clock, now)
                                  : syscall(SYS_clock_gettime, clock, now);
    if (done == 0 && control && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t all = now->tv_sec * 1000000000LL + now->tv_nsec + control[CLOCK_OFFSET_NS];
        now->tv_sec = all / 1000000000LL;
        now->tv_nsec = all % 1000000000LL;
    }
    return done;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
    if (where) *where = exact.tv_sec;
    return exact.tv_sec;
}
