#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "CSyscalls.h"

#include <unistd.h>

ssize_t yonder_copy_file_range(int from, int64_t from_offset, int to, int64_t to_offset, size_t count)
{
    off_t in = from_offset, out = to_offset;
    return copy_file_range(from, &in, to, &out, count, 0);
}

int64_t yonder_seek_data(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_DATA); }

int64_t yonder_seek_hole(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_HOLE); }

int yonder_syncfs(int descriptor) { return syncfs(descriptor); }
