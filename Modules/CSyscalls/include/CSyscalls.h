/* Linux calls that Swift's Glibc does not show, because their declarations ask for _GNU_SOURCE.
 * Each is the call of its name and nothing more: -1 and errno on failure. */
#ifndef YONDER_CSYSCALLS_H
#define YONDER_CSYSCALLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ioctl(2) FICLONERANGE: shares blocks between two files. -1 and errno where it cannot, also for no bytes at all. */
int yonder_clone_range(int from, int64_t from_offset, int to, int64_t to_offset, int64_t count);

/* lseek(2) with SEEK_DATA and SEEK_HOLE. */
int64_t yonder_seek_data(int descriptor, int64_t offset);
int64_t yonder_seek_hole(int descriptor, int64_t offset);

/* syncfs(2). */
int yonder_syncfs(int descriptor);

/* What statx(2) tells, as far as Yonder asks. `has_birth` is 0 where the file system keeps no birth time. */
struct yonder_status {
    uint32_t mode, owner, group, links;
    uint64_t inode, device;
    int64_t size, blocks;
    int64_t modified_seconds, changed_seconds, birth_seconds;
    uint32_t modified_nanoseconds, changed_nanoseconds, birth_nanoseconds;
    int has_birth;
};

/* statx(2) of a name in an open directory, or of `directory` itself when the name is empty. Follows no link. */
int yonder_statx(int directory, const char *name, struct yonder_status *status);

/* open(2)'s O_PATH. */
extern const int yonder_open_path;

/* llistxattr(2) and lgetxattr(2). */
ssize_t yonder_llistxattr(const char *path, char *list, size_t size);
ssize_t yonder_lgetxattr(const char *path, const char *name, char *value, size_t size);

/* The magic number of the file system that holds an open file, from fstatfs(2). */
int64_t yonder_file_system_type(int descriptor);

#endif
