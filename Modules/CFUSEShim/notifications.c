/* Invalidations of what the kernel has cached. The messages are written here: a thread that shares no descriptors with the rest of
 * the process sends them (fuseshim_keep_only), and libfuse's calls change between versions. */
#include "internal.h"

#include <errno.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

static int notify(int device, int code, void *body, size_t size, const char *rest, size_t rest_length)
{
    struct fuse_out_header header = {
        .len = (uint32_t)(sizeof header + size + rest_length),
        .error = code,
    };
    struct iovec pieces[] = {
        {.iov_base = &header, .iov_len = sizeof header},
        {.iov_base = body, .iov_len = size},
        {.iov_base = (char *)rest, .iov_len = rest_length},
    };
    return writev(device, pieces, rest ? 3 : 2) < 0 ? -errno : 0;
}

int fuseshim_notify_entry(int device, uint64_t parent, const char *name, size_t name_length, bool stays)
{
    /* A kernel older than Linux 6.2 does not look at the flag and forgets the name altogether. */
    struct {
        uint64_t parent;
        uint32_t name_length, flags;
    } body = {.parent = parent, .name_length = (uint32_t)name_length, .flags = stays ? FUSESHIM_EXPIRE_ONLY : 0};
    return notify(device, FUSE_NOTIFY_INVAL_ENTRY, &body, sizeof body, name, name_length + 1);
}

int fuseshim_notify_delete(int device, uint64_t parent, uint64_t child, const char *name, size_t name_length)
{
    struct fuse_notify_delete_out body = {.parent = parent, .child = child, .namelen = (uint32_t)name_length};
    return notify(device, FUSE_NOTIFY_DELETE, &body, sizeof body, name, name_length + 1);
}

int fuseshim_notify_node(int device, uint64_t node, int64_t offset, int64_t length)
{
    struct fuse_notify_inval_inode_out body = {.ino = node, .off = offset, .len = length};
    return notify(device, FUSE_NOTIFY_INVAL_INODE, &body, sizeof body, NULL, 0);
}

int fuseshim_notify_longer(int device, uint64_t node, int64_t size, int64_t end, int content)
{
    /* The kernel takes the size with a byte. Its page is not up to date by that, unless the byte is the first one of the page. Another
     * read may have filled the page meanwhile: so the byte is that of the file. */
    int64_t last = size - 1, page = sysconf(_SC_PAGESIZE);
    char byte = 0;
    struct fuse_notify_store_out body = {.nodeid = node, .offset = (uint64_t)last, .size = 1};
    if (last % page == 0 || last / page <= (end - 1) / page || pread(content, &byte, 1, last) != 1)
        return fuseshim_notify_node(device, node, -1, 0);
    return notify(device, FUSE_NOTIFY_STORE, &body, sizeof body, &byte, 1);
}

int fuseshim_raise_event(const char *path, const char *attribute)
{
    return lsetxattr(path, attribute, "", 0, 0) == 0 ? 0 : errno;
}
