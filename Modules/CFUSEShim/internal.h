/* What the C files of the shim share. */
#ifndef CFUSESHIM_INTERNAL_H
#define CFUSESHIM_INTERNAL_H

#define _GNU_SOURCE
#define FUSE_USE_VERSION 314

#include <fuse3/fuse_lowlevel.h>
#include <linux/fuse.h>
#include <stdatomic.h>

#include "CFUSEShim.h"

struct fuseshim_session {
    struct fuse_session *fuse;
    struct fuseshim_operations operations;
    struct fuseshim_options options;  /* the strings in it are not ours to use after creation */
    void *owner;

    /* The INIT conversation, of which libfuse shows only what it knows. Written by the thread that receives INIT,
     * while no other request can exist. */
    bool may_pass_through;       /* passthrough is requested, and this process has the rights */
    bool is_taken_over;          /* the kernel had its INIT reply from an earlier process */
    char init[FUSESHIM_INIT_CAPACITY]; /* the INIT request as it was received */
    atomic_size_t init_length;   /* 0 until INIT was seen */
    atomic_ullong init_unique;   /* INIT's number between its request and its reply, else 0 */
    atomic_uint kernel_minor;    /* 0 until INIT was seen */
    uint64_t kernel_flags;       /* all 64 */
    bool patch_passthrough;
    bool patch_kill_privileges;
};

/* Flags that older headers do not have. */
#define FUSESHIM_INIT_EXT (1ull << 30)
#define FUSESHIM_KILLPRIV_V2 (1ull << 28)
#define FUSESHIM_PASSTHROUGH (1ull << 37)
#define FUSESHIM_EXPIRE_ONLY (1u << 0)

/* The bit of a request's number that says that the kernel sends it again. */
#define FUSESHIM_RESENT (1ull << 63)

/* FUSE_NOTIFY_RESEND (Linux 6.9). */
#define FUSESHIM_NOTIFY_RESEND 7
#define FUSESHIM_HAS_RESEND (1ull << 39)

/* Whether the calling thread is in fuseshim_session_serve. */
extern _Thread_local bool fuseshim_serving;

/* FUSE_TMPFILE (Linux 6.1), which older headers lack and for which libfuse has no callback. */
#define FUSESHIM_TMPFILE 51

/* Whether the request that the calling thread is handing to libfuse as FUSE_CREATE is FUSE_TMPFILE. */
extern _Thread_local bool fuseshim_is_tmpfile;

/* operations.c: libfuse's table of callbacks, which calls ours. */
extern const struct fuse_lowlevel_ops fuseshim_lowlevel_operations;

/* init.c: what we want of the connection; and the hooks that show and change what libfuse does not. */
void fuseshim_negotiate(void *userdata, struct fuse_conn_info *connection);
int fuseshim_watch_init(fuseshim_session *session, int descriptor);

/* Reads what the INIT request says about the kernel. */
void fuseshim_note_init(fuseshim_session *session, const void *bytes, size_t count);

#endif
