/* Replies. Structures of the kernel are filled here rather than by libfuse, whose older versions do not know all of
 * their fields: the backing id, some flags of open, and lifetimes that a double cannot hold. */
#include "internal.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/statvfs.h>

static void fill_attributes(struct fuse_attr *out, const struct fuseshim_attributes *in)
{
    out->ino = in->node;
    out->size = in->size;
    out->blocks = in->blocks;
    out->atime = (uint64_t)in->access_seconds;
    out->mtime = (uint64_t)in->modification_seconds;
    out->ctime = (uint64_t)in->change_seconds;
    out->atimensec = in->access_nanoseconds;
    out->mtimensec = in->modification_nanoseconds;
    out->ctimensec = in->change_nanoseconds;
    out->mode = in->mode;
    out->nlink = in->links;
    out->uid = in->owner;
    out->gid = in->group;
    out->rdev = in->device;
    out->blksize = in->block_size;
}

static void fill_entry(struct fuse_entry_out *out, const struct fuseshim_entry *in)
{
    out->nodeid = in->node;
    out->generation = in->generation;
    out->entry_valid = in->entry_lifetime.seconds;
    out->entry_valid_nsec = in->entry_lifetime.nanoseconds;
    out->attr_valid = in->attributes_lifetime.seconds;
    out->attr_valid_nsec = in->attributes_lifetime.nanoseconds;
    fill_attributes(&out->attr, &in->attributes);
}

static void fill_opened(struct fuse_open_out *out, const struct fuseshim_opened *in)
{
    out->fh = in->handle;
    out->open_flags = in->flags & ~FUSESHIM_OPEN_PASSTHROUGH;
    if (in->backing <= 0) return;
    out->open_flags |= FUSESHIM_OPEN_PASSTHROUGH;
    /* The last word: padding in older headers, backing_id in newer ones. */
    memcpy((char *)out + sizeof *out - sizeof in->backing, &in->backing, sizeof in->backing);
}

static int reply(fuseshim_request *request, const void *bytes, size_t count)
{
    return fuse_reply_buf((fuse_req_t)request, bytes, count);
}

int fuseshim_reply_error(fuseshim_request *request, int error) { return fuse_reply_err((fuse_req_t)request, error); }

int fuseshim_reply_entry(fuseshim_request *request, const struct fuseshim_entry *entry)
{
    struct fuse_entry_out out = {0};
    fill_entry(&out, entry);
    return reply(request, &out, sizeof out);
}

int fuseshim_reply_attributes(fuseshim_request *request, const struct fuseshim_attributes *attributes,
                              struct fuseshim_lifetime lifetime)
{
    struct fuse_attr_out out = {.attr_valid = lifetime.seconds, .attr_valid_nsec = lifetime.nanoseconds};
    fill_attributes(&out.attr, attributes);
    return reply(request, &out, sizeof out);
}

int fuseshim_reply_opened(fuseshim_request *request, const struct fuseshim_opened *opened)
{
    struct fuse_open_out out = {0};
    fill_opened(&out, opened);
    return reply(request, &out, sizeof out);
}

int fuseshim_reply_created(fuseshim_request *request, const struct fuseshim_entry *entry,
                           const struct fuseshim_opened *opened)
{
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out opened;
    } out = {0};
    fill_entry(&out.entry, entry);
    fill_opened(&out.opened, opened);
    return reply(request, &out, sizeof out);
}

int fuseshim_reply_bytes(fuseshim_request *request, const void *bytes, size_t count)
{
    return reply(request, bytes, count);
}

int fuseshim_reply_descriptor(fuseshim_request *request, int descriptor, int64_t offset, size_t count)
{
    struct fuse_bufvec data = FUSE_BUFVEC_INIT(count);
    data.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK | FUSE_BUF_FD_RETRY;
    data.buf[0].fd = descriptor;
    data.buf[0].pos = offset;
    return fuse_reply_data((fuse_req_t)request, &data, fuseshim_serving ? FUSE_BUF_SPLICE_MOVE : FUSE_BUF_NO_SPLICE);
}

int fuseshim_reply_written(fuseshim_request *request, size_t count)
{
    return fuse_reply_write((fuse_req_t)request, count);
}

int fuseshim_reply_statistics(fuseshim_request *request, const struct fuseshim_statistics *in)
{
    struct statvfs out = {
        .f_bsize = in->block_size,
        .f_frsize = in->fragment_size,
        .f_blocks = in->blocks,
        .f_bfree = in->free_blocks,
        .f_bavail = in->available_blocks,
        .f_files = in->files,
        .f_ffree = in->free_files,
        .f_namemax = in->name_length,
    };
    return fuse_reply_statfs((fuse_req_t)request, &out);
}

int fuseshim_reply_length(fuseshim_request *request, size_t length)
{
    return fuse_reply_xattr((fuse_req_t)request, length);
}

int fuseshim_reply_offset(fuseshim_request *request, int64_t offset)
{
    return fuse_reply_lseek((fuse_req_t)request, offset);
}

static void fill_name(struct fuse_dirent *out, const void *name, size_t length, const struct fuseshim_entry *entry,
                      int64_t offset)
{
    out->ino = entry->attributes.node;
    out->off = (uint64_t)offset;
    out->namelen = (uint32_t)length;
    out->type = (entry->attributes.mode & S_IFMT) >> 12;
    memcpy(out->name, name, length);
}

size_t fuseshim_add_entry(void *buffer, size_t capacity, const void *name, size_t name_length,
                          const struct fuseshim_entry *entry, int64_t offset, bool plus)
{
    size_t head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
    size_t length = FUSE_DIRENT_ALIGN(head + name_length);
    if (length > capacity) return 0;
    memset(buffer, 0, length);
    if (plus) {
        struct fuse_direntplus *out = buffer;
        fill_entry(&out->entry_out, entry);
        fill_name(&out->dirent, name, name_length, entry, offset);
    } else {
        fill_name(buffer, name, name_length, entry, offset);
    }
    return length;
}
