/* FUSE_INIT: the features that we request, and those that libfuse does not know and we add to its reply. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* The newest minor version of the protocol whose parts we patch in; the kernel takes the lower of the two. */
#define PATCHED_MINOR 40

/* Where max_stack_depth lies: the word after flags2, in headers of every age. */
#define STACK_DEPTH_OFFSET (offsetof(struct fuse_init_out, flags2) + sizeof(uint32_t))

/* The largest write request in bytes. */
#define MAX_WRITE (1u << 20)

/* The largest number of unanswered background requests (readahead). More than the kernel's default of 12, because parked
 * requests count. */
#define MAX_BACKGROUND 64

void fuseshim_negotiate(void *userdata, struct fuse_conn_info *connection)
{
    fuseshim_session *session = userdata;
    const struct fuseshim_options *options = &session->options;

    unsigned wanted = FUSE_CAP_READDIRPLUS | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_CACHE_SYMLINKS |
                      FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                      FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_HANDLE_KILLPRIV;
    unsigned unwanted = FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_WRITEBACK_CACHE |
                        FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_DONT_MASK | FUSE_CAP_IOCTL_DIR;
    if (options->keep_umask) {
        wanted |= FUSE_CAP_DONT_MASK;
        unwanted &= ~FUSE_CAP_DONT_MASK;
    }

    if (options->posix_acl) wanted |= FUSE_CAP_POSIX_ACL;

    if (options->async_read)
        wanted |= FUSE_CAP_ASYNC_READ;
    else
        unwanted |= FUSE_CAP_ASYNC_READ;

    bool passthrough = false;
    if (session->may_pass_through) {
#ifdef FUSE_CAP_PASSTHROUGH
        if (connection->capable & FUSE_CAP_PASSTHROUGH) {
            passthrough = true;
            wanted |= FUSE_CAP_PASSTHROUGH;
            connection->max_backing_stack_depth = 1;
        }
#endif
        if (!passthrough && session->kernel_flags & FUSESHIM_PASSTHROUGH)
            passthrough = session->patch_passthrough = true;
    }
    session->patch_kill_privileges = (session->kernel_flags & FUSESHIM_KILLPRIV_V2) != 0;

    connection->want = (connection->want & ~unwanted) | (wanted & connection->capable);
    connection->max_write = MAX_WRITE;
    connection->max_background = MAX_BACKGROUND;
    connection->congestion_threshold = MAX_BACKGROUND - MAX_BACKGROUND / 4;

    unsigned want = connection->want;
    struct fuseshim_features features = {
        .max_write = connection->max_write,
        .passthrough = passthrough,
        .readdirplus = (want & FUSE_CAP_READDIRPLUS) != 0,
        .parallel_directory_operations = (want & FUSE_CAP_PARALLEL_DIROPS) != 0,
        .explicit_invalidation = (want & FUSE_CAP_EXPLICIT_INVAL_DATA) != 0,
        .atomic_truncate = (want & FUSE_CAP_ATOMIC_O_TRUNC) != 0,
        .splice_read = (want & FUSE_CAP_SPLICE_READ) != 0,
        .splice_write = (want & FUSE_CAP_SPLICE_WRITE) != 0,
        .kill_privileges_v2 = session->patch_kill_privileges,
        .posix_acl = (want & FUSE_CAP_POSIX_ACL) != 0,
    };
    session->operations.started(session->owner, &features);
}

/* Keeps what the kernel offers from the INIT request. It is the first request, and always comes through read(2):
 * libfuse splices only once it knows the protocol's version. */
void fuseshim_note_init(fuseshim_session *session, const void *bytes, size_t count)
{
    struct fuse_in_header header;
    struct fuse_init_in init = {0};
    if (count < sizeof header || count > sizeof session->init) return;
    memcpy(&header, bytes, sizeof header);
    if (header.opcode != FUSE_INIT) return;
    memcpy(session->init, bytes, count);
    atomic_store(&session->init_length, count);
    count -= sizeof header;
    memcpy(&init, (const char *)bytes + sizeof header, count < sizeof init ? count : sizeof init);
    session->kernel_flags = init.flags;
    if (init.flags & FUSESHIM_INIT_EXT) session->kernel_flags |= (uint64_t)init.flags2 << 32;
    atomic_store(&session->init_unique, header.unique);
    atomic_store(&session->kernel_minor, init.minor);
}

/* Adds to the INIT reply what libfuse left out. */
static void patch_init(const fuseshim_session *session, struct fuse_init_out *out)
{
    if (session->patch_kill_privileges) out->flags |= FUSESHIM_KILLPRIV_V2;
    if (!session->patch_passthrough) return;
    uint32_t depth = 1;
    out->flags |= FUSESHIM_INIT_EXT;
    out->flags2 |= FUSESHIM_PASSTHROUGH >> 32;
    memcpy((char *)out + STACK_DEPTH_OFFSET, &depth, sizeof depth);
    uint32_t minor = session->kernel_minor;
    out->minor = minor < PATCHED_MINOR ? minor : PATCHED_MINOR;
}

/* Writes to every page of a thread's buffer once. A process that is killed while the kernel copies a request to a page that is
 * not there yet cannot have the page any more, and the kernel fails the request with EIO (fuse_dev_do_read, fs/fuse/dev.c): it
 * does not send it to the next process, and pages of a mapping would be lost. */
static void make_resident(void *buffer, size_t size)
{
    static _Thread_local const void *resident;
    if (resident == buffer) return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *bytes = buffer;
    for (size_t at = 0; at < size; at += page) bytes[at] = 0;
    if (size) bytes[size - 1] = 0;
    resident = buffer;
}

static ssize_t hook_read(int descriptor, void *buffer, size_t size, void *userdata)
{
    fuseshim_session *session = userdata;
    make_resident(buffer, size);
    ssize_t count = read(descriptor, buffer, size);
    bool first = atomic_load_explicit(&session->kernel_minor, memory_order_relaxed) == 0;
    if (count > 0 && first) fuseshim_note_init(session, buffer, (size_t)count);
    return count;
}

static ssize_t hook_writev(int descriptor, struct iovec *pieces, int count, void *userdata)
{
    fuseshim_session *session = userdata;
    unsigned long long unique = atomic_load_explicit(&session->init_unique, memory_order_relaxed);
    if (unique) {
        const struct fuse_out_header *header = pieces[0].iov_base;
        if (header->unique == unique && session->is_taken_over) {
            /* The kernel had this reply from the process that mounted. */
            atomic_store(&session->init_unique, 0);
            return (ssize_t)header->len;
        }
        if (header->unique == unique && count == 2 && pieces[1].iov_len >= STACK_DEPTH_OFFSET + sizeof(uint32_t)) {
            patch_init(session, pieces[1].iov_base);
            atomic_store(&session->init_unique, 0);
        }
    }
    return writev(descriptor, pieces, count);
}

static ssize_t hook_splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags,
                           void *userdata)
{
    (void)userdata;
    return splice(from, from_offset, to, to_offset, size, flags);
}

int fuseshim_watch_init(fuseshim_session *session, int descriptor)
{
    struct fuse_custom_io hooks = {
        .read = hook_read,
        .writev = hook_writev,
        .splice_receive = hook_splice,
        .splice_send = hook_splice,
    };
    int failure = fuse_session_custom_io(session->fuse, &hooks, descriptor);
    session->may_pass_through = session->options.passthrough && fuseshim_may_pass_through();
    return failure < 0 ? -failure : failure;
}
