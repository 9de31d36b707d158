/* Invalidations of what the kernel has cached. */
#include "internal.h"

#include <errno.h>
#include <sys/uio.h>

int fuseshim_notify_expire(fuseshim_session *session, uint64_t parent, const char *name, size_t name_length)
{
    /* libfuse's call for this changed its arguments between versions, so the message is written here. A kernel older
     * than Linux 6.2 does not look at the flag and forgets the name altogether. */
    struct {
        uint64_t parent;
        uint32_t name_length, flags;
    } body = {.parent = parent, .name_length = (uint32_t)name_length, .flags = FUSESHIM_EXPIRE_ONLY};
    struct fuse_out_header header = {
        .len = (uint32_t)(sizeof header + sizeof body + name_length + 1),
        .error = FUSE_NOTIFY_INVAL_ENTRY,
    };
    struct iovec pieces[] = {
        {.iov_base = &header, .iov_len = sizeof header},
        {.iov_base = &body, .iov_len = sizeof body},
        {.iov_base = (char *)name, .iov_len = name_length},
        {.iov_base = "", .iov_len = 1},
    };
    return writev(fuse_session_fd(session->fuse), pieces, 4) < 0 ? -errno : 0;
}

int fuseshim_notify_delete(fuseshim_session *session, uint64_t parent, uint64_t child, const char *name,
                           size_t name_length)
{
    return fuse_lowlevel_notify_delete(session->fuse, parent, child, name, name_length);
}

int fuseshim_notify_node(fuseshim_session *session, uint64_t node, int64_t offset, int64_t length)
{
    return fuse_lowlevel_notify_inval_inode(session->fuse, node, offset, length);
}
