/* The notify protocol of service managers (sd_notify(3), sd_listen_fds(3)): sockets, messages with descriptors, and the start of a
 * worker. -1 and errno on failure unless stated otherwise. */
#ifndef YONDER_NOTIFY_H
#define YONDER_NOTIFY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The number of descriptors that one message can carry (the kernel's SCM_MAX_FD). */
#define YONDER_MESSAGE_DESCRIPTORS 253

/* Opens a datagram socket with an abstract name that the kernel chooses, and writes the name as NOTIFY_SOCKET has it ("@name").
 * Messages carry the credentials of their sender. */
int yonder_notify_open(char *address, size_t size);

/* Receives the next message of the process `sender`; discards up to `strangers` messages of other processes before it, with their
 * descriptors. Does not wait.
 * The length of the text, which may be 0; -1 with EAGAIN if there is none or more strangers come first, with EMSGSIZE for a message
 * that is too long or has too many descriptors, which is discarded. The descriptors are close-on-exec. `descriptors` has room for
 * YONDER_MESSAGE_DESCRIPTORS. */
ssize_t yonder_notify_receive(
    int socket, pid_t sender, int32_t strangers, uint8_t *text, size_t size, int *descriptors, int32_t *count);

/* Sends a message with descriptors to the socket that NOTIFY_SOCKET names. Waits up to 5 seconds for room. */
int yonder_notify_send(const char *address, const char *text, size_t length, const int *descriptors, int32_t count);

/* Blocks SIGCHLD, SIGTERM, SIGINT, SIGHUP and SIGUSR1 for this thread and ignores SIGPIPE. A descriptor that becomes readable for them. */
int yonder_signals_open(void);

/* The next signal; 0 if there is none. */
int yonder_signals_next(int descriptor);

/* Starts a program with `count` descriptors, numbered from 3, with default signal handling and the environment of this process, which
 * must have one thread. `arguments` (the program first) are texts that each end with a NUL. LISTEN_PID is set if there are
 * descriptors, and WATCHDOG_PID if `has_watchdog`. The number of the process; it exits with status 127 if the program cannot be
 * executed. */
pid_t yonder_start(const char *arguments, size_t size, const int *descriptors, int32_t count, int has_watchdog);

/* Makes this process the parent of what its descendants leave behind (PR_SET_CHILD_SUBREAPER). */
int yonder_adopt_orphans(void);

/* Kills the process groups that the children of a process lead, in the session of this process: a process that has made a session of its
 * own is meant to go on, and so is what is left of the group of one that has ended by itself. Returns how many; -1 without /proc. */
int yonder_kill_groups_of_children(pid_t parent);

/* Binds a unix(7) stream socket with permissions 0600 and listens. */
int yonder_listen(const char *path);

/* Whether a process listens on a unix(7) stream socket. Does not wait for it. */
int yonder_connects(const char *path);

/* Whether a descriptor is a listening unix(7) socket that was bound to a path. */
int yonder_listens(int descriptor, const char *path);

/* pipe2(2): what it opens is close-on-exec. */
int yonder_pipe(int ends[2]);

/* Raises the limit of open files to its maximum. */
void yonder_raise_file_limit(void);

#endif
