/* Linux calls that Swift's Glibc does not show, because their declarations ask for _GNU_SOURCE.
 * Each is the call of its name and nothing more: -1 and errno on failure. */
#ifndef YONDER_CSYSCALLS_H
#define YONDER_CSYSCALLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* copy_file_range(2) with no flags. */
ssize_t yonder_copy_file_range(int from, int64_t from_offset, int to, int64_t to_offset, size_t count);

/* lseek(2) with SEEK_DATA and SEEK_HOLE. */
int64_t yonder_seek_data(int descriptor, int64_t offset);
int64_t yonder_seek_hole(int descriptor, int64_t offset);

/* syncfs(2). */
int yonder_syncfs(int descriptor);

#endif
