/* libfuse's low-level API behind a small one of our own: no bit fields, no macros, no struct whose layout depends on
 * the version of libfuse, and passthrough even where libfuse has no call for it.
 *
 * Functions that can fail return 0 or a positive errno, except the replies and notifications, which return what
 * libfuse returns: 0 or a negative errno. */
#ifndef CFUSESHIM_H
#define CFUSESHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A connection to the kernel: a libfuse session and what the shim keeps with it. */
typedef struct fuseshim_session fuseshim_session;

/* A request that waits for its answer (libfuse's fuse_req). Valid until it is answered, on any thread. */
typedef struct fuseshim_request fuseshim_request;

/* The bytes of a write request (libfuse's fuse_bufvec). Valid only during the call that hands it over. */
typedef struct fuseshim_data fuseshim_data;

/* ---- Values ---- */

/* open(2)'s O_DIRECT. */
extern const int fuseshim_open_direct;

/* Who made a request, as the kernel says. */
struct fuseshim_caller {
    int32_t process;
    uint32_t user;
    uint32_t group;
    uint32_t umask;
};

/* What stat shows of a node. Times are seconds and nanoseconds, seconds may be negative. */
struct fuseshim_attributes {
    uint64_t node;
    uint64_t size;
    uint64_t blocks;
    int64_t access_seconds;
    int64_t modification_seconds;
    int64_t change_seconds;
    uint32_t access_nanoseconds;
    uint32_t modification_nanoseconds;
    uint32_t change_nanoseconds;
    uint32_t mode;
    uint32_t links;
    uint32_t owner;
    uint32_t group;
    uint32_t device;
    uint32_t block_size;
};

/* How long the kernel may believe something. */
struct fuseshim_lifetime {
    uint64_t seconds;
    uint32_t nanoseconds;
};

/* A name's node. With node 0 it says that there is none, for entry_lifetime. */
struct fuseshim_entry {
    uint64_t node;
    uint64_t generation;
    struct fuseshim_lifetime entry_lifetime;
    struct fuseshim_lifetime attributes_lifetime;
    struct fuseshim_attributes attributes;
};

/* How a file or directory was opened. */
struct fuseshim_opened {
    uint64_t handle;
    uint32_t flags;   /* FUSESHIM_OPEN_* */
    int32_t backing;  /* a backing id, or 0 */
};

/* The kernel's FOPEN_ flags. FUSESHIM_OPEN_PASSTHROUGH is set by the reply when there is a backing id. */
enum {
    FUSESHIM_OPEN_DIRECT_IO = 1 << 0,
    FUSESHIM_OPEN_KEEP_CACHE = 1 << 1,
    FUSESHIM_OPEN_CACHE_DIRECTORY = 1 << 3,
    FUSESHIM_OPEN_NO_FLUSH = 1 << 5,
    FUSESHIM_OPEN_PASSTHROUGH = 1 << 7,
};

/* What a setattr request asks for: the fields named in `valid` (FUSESHIM_SET_*). */
struct fuseshim_change {
    uint32_t valid;
    struct fuseshim_attributes attributes;
};

/* The kernel's FATTR_ flags. */
enum {
    FUSESHIM_SET_MODE = 1 << 0,
    FUSESHIM_SET_OWNER = 1 << 1,
    FUSESHIM_SET_GROUP = 1 << 2,
    FUSESHIM_SET_SIZE = 1 << 3,
    FUSESHIM_SET_ACCESS_TIME = 1 << 4,
    FUSESHIM_SET_MODIFICATION_TIME = 1 << 5,
    FUSESHIM_SET_ACCESS_TIME_NOW = 1 << 7,
    FUSESHIM_SET_MODIFICATION_TIME_NOW = 1 << 8,
};

/* What statfs shows. */
struct fuseshim_statistics {
    uint64_t blocks;
    uint64_t free_blocks;
    uint64_t available_blocks;
    uint64_t files;
    uint64_t free_files;
    uint32_t block_size;
    uint32_t fragment_size;
    uint32_t name_length;
};

/* What was agreed with the kernel when the connection began. */
struct fuseshim_features {
    uint32_t max_write;
    bool passthrough;
    bool readdirplus;
    bool parallel_directory_operations;
    bool explicit_invalidation;
    bool atomic_truncate;
    bool splice_read;
    bool splice_write;
    bool kill_privileges_v2;
    bool posix_acl;
};

/* ---- Operations ---- */

/* What the kernel asks. Every call comes on a thread that runs fuseshim_session_serve, with the session's owner
 * first; strings and data are valid only during the call. Every request is to be answered exactly once, then or later,
 * from any thread. No member may be null. */
