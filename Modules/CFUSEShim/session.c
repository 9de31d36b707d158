/* Sessions: made, served, destroyed. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Thread_local bool fuseshim_serving = false;
_Thread_local bool fuseshim_is_tmpfile = false;

/* The number of the request that the calling thread is handing to libfuse; 0 if it cannot be read. */
static _Thread_local uint64_t current_number = 0;

/* Reads the header of a request. libfuse leaves one of more than a page in its pipe, whatever its opcode
 * (fuse_session_receive_buf_int): tee(2) copies the header to `own`, a pipe that is made for the first of them, and leaves the
 * request as it is. */
static bool read_header(const struct fuse_buf *buffer, int own[2], struct fuse_in_header *header)
{
    if (buffer->size < sizeof *header) return false;
    if (!(buffer->flags & FUSE_BUF_IS_FD)) {
        memcpy(header, buffer->mem, sizeof *header);
        return true;
    }
    if (own[0] < 0 && pipe2(own, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    if (tee(buffer->fd, own[1], sizeof *header, SPLICE_F_NONBLOCK) <= 0) return false;
    return read(own[0], header, sizeof *header) == sizeof *header;
}

static void note_number(const struct fuse_buf *buffer, int own[2])
{
    struct fuse_in_header header;
    current_number = read_header(buffer, own, &header) ? header.unique : 0;
}

uint64_t fuseshim_current_number(void) { return current_number & ~FUSESHIM_RESENT; }

bool fuseshim_current_is_resent(void) { return (current_number & FUSESHIM_RESENT) != 0; }

/* libfuse answers ENOSYS to opcodes it does not know. FUSE_TMPFILE has the same arguments and the same reply as FUSE_CREATE
 * (fs/fuse/dir.c, fuse_create_open), so libfuse is shown that opcode, and on_create tells the two apart. A request as small
 * as this one is in memory: libfuse leaves only those of more than a page in its pipe. */
static void translate_tmpfile(struct fuse_buf *buffer)
{
    struct fuse_in_header *header = buffer->mem;
    fuseshim_is_tmpfile = !(buffer->flags & FUSE_BUF_IS_FD) && buffer->size >= sizeof *header &&
                          header->opcode == FUSESHIM_TMPFILE;
    if (fuseshim_is_tmpfile) header->opcode = FUSE_CREATE;
}

/* Appends a mount option with the characters escaped that libfuse's option parser would otherwise eat. */
static int add_option(char **options, const char *name, const char *value)
{
    size_t length = strlen(name) + 2 * (value ? strlen(value) : 0) + 2;
    char *text = malloc(length), *end;
    if (!text) return ENOMEM;
    end = stpcpy(text, name);
    for (const char *c = value; c && *c; c++) {
        if (*c == ',' || *c == '\\') *end++ = '\\';
        *end++ = *c;
    }
    *end = 0;
    int result = fuse_opt_add_opt(options, text) ? ENOMEM : 0;
    free(text);
    return result;
}

fuseshim_session *fuseshim_session_create(const struct fuseshim_options *options,
                                          const struct fuseshim_operations *operations)
{
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    char *text = NULL;
    fuseshim_session *session = calloc(1, sizeof *session);
    int failure = ENOMEM;
    if (!session) goto fail;
    session->operations = *operations;
    session->options = *options;
    session->options.source = session->options.subtype = NULL;

    if (add_option(&text, "fsname=", options->source) || add_option(&text, "subtype=", options->subtype) ||
        (options->allow_other && add_option(&text, "allow_other", NULL)) ||
        add_option(&text, "default_permissions", NULL) ||
        add_option(&text, options->allow_set_id ? "suid" : "nosuid", NULL) ||
        add_option(&text, options->allow_devices ? "dev" : "nodev", NULL))
        goto fail;
    if (fuse_opt_add_arg(&args, "fuse") || fuse_opt_add_arg(&args, "-o") || fuse_opt_add_arg(&args, text)) goto fail;

    errno = 0;
    session->fuse =
        fuse_session_new(&args, &fuseshim_lowlevel_operations, sizeof fuseshim_lowlevel_operations, session);
    if (!session->fuse) {
        failure = errno ? errno : EINVAL;
        goto fail;
    }
    fuse_opt_free_args(&args);
    free(text);
    return session;

fail:
    fuse_opt_free_args(&args);
    free(text);
    free(session);
    errno = failure;
    return NULL;
}

void fuseshim_session_set_owner(fuseshim_session *session, void *owner) { session->owner = owner; }

int fuseshim_session_serve(fuseshim_session *session)
{
    struct fuse_buf buffer = {0};
    int header_pipe[2] = {-1, -1};
    int result = 0;
    fuseshim_serving = true;
    while (!fuse_session_exited(session->fuse)) {
        /* A request that libfuse reads into memory, because it cannot make a pipe, leaves FUSE_BUF_IS_FD of the request before as it is
         * (fuse_session_receive_buf_int): libfuse would then look for it in a pipe that is closed, and never answer. */
        buffer.flags = 0;
        int received = fuse_session_receive_buf(session->fuse, &buffer);
        if (received == -EINTR || received == -EAGAIN) continue;
        if (received <= 0) {
            result = -received;
            break;
        }
        translate_tmpfile(&buffer);
        note_number(&buffer, header_pipe);
        fuse_session_process_buf(session->fuse, &buffer);
    }
    fuseshim_serving = false;
    free(buffer.mem);
    for (int end = 0; end < 2; end++)
        if (header_pipe[end] >= 0) close(header_pipe[end]);
    /* What ends one thread ends all; those that wait in read() leave when the connection goes. */
    fuse_session_exit(session->fuse);
    return result;
}

int fuseshim_session_descriptor(const fuseshim_session *session) { return fuse_session_fd(session->fuse); }

size_t fuseshim_session_init_request(fuseshim_session *session, void *buffer, size_t capacity)
{
    size_t length = atomic_load(&session->init_length);
    if (length > capacity) return 0;
    memcpy(buffer, session->init, length);
    return length;
}

int fuseshim_session_take_over(fuseshim_session *session, int descriptor, const void *init, size_t length)
{
    /* A keeper that was killed while it answered for a daemon that crashes has left it nonblocking: the threads would not wait for
     * requests, but ask for them without end. */
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK) < 0) return errno;
    session->is_taken_over = true;
    fuseshim_note_init(session, init, length);
    if (!atomic_load(&session->init_length)) return EINVAL;
    if (!(session->kernel_flags & FUSESHIM_HAS_RESEND)) return ENOSYS;
    return fuseshim_watch_init(session, descriptor);
}

int fuseshim_session_resume(fuseshim_session *session)
{
    struct fuse_buf buffer = {.size = atomic_load(&session->init_length), .mem = session->init};
    struct fuse_out_header resend = {.len = sizeof resend, .error = FUSESHIM_NOTIFY_RESEND};
    fuse_session_process_buf(session->fuse, &buffer);
    return write(fuse_session_fd(session->fuse), &resend, sizeof resend) < 0 ? errno : 0;
}

void fuseshim_session_destroy(fuseshim_session *session)
{
    fuse_session_destroy(session->fuse);
    free(session);
}
