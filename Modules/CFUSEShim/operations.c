/* libfuse's callbacks: each flattens its arguments and calls ours. */
#include "internal.h"

#define SESSION ((fuseshim_session *)fuse_req_userdata(req))
#define REQUEST ((fuseshim_request *)req)
#define CALL(operation, ...) SESSION->operations.operation(SESSION->owner, REQUEST, __VA_ARGS__)

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) { CALL(lookup, parent, name); }

static void on_forget(fuse_req_t req, fuse_ino_t node, uint64_t lookups)
{
    SESSION->operations.forget(SESSION->owner, node, lookups);
    fuse_reply_none(req);
}

static void on_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t k = 0; k < count; k++)
        SESSION->operations.forget(SESSION->owner, forgets[k].ino, forgets[k].nlookup);
    fuse_reply_none(req);
}

static void on_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    CALL(getattr, node, fi != NULL, fi ? fi->fh : 0);
}

static void on_setattr(fuse_req_t req, fuse_ino_t node, struct stat *status, int valid, struct fuse_file_info *fi)
{
    struct fuseshim_change change = {
        .valid = (uint32_t)valid,
        .attributes = {
            .node = node,
            .size = (uint64_t)status->st_size,
            .access_seconds = status->st_atim.tv_sec,
            .modification_seconds = status->st_mtim.tv_sec,
            .change_seconds = status->st_ctim.tv_sec,
            .access_nanoseconds = (uint32_t)status->st_atim.tv_nsec,
            .modification_nanoseconds = (uint32_t)status->st_mtim.tv_nsec,
            .change_nanoseconds = (uint32_t)status->st_ctim.tv_nsec,
            .mode = status->st_mode,
            .owner = status->st_uid,
            .group = status->st_gid,
        },
    };
    CALL(setattr, node, &change, fi != NULL, fi ? fi->fh : 0);
}

static void on_readlink(fuse_req_t req, fuse_ino_t node)
{
    SESSION->operations.readlink(SESSION->owner, REQUEST, node);
}

static void on_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    CALL(mknod, parent, name, mode, device);
}

static void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    CALL(mkdir, parent, name, mode);
}

static void on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name) { CALL(unlink, parent, name); }

static void on_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name) { CALL(rmdir, parent, name); }

static void on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    CALL(symlink, target, parent, name);
}

static void on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
                      unsigned flags)
{
    CALL(rename, parent, name, new_parent, new_name, flags);
}

static void on_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t new_parent, const char *new_name)
{
    CALL(link, node, new_parent, new_name);
}

static void on_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi) { CALL(open, node, fi->flags); }

static void on_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info *fi)
{
    CALL(read, node, fi->fh, offset, size);
}

static void on_write_buf(fuse_req_t req, fuse_ino_t node, struct fuse_bufvec *data, off_t offset,
                         struct fuse_file_info *fi)
{
    CALL(write, node, fi->fh, offset, (fuseshim_data *)data, fi->writepage);
}

static void on_flush(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    CALL(flush, node, fi->fh);
}

static void on_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    CALL(release, node, fi->fh, fi->flags);
}

static void on_fsync(fuse_req_t req, fuse_ino_t node, int data_only, struct fuse_file_info *fi)
{
    CALL(fsync, node, fi->fh, data_only != 0);
}

static void on_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi) { CALL(opendir, node, fi->flags); }

static void on_readdir(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info *fi)
{
    CALL(readdir, node, fi->fh, offset, size, false);
}

static void on_readdirplus(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info *fi)
{
    CALL(readdir, node, fi->fh, offset, size, true);
}

static void on_releasedir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    CALL(releasedir, node, fi->fh);
}

static void on_fsyncdir(fuse_req_t req, fuse_ino_t node, int data_only, struct fuse_file_info *fi)
{
    CALL(fsyncdir, node, fi->fh, data_only != 0);
}

static void on_statfs(fuse_req_t req, fuse_ino_t node) { SESSION->operations.statfs(SESSION->owner, REQUEST, node); }

static void on_setxattr(fuse_req_t req, fuse_ino_t node, const char *name, const char *value, size_t size, int flags)
{
    CALL(setxattr, node, name, value, size, flags);
}

static void on_getxattr(fuse_req_t req, fuse_ino_t node, const char *name, size_t size)
{
    CALL(getxattr, node, name, size);
}

static void on_listxattr(fuse_req_t req, fuse_ino_t node, size_t size) { CALL(listxattr, node, size); }

static void on_removexattr(fuse_req_t req, fuse_ino_t node, const char *name) { CALL(removexattr, node, name); }

static void on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
    if (fuseshim_is_tmpfile)
        CALL(tmpfile, parent, mode, fi->flags);
    else
        CALL(create, parent, name, mode, fi->flags);
}

static void on_fallocate(fuse_req_t req, fuse_ino_t node, int mode, off_t offset, off_t length,
                         struct fuse_file_info *fi)
{
    CALL(fallocate, node, fi->fh, mode, offset, length);
}

static void on_lseek(fuse_req_t req, fuse_ino_t node, off_t offset, int whence, struct fuse_file_info *fi)
{
    CALL(lseek, node, fi->fh, offset, whence);
}

/* Operations that are missing here are answered with ENOSYS by libfuse. File locks: the kernel then keeps them locally. ACCESS:
 * not sent with default_permissions. COPY_FILE_RANGE: the kernel then reads and writes. */
const struct fuse_lowlevel_ops fuseshim_lowlevel_operations = {
    .init = fuseshim_negotiate,
    .lookup = on_lookup,
    .forget = on_forget,
    .forget_multi = on_forget_multi,
    .getattr = on_getattr,
    .setattr = on_setattr,
    .readlink = on_readlink,
    .mknod = on_mknod,
    .mkdir = on_mkdir,
    .unlink = on_unlink,
    .rmdir = on_rmdir,
    .symlink = on_symlink,
    .rename = on_rename,
    .link = on_link,
    .open = on_open,
    .read = on_read,
    .write_buf = on_write_buf,
    .flush = on_flush,
    .release = on_release,
    .fsync = on_fsync,
    .opendir = on_opendir,
    .readdir = on_readdir,
    .readdirplus = on_readdirplus,
    .releasedir = on_releasedir,
    .fsyncdir = on_fsyncdir,
    .statfs = on_statfs,
    .setxattr = on_setxattr,
    .getxattr = on_getxattr,
    .listxattr = on_listxattr,
    .removexattr = on_removexattr,
    .create = on_create,
    .fallocate = on_fallocate,
    .lseek = on_lseek,
};
