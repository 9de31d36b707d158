/* The system's libfuse3, in the version of its interface that CFUSEShim is written against.
 * Swift reaches it only through CFUSEShim. */
#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 314
#endif
#include <fuse3/fuse_lowlevel.h>
