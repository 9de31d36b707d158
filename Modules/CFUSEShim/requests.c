/* What can be asked of a request, and its interruption. */
#include "internal.h"

struct fuseshim_caller fuseshim_request_caller(fuseshim_request *request)
{
    const struct fuse_ctx *context = fuse_req_ctx((fuse_req_t)request);
    return (struct fuseshim_caller){context->pid, context->uid, context->gid, context->umask};
}

/* The key travels as a number, never as a pointer to something that the reply may free meanwhile. */
static void on_interrupt(fuse_req_t req, void *key)
{
    fuseshim_session *session = fuse_req_userdata(req);
    session->operations.interrupted(session->owner, (uint64_t)(uintptr_t)key);
}

void fuseshim_request_watch(fuseshim_request *request, uint64_t key)
{
    fuse_req_interrupt_func((fuse_req_t)request, on_interrupt, (void *)(uintptr_t)key);
}
