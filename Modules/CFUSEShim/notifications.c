/* Telling the kernel to forget what it has cached. */
#include "internal.h"

int fuseshim_notify_entry(fuseshim_session *session, uint64_t parent, const char *name, size_t name_length)
{
    return fuse_lowlevel_notify_inval_entry(session->fuse, parent, name, name_length);
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