struct fuseshim_operations {
    /* The connection has begun, or is about to within this call's thread. Not a request. */
    void (*started)(void *owner, const struct fuseshim_features *features);
    /* The caller of a watched request was interrupted. Locks of libfuse are held: neither answer nor wait here. */
    void (*interrupted)(void *owner, uint64_t key);
    /* The kernel forgets so many lookups of a node. Not a request. */
    void (*forget)(void *owner, uint64_t node, uint64_t lookups);

    void (*lookup)(void *owner, fuseshim_request *request, uint64_t parent, const char *name);
    void (*getattr)(void *owner, fuseshim_request *request, uint64_t node, bool has_handle, uint64_t handle);
    void (*setattr)(void *owner, fuseshim_request *request, uint64_t node, const struct fuseshim_change *change,
                    bool has_handle, uint64_t handle);
    void (*readlink)(void *owner, fuseshim_request *request, uint64_t node);
    void (*mknod)(void *owner, fuseshim_request *request, uint64_t parent, const char *name, uint32_t mode,
                  uint64_t device);
    void (*mkdir)(void *owner, fuseshim_request *request, uint64_t parent, const char *name, uint32_t mode);
    void (*unlink)(void *owner, fuseshim_request *request, uint64_t parent, const char *name);
    void (*rmdir)(void *owner, fuseshim_request *request, uint64_t parent, const char *name);
    void (*symlink)(void *owner, fuseshim_request *request, const char *target, uint64_t parent, const char *name);
    void (*rename)(void *owner, fuseshim_request *request, uint64_t parent, const char *name, uint64_t new_parent,
                   const char *new_name, uint32_t flags);
    void (*link)(void *owner, fuseshim_request *request, uint64_t node, uint64_t new_parent, const char *new_name);
    void (*open)(void *owner, fuseshim_request *request, uint64_t node, int32_t flags);
    void (*read)(void *owner, fuseshim_request *request, uint64_t node, uint64_t handle, int64_t offset, size_t size);
    void (*write)(void *owner, fuseshim_request *request, uint64_t node, uint64_t handle, int64_t offset,
                  fuseshim_data *data, bool from_cache);
    void (*flush)(void *owner, fuseshim_request *request, uint64_t node, uint64_t handle);
    void (*release)(void *owner, fuseshim_request *request, uint64_t node, uint64_t handle, int32_t flags);
    void (*fsync)(void *owner, fuseshim_request *request, uint64_t node, uint64_t handle, bool data_only);
    void (*opendir)(void *owner, fuseshim_request *request, uint64_t node, int32_t flags);
    void (*readdir)(void *owner, fuseshim_request *request, uint64_t node, uint64_t handle, int64_t offset,
                    size_t size, bool plus);
    void (*releasedir)(void *owner, fuseshim_request *request, uint64_t node, uint64_t handle);
    void (*fsyncdir)(void *owner, fuseshim_request *request, uint64_t node, uint64_t handle, bool data_only);
    void (*statfs)(void *owner, fuseshim_request *request, uint64_t node);
    void (*setxattr)(void *owner, fuseshim_request *request, uint64_t node, const char *name, const void *value,
                     size_t size, int32_t flags);
    void (*getxattr)(void *owner, fuseshim_request *request, uint64_t node, const char *name, size_t size);
    void (*listxattr)(void *owner, fuseshim_request *request, uint64_t node, size_t size);
    void (*removexattr)(void *owner, fuseshim_request *request, uint64_t node, const char *name);
    void (*create)(void *owner, fuseshim_request *request, uint64_t parent, const char *name, uint32_t mode,
                   int32_t flags);
    /* O_TMPFILE: makes and opens a file that has no name, in the file system of a directory. Answered as create is. */
    void (*tmpfile)(void *owner, fuseshim_request *request, uint64_t parent, uint32_t mode, int32_t flags);
    void (*fallocate)(void *owner, fuseshim_request *request, uint64_t node, uint64_t handle, int32_t mode,
                      int64_t offset, int64_t length);
    void (*lseek)(void *owner, fuseshim_request *request, uint64_t node, uint64_t handle, int64_t offset,
                  int32_t whence);
};

/* ---- Sessions ---- */

/* Mount options and requested features. `started` reports the features that the kernel offers, too. */
struct fuseshim_options {
    const char *source;   /* the first field of /proc/mounts, any bytes */
    const char *subtype;  /* the type there is fuse.SUBTYPE */
    bool allow_other;
    bool allow_devices; /* mounts with dev instead of nodev; root only */
    bool allow_set_id;  /* mounts with suid instead of nosuid; root only */
    bool passthrough;      /* needs CAP_SYS_ADMIN */
    bool async_read;       /* several reads of one reader at a time, which then are not interrupted */
    bool keep_umask;       /* leave applying the umask to the file system (DONT_MASK) */
    bool posix_acl;        /* the kernel checks POSIX ACLs; the file system keeps them in step with modes */
};

