/* Backing files for passthrough, by the kernel's own ioctl: libfuse 3.14 has no call for it. */
#include "internal.h"

#include <errno.h>
#include <sys/ioctl.h>

/* The kernel's struct fuse_backing_map, which older headers lack. */
struct backing_map {
    int32_t descriptor;
    uint32_t flags;
    uint64_t padding;
};

#define BACKING_OPEN _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

int32_t fuseshim_backing_open(fuseshim_session *session, int descriptor)
{
    struct backing_map map = {.descriptor = descriptor};
    int id = ioctl(fuse_session_fd(session->fuse), BACKING_OPEN, &map);
    return id < 0 ? -errno : id;
}

int fuseshim_backing_close(fuseshim_session *session, int32_t backing)
{
    uint32_t id = (uint32_t)backing;
    return ioctl(fuse_session_fd(session->fuse), BACKING_CLOSE, &id) < 0 ? errno : 0;
}
