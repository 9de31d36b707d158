#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "CSyscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

int yonder_clone_range(int from, int64_t from_offset, int to, int64_t to_offset, int64_t count)
{
    /* A length of 0 would mean everything up to the end. */
    if (count <= 0) {
        errno = EINVAL;
        return -1;
    }
    struct file_clone_range range = {
        .src_fd = from,
        .src_offset = (uint64_t)from_offset,
        .src_length = (uint64_t)count,
        .dest_offset = (uint64_t)to_offset,
    };
    return ioctl(to, FICLONERANGE, &range);
}

int64_t yonder_seek_data(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_DATA); }

int64_t yonder_seek_hole(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_HOLE); }

int yonder_syncfs(int descriptor) { return syncfs(descriptor); }

int yonder_statx(int directory, const char *name, struct yonder_status *status)
{
    struct statx found;
    if (statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &found) != 0)
        return -1;
    *status = (struct yonder_status){
        .mode = found.stx_mode,
        .owner = found.stx_uid,
        .group = found.stx_gid,
        .links = found.stx_nlink,
        .inode = found.stx_ino,
        .device = makedev(found.stx_dev_major, found.stx_dev_minor),
        .size = (int64_t)found.stx_size,
        .blocks = (int64_t)found.stx_blocks,
        .modified_seconds = found.stx_mtime.tv_sec,
        .modified_nanoseconds = found.stx_mtime.tv_nsec,
        .changed_seconds = found.stx_ctime.tv_sec,
        .changed_nanoseconds = found.stx_ctime.tv_nsec,
        .birth_seconds = found.stx_btime.tv_sec,
        .birth_nanoseconds = found.stx_btime.tv_nsec,
        .has_birth = (found.stx_mask & STATX_BTIME) != 0,
    };
    return 0;
}

int64_t yonder_file_system_type(int descriptor)
{
    struct statfs found;
    return fstatfs(descriptor, &found) == 0 ? (int64_t)found.f_type : -1;
}

const int yonder_open_path = O_PATH;

ssize_t yonder_llistxattr(const char *path, char *list, size_t size) { return llistxattr(path, list, size); }

ssize_t yonder_lgetxattr(const char *path, const char *name, char *value, size_t size)
{
    return lgetxattr(path, name, value, size);
}