/* A session that is not mounted yet; null and errno when libfuse refuses. Strings and table are copied. */
fuseshim_session *fuseshim_session_create(const struct fuseshim_options *options,
                                          const struct fuseshim_operations *operations);

/* Sets the first argument of all operations. Before the session serves. */
void fuseshim_session_set_owner(fuseshim_session *session, void *owner);

/* Mounts at an absolute path without symbolic links: mount(2) as root, fusermount3 as any other user. Does not
 * wait for the connection to begin: an access to the mount blocks until a thread serves. Returns 0 or an errno. */
int fuseshim_session_mount(fuseshim_session *session, const char *path);

/* The /dev/fuse descriptor of a mounted session. The mount lives as long as any process has it open. */
int fuseshim_session_descriptor(const fuseshim_session *session);

/* The largest INIT request in bytes. */
enum { FUSESHIM_INIT_CAPACITY = 256 };

/* Copies the INIT request that the kernel sent. Returns its length; 0 before it came, or when it does not fit. */
size_t fuseshim_session_init_request(fuseshim_session *session, void *buffer, size_t capacity);

/* Takes a mount over from a process that has ended, instead of fuseshim_session_mount: its descriptor, which the session closes
 * at its end, and its INIT request. The options must be those of the first session. Returns 0 or an errno: ENOSYS when the
 * kernel cannot send unanswered requests again (before Linux 6.9); the descriptor then stays the caller's. */
int fuseshim_session_take_over(fuseshim_session *session, int descriptor, const void *init, size_t length);

/* Begins to serve a mount that was taken over: `started` is called, and the kernel sends again what was not answered. Before any
 * thread serves. Returns 0 or an errno. */
int fuseshim_session_resume(fuseshim_session *session);

/* Receives and handles requests on the calling thread until the connection ends. Any number of threads may.
 * Returns 0 when it ended, or the errno that made it impossible to go on. */
int fuseshim_session_serve(fuseshim_session *session);

/* Closes the device, which ends the connection if no other descriptor is open, and frees everything. No thread may serve any
 * more, no request may be unanswered. Does not unmount. */
void fuseshim_session_destroy(fuseshim_session *session);

/* Whether the mount of a device exists. When it is gone, the kernel gives the numbers of the mount and of its device to others. */
bool fuseshim_is_connected(int descriptor);

/* umount2(2), or fusermount3 where that is not permitted. Without `lazy` EBUSY while in use. Returns 0 or an errno. */
int fuseshim_unmount(const char *path, bool lazy);

/* Aborts the session's connection, whose number is the minor number of the mount's device. It needs no mount of fusectl for a
 * caller with CAP_SYS_ADMIN. Returns 0 or an errno: ENOENT when the connection is gone, also when another
 * mount has its number. */
int fuseshim_session_abort(fuseshim_session *session, const char *number);

/* Whether allow_other will be accepted from this user: root, or user_allow_other in /etc/fuse.conf. */
bool fuseshim_may_allow_other(void);

/* Whether this process may register backing files (CAP_SYS_ADMIN). */
bool fuseshim_may_pass_through(void);

/* ---- Requests ---- */

/* The kernel's number of the request whose operation the calling thread is in; 0 where the process has no descriptors left to
 * read that of one of more than a page. Unique for the life of a mount. */
uint64_t fuseshim_current_number(void);

/* Whether the kernel sends this request again, because a process that has ended received it and did not answer. */
bool fuseshim_current_is_resent(void);

/* Who made a request. */
struct fuseshim_caller fuseshim_request_caller(fuseshim_request *request);

/* Asks for `interrupted` with this key when the caller is interrupted; at once (within this call) if it was already.
 * The request must not be answered before this has returned. */
void fuseshim_request_watch(fuseshim_request *request, uint64_t key);

/* ---- Replies. Each uses its request up. -ENOENT: the kernel has given up on it (interrupted). ---- */

int fuseshim_reply_error(fuseshim_request *request, int error);  /* error 0 is success without data */
int fuseshim_reply_entry(fuseshim_request *request, const struct fuseshim_entry *entry);
int fuseshim_reply_attributes(fuseshim_request *request, const struct fuseshim_attributes *attributes,
                              struct fuseshim_lifetime lifetime);
int fuseshim_reply_opened(fuseshim_request *request, const struct fuseshim_opened *opened);
int fuseshim_reply_created(fuseshim_request *request, const struct fuseshim_entry *entry,
                           const struct fuseshim_opened *opened);
