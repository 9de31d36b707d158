#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "CSyscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
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

int yonder_fallocate(int descriptor, int mode, int64_t offset, int64_t length) {
    return fallocate(descriptor, mode, offset, length);
}

int yonder_punch_hole(int descriptor, int64_t offset, int64_t length) {
    return fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
}

void yonder_begin_writing_back(int descriptor, int64_t offset, int64_t count) {
    (void)sync_file_range(descriptor, offset, count, SYNC_FILE_RANGE_WRITE);
}

int yonder_syncfs(int descriptor) { return syncfs(descriptor); }

uint64_t yonder_device(uint32_t major, uint32_t minor) { return makedev(major, minor); }

/* Linux 6.8; an older kernel ignores it. */
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U
#endif

int yonder_statx(int directory, const char *name, int is_fresh, struct yonder_status *status)
{
    struct statx found;
    if (statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | (is_fresh ? AT_STATX_FORCE_SYNC : 0),
              STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID | STATX_MNT_ID_UNIQUE, &found) != 0)
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
        .mount = (found.stx_mask & (STATX_MNT_ID | STATX_MNT_ID_UNIQUE)) != 0 ? found.stx_mnt_id : 0,
        .is_mount_root = (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0,
        .is_mount_unique = (found.stx_mask & STATX_MNT_ID_UNIQUE) != 0,
    };
    return 0;
}

int64_t yonder_file_system_type(int descriptor)
{
    struct statfs found;
    return fstatfs(descriptor, &found) == 0 ? (int64_t)found.f_type : -1;
}

int yonder_forbid_core_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

uint64_t yonder_file_system_identifier(int descriptor)
{
    struct statfs found;
    if (fstatfs(descriptor, &found) != 0)
        return 0;
    uint64_t identifier = 0;
    memcpy(&identifier, &found.f_fsid, sizeof identifier < sizeof found.f_fsid ? sizeof identifier : sizeof found.f_fsid);
    return identifier;
}

static int take_lease(int descriptor, int type)
{
    /* The default signal, SIGIO, would end the process. */
    if (fcntl(descriptor, F_SETSIG, SIGURG) != 0)
        return -1;
    return fcntl(descriptor, F_SETLEASE, type);
}

int yonder_take_write_lease(int descriptor) { return take_lease(descriptor, F_WRLCK); }

int yonder_take_read_lease(int descriptor) { return take_lease(descriptor, F_RDLCK); }

int yonder_give_up_lease(int descriptor) { return fcntl(descriptor, F_SETLEASE, F_UNLCK); }

const int yonder_open_path = O_PATH;
const int yonder_open_temporary = O_TMPFILE;

int yonder_rename_new(int from, const char *name, int to, const char *new_name)
{
    return renameat2(from, name, to, new_name, RENAME_NOREPLACE);
}

int yonder_exchange(int one, const char *name, int other, const char *other_name)
{
    return renameat2(one, name, other, other_name, RENAME_EXCHANGE);
}

int yonder_set_modified(int file, const char *name, int64_t seconds, int64_t nanoseconds)
{
    struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = seconds, .tv_nsec = nanoseconds},
    };
    return utimensat(file, name, times, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
}

int yonder_set_owner(int file, uint32_t owner, uint32_t group)
{
    return fchownat(file, "", owner, group, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
}

ssize_t yonder_listxattr(const char *path, char *list, size_t size) { return listxattr(path, list, size); }

ssize_t yonder_getxattr(const char *path, const char *name, char *value, size_t size)
{
    return getxattr(path, name, value, size);
}

int yonder_setxattr(const char *path, const char *name, const void *value, size_t size)
{
    return setxattr(path, name, value, size, 0);
}

int yonder_removexattr(const char *path, const char *name) { return removexattr(path, name); }

ssize_t yonder_llistxattr(const char *path, char *list, size_t size) { return llistxattr(path, list, size); }

ssize_t yonder_lgetxattr(const char *path, const char *name, char *value, size_t size)
{
    return lgetxattr(path, name, value, size);
}

int yonder_created_path(int64_t call, const uint64_t arguments[6], uint64_t *flags_at, int *source)
{
    *flags_at = 0;
    *source = -1;
    switch (call) {
#ifdef SYS_open
    case SYS_open: return arguments[1] & O_CREAT ? 0 : -1;
#endif
#ifdef SYS_creat
    case SYS_creat: return 0;
#endif
#ifdef SYS_mkdir
    case SYS_mkdir: return 0;
#endif
#ifdef SYS_mknod
    case SYS_mknod: return 0;
#endif
#ifdef SYS_symlink
    case SYS_symlink: return 1;
#endif
    case SYS_openat: return arguments[2] & O_CREAT ? 1 : -1;
#ifdef SYS_openat2
    case SYS_openat2: *flags_at = arguments[2]; return 1;
#endif
    case SYS_mkdirat: return 1;
    case SYS_mknodat: return 1;
    case SYS_symlinkat: return 2;
#ifdef SYS_rename
    case SYS_rename: *source = 0; return 1;
#endif
#ifdef SYS_link
    case SYS_link: *source = 0; return 1;
#endif
#ifdef SYS_renameat
    case SYS_renameat: *source = 1; return 3;
#endif
    case SYS_renameat2:
        /* An exchange makes no name. */
        if (arguments[4] & 2)
            return -1;
        *source = 1;
        return 3;
    case SYS_linkat: *source = 1; return 3;
    default: return -1;
    }
}

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

int yonder_memfd_create(const char *name)
{
    int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (descriptor == -1 && errno == EINVAL)
        descriptor = memfd_create(name, MFD_CLOEXEC);
    return descriptor;
}

int yonder_columns(int descriptor)
{
    struct winsize size = {0};
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int yonder_rows(int descriptor)
{
    struct winsize size = {0};
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

int yonder_threads_are_named(int process, const char *name, const char *other)
{
    char path[64], text[32];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *threads = opendir(path);
    if (!threads) return -1;
    int are_named = 1;
    for (struct dirent *entry; are_named && (entry = readdir(threads));) {
        int thread = atoi(entry->d_name);
        if (thread <= 0 || thread == process) continue;
        snprintf(path, sizeof path, "/proc/%d/task/%d/comm", process, thread);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        /* It has ended meanwhile. */
        if (file < 0) continue;
        ssize_t length = read(file, text, sizeof text - 1);
        close(file);
        if (length <= 0) continue;
        text[length] = 0;
        text[strcspn(text, "\n")] = 0;
        are_named = strcmp(text, name) == 0 || strcmp(text, other) == 0;
    }
    closedir(threads);
    return are_named;
}
