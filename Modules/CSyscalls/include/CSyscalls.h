/* Linux calls that Swift's Glibc does not show, because their declarations ask for _GNU_SOURCE.
 * Each is the call of its name and nothing more: -1 and errno on failure. */
#ifndef YONDER_CSYSCALLS_H
#define YONDER_CSYSCALLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "notify.h"

/* ioctl(2) FICLONERANGE: shares blocks between two files. -1 and errno where it cannot, also for no bytes at all. */
int yonder_clone_range(int from, int64_t from_offset, int to, int64_t to_offset, int64_t count);

/* lseek(2) with SEEK_DATA and SEEK_HOLE. */
int64_t yonder_seek_data(int descriptor, int64_t offset);
int64_t yonder_seek_hole(int descriptor, int64_t offset);

/* fallocate(2). */
int yonder_fallocate(int descriptor, int mode, int64_t offset, int64_t length);

/* fallocate(2) with FALLOC_FL_PUNCH_HOLE. */
int yonder_punch_hole(int descriptor, int64_t offset, int64_t length);

/* sync_file_range(2) with SYNC_FILE_RANGE_WRITE. */
void yonder_begin_writing_back(int descriptor, int64_t offset, int64_t count);

/* syncfs(2). */
int yonder_syncfs(int descriptor);

/*
 * What statx(2) tells, as far as Yonder asks. `has_birth` is 0 where the file system keeps no birth time, `is_mount_root` where the
 * kernel does not tell it (before Linux 5.8), and then `mount`, the number of the mount, is 0, too. `is_mount_unique` is 1 if no other
 * mount gets that number until the machine is started again (Linux 6.8).
 */
struct yonder_status {
    uint32_t mode, owner, group, links;
    uint64_t inode, device, mount;
    int64_t size, blocks;
    int64_t modified_seconds, changed_seconds, birth_seconds;
    uint32_t modified_nanoseconds, changed_nanoseconds, birth_nanoseconds;
    int has_birth, is_mount_root, is_mount_unique;
};

/*
 * statx(2) of a name in an open directory, or of `directory` itself when the name is empty. Follows no link. With `is_fresh` a network
 * file system asks its server, whatever it has in its cache.
 */
int yonder_statx(int directory, const char *name, int is_fresh, struct yonder_status *status);

/* The number of a device, as yonder_status has it. makedev(3) */
uint64_t yonder_device(uint32_t major, uint32_t minor);

/* open(2)'s O_PATH. */
extern const int yonder_open_path;

/* Which argument of a system call is the address of a path that the call makes; -1 where it makes none. Where flags_at is not 0
 * afterwards, the call makes it only when the 64-bit flags at that address contain O_CREAT (openat2(2)). Where source is not -1
 * afterwards, that argument is the address of a path which the call looks up as well (rename(2), link(2)). */
int yonder_created_path(int64_t call, const uint64_t arguments[6], uint64_t *flags_at, int *source);

/* open(2)'s O_TMPFILE. */
extern const int yonder_open_temporary;

/* renameat2(2) with RENAME_NOREPLACE, or with RENAME_EXCHANGE. */
int yonder_rename_new(int from, const char *name, int to, const char *new_name);
int yonder_exchange(int one, const char *name, int other, const char *other_name);

/* utimensat(2): a name in an open directory, or `file` itself when the name is empty; follows no link. Sets the
 * modification time and leaves the other. */
int yonder_set_modified(int file, const char *name, int64_t seconds, int64_t nanoseconds);

/* fchownat(2) of an open file. */
int yonder_set_owner(int file, uint32_t owner, uint32_t group);

/* listxattr(2), getxattr(2), setxattr(2) and removexattr(2). */
ssize_t yonder_listxattr(const char *path, char *list, size_t size);
ssize_t yonder_getxattr(const char *path, const char *name, char *value, size_t size);
int yonder_setxattr(const char *path, const char *name, const void *value, size_t size);
int yonder_removexattr(const char *path, const char *name);

/* llistxattr(2) and lgetxattr(2). */
ssize_t yonder_llistxattr(const char *path, char *list, size_t size);
ssize_t yonder_lgetxattr(const char *path, const char *name, char *value, size_t size);

/* prctl(2) PR_SET_DUMPABLE with 0. */
int yonder_forbid_core_dumps(void);

/* The magic number of the file system that holds an open file, from fstatfs(2). */
int64_t yonder_file_system_type(int descriptor);

/* The identifier (f_fsid) of the file system that holds an open file, from fstatfs(2); 0 where it has none. */
uint64_t yonder_file_system_identifier(int descriptor);

/* fcntl(2) F_SETLEASE: a write lease on a file that no other process has open; a process that opens it waits until it is
 * given up. The signal that announces them is SIGURG, which a process ignores by default. -1 and errno on failure. */
int yonder_take_write_lease(int descriptor);
/* Likewise a read lease, on a file that no process, this one included, has open for writing. */
int yonder_take_read_lease(int descriptor);
int yonder_give_up_lease(int descriptor);

/* ioctl_tty(2) TIOCGWINSZ: the columns of a terminal; 0 where they are unknown, and for anything else. */
int yonder_columns(int descriptor);

/* ioctl_tty(2) TIOCGWINSZ: the rows of a terminal; 0 where they are unknown, and for anything else. */
int yonder_rows(int descriptor);

/* memfd_create(2) with MFD_CLOEXEC, not executable where the kernel knows MFD_NOEXEC_SEAL (Linux 6.3). */
int yonder_memfd_create(const char *name);

/* A load and a store of an aligned word. No store moves before an earlier one: a process that is killed has made the stores
 * before some point of its program and none after it. */
static inline uint64_t yonder_load_word(const void *address)
{
    return __atomic_load_n((const uint64_t *)address, __ATOMIC_ACQUIRE);
}

static inline void yonder_store_word(void *address, uint64_t word)
{
    __atomic_store_n((uint64_t *)address, word, __ATOMIC_RELEASE);
}

/* Whether all threads of a process but its main thread have one of these names (/proc/PID/task/TID/comm); also if there are none. -1
 * and errno for a process that has ended. */
int yonder_threads_are_named(int process, const char *name, const char *other);

#endif
