/* How files are opened, and the data of write requests, in memory or still in a pipe. */
#include "internal.h"

#include <fcntl.h>

const int fuseshim_open_direct = O_DIRECT;

size_t fuseshim_data_size(const fuseshim_data *data)
{
    const struct fuse_bufvec *vector = (const struct fuse_bufvec *)data;
    size_t size = 0;
    for (size_t k = vector->idx; k < vector->count; k++) size += vector->buf[k].size;
    return size - (vector->idx < vector->count ? vector->off : 0);
}

int64_t fuseshim_data_write(fuseshim_data *data, int descriptor, int64_t offset)
{
    struct fuse_bufvec target = FUSE_BUFVEC_INIT(fuseshim_data_size(data));
    target.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK | FUSE_BUF_FD_RETRY;
    target.buf[0].fd = descriptor;
    target.buf[0].pos = offset;
    return fuse_buf_copy(&target, (struct fuse_bufvec *)data, 0);
}

int64_t fuseshim_data_read(fuseshim_data *data, void *buffer, size_t capacity)
{
    size_t size = fuseshim_data_size(data);
    struct fuse_bufvec target = FUSE_BUFVEC_INIT(size < capacity ? size : capacity);
    target.buf[0].mem = buffer;
    return fuse_buf_copy(&target, (struct fuse_bufvec *)data, 0);
}