int fuseshim_reply_bytes(fuseshim_request *request, const void *bytes, size_t count);
/* From a descriptor at an offset: spliced on a serving thread, copied on any other (libfuse keeps a pipe per thread and
 * session, which other threads would leak). Shorter at the end of the file. */
int fuseshim_reply_descriptor(fuseshim_request *request, int descriptor, int64_t offset, size_t count);
int fuseshim_reply_written(fuseshim_request *request, size_t count);
int fuseshim_reply_statistics(fuseshim_request *request, const struct fuseshim_statistics *statistics);
/* The length of an extended attribute, for a request with size 0. */
int fuseshim_reply_length(fuseshim_request *request, size_t length);
int fuseshim_reply_offset(fuseshim_request *request, int64_t offset);

/* Adds an entry to the buffer of a readdir reply, `plus` or plain. `offset` is where the next call is to go on.
 * Returns how many bytes it took, or 0 when it does not fit. */
size_t fuseshim_add_entry(void *buffer, size_t capacity, const void *name, size_t name_length,
                          const struct fuseshim_entry *entry, int64_t offset, bool plus);

/* ---- The data of a write ---- */

/* How many bytes are left to take. */
size_t fuseshim_data_size(const fuseshim_data *data);
/* Moves the rest into a descriptor at an offset, spliced if it came so. Returns the bytes moved or a negative errno. */
int64_t fuseshim_data_write(fuseshim_data *data, int descriptor, int64_t offset);
/* Moves up to `capacity` bytes into memory. Returns the bytes moved or a negative errno. */
int64_t fuseshim_data_read(fuseshim_data *data, void *buffer, size_t capacity);

/* ---- Notifications. They can block on what the kernel has locked for a request: never on a serving thread. `device` is the
 * session's descriptor. fuseshim_notify_longer alone, with what it requires, may be called there. ---- */

/* A name is followed by a zero, which its length does not count.
 * The kernel looks the name up again on its next use. With `stays` its dentry is kept until then, and one in use stays connected. */
int fuseshim_notify_entry(int device, uint64_t parent, const char *name, size_t name_length, bool stays);
int fuseshim_notify_delete(int device, uint64_t parent, uint64_t child, const char *name, size_t name_length);
/* A negative offset means the attributes only, length 0 everything from the offset on. */
int fuseshim_notify_node(int device, uint64_t node, int64_t offset, int64_t length);
/* A file is longer than the kernel knows. `end` is behind all sizes that the kernel may know and behind all that was requested: the kernel
 * would block this until a request of the last page is answered. Where both are on one page, the kernel is only told that it does not know
 * the size. `content` is the file's content, as far as it is here. */
int fuseshim_notify_longer(int device, uint64_t node, int64_t size, int64_t end, int content);

/* ---- Events ---- */

/* Sets an extended attribute and follows no link, so that the kernel notifies watchers of the file and of its directory. lsetxattr(2);
 * waits for the answer of the file system. Returns 0 or errno. */
int fuseshim_raise_event(const char *path, const char *attribute);

/* ---- Threads ---- */

/* Gives the calling thread descriptors of its own, of which it keeps one, under the same number; none for -1. unshare(2),
 * close_range(2). Returns 0 or errno; the thread then shares the descriptors of the process as before, or has all of them. */
int fuseshim_keep_only(int descriptor);

/* Names the calling thread; more than 15 bytes are cut off. */
void fuseshim_name_thread(const char *name);

/* The kernel's number of the calling thread. */
int32_t fuseshim_thread_number(void);

/* A set of processors, as the kernel has it. */
struct fuseshim_processors {
    uint64_t bits[16];
};

/* On which processors the calling thread may run. Returns 0 or an errno. */
int fuseshim_thread_allowed(struct fuseshim_processors *allowed);

/* Says on which a thread may run. Returns 0 or an errno. */
int fuseshim_thread_allow(int32_t thread, const struct fuseshim_processors *allowed);

/* Leaves one processor of a set; false, and the set as it was, when it is not in it. */
bool fuseshim_processors_narrow(struct fuseshim_processors *processors, int32_t one);

/* The processor on which any thread of the machine ran last, or -1. */
int32_t fuseshim_thread_processor(int32_t thread);

/* The signals that a thread has not taken yet and does not block, signal 1 in the lowest bit.
   Returns 0, or an error number where that cannot be found out. */
int fuseshim_thread_signals(int32_t thread, uint64_t *signals);

/* ---- Passthrough ---- */

/* Registers a file as one that opened files can be passed through to. Returns its id (above 0) or a negative errno. */
int32_t fuseshim_backing_open(fuseshim_session *session, int descriptor);
/* Drops a backing id; files opened with it go on. Returns 0 or an errno. */
int fuseshim_backing_close(fuseshim_session *session, int32_t backing);

#endif
