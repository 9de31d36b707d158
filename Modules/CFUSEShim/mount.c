/* Mounting and unmounting. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define FUSE_CTL_SUPER_MAGIC 0x65735543

int fuseshim_session_mount(fuseshim_session *session, const char *path)
{
    /* libfuse only prints the reason of a failure, so the common reasons are checked first. */
    struct stat status;
    if (stat(path, &status)) return errno;
    if (!S_ISDIR(status.st_mode)) return ENOTDIR;
    errno = 0;
    if (fuse_session_mount(session->fuse, path)) return errno ? errno : EPERM;
    return fuseshim_watch_init(session, fuse_session_fd(session->fuse));
}

/* Runs fusermount3, which is set-user-ID and unmounts what its caller mounted. */
static int run_fusermount(const char *path, bool lazy)
{
    const char *arguments[] = {"fusermount3", "-u", lazy ? "-qz" : "-q", "--", path, NULL};
    pid_t child;
    int status;
    int failure = posix_spawnp(&child, "fusermount3", NULL, NULL, (char *const *)arguments, environ);
    /* A PATH without it has mounted, because libfuse looks where it was installed. */
    if (failure == ENOENT)
        failure = posix_spawn(&child, "/usr/bin/fusermount3", NULL, NULL, (char *const *)arguments, environ);
    if (failure) return failure;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EBUSY;
}

int fuseshim_unmount(const char *path, bool lazy)
{
    if (!umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0))) return 0;
    return errno == EPERM ? run_fusermount(path, lazy) : errno;
}

/* The directory of the kernel's FUSE connections, also where it is not mounted. */
static int open_connections(void)
{
    int directory = open("/sys/fs/fuse/connections", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct statfs statistics;
    if (directory >= 0 && !fstatfs(directory, &statistics) && statistics.f_type == FUSE_CTL_SUPER_MAGIC)
        return directory;
    if (directory >= 0) close(directory);
    int context = fsopen("fusectl", FSOPEN_CLOEXEC);
    if (context < 0) return -1;
    directory = fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) ? -1 : fsmount(context, FSMOUNT_CLOEXEC, 0);
    close(context);
    return directory;
}

bool fuseshim_is_connected(int descriptor)
{
    if (descriptor < 0) return false;
    struct pollfd device = {.fd = descriptor};
    int count;
    do count = poll(&device, 1, 0);
    while (count < 0 && errno == EINTR);
    return count >= 0 && !(device.revents & (POLLERR | POLLNVAL));
}

int fuseshim_session_abort(fuseshim_session *session, const char *number)
{
    int connections = open_connections();
    if (connections < 0) return errno;
    int failure = 0, connection = openat(connections, number, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int control = connection < 0 ? -1 : openat(connection, "abort", O_WRONLY | O_CLOEXEC);
    if (control < 0)
        failure = errno;
    else if (!fuseshim_is_connected(fuse_session_fd(session->fuse)))
        /* The kernel has given up the number, and the opened file may be of another program's mount. If the connection is there
         * after the opening, the file is its own; if it ends before the write, the write has no effect. */
        failure = ENOENT;
    else if (write(control, "1", 1) != 1)
        failure = errno;
    if (control >= 0) close(control);
    if (connection >= 0) close(connection);
    close(connections);
    return failure;
}

bool fuseshim_may_allow_other(void)
{
    if (geteuid() == 0) return true;
    FILE *file = fopen("/etc/fuse.conf", "re");
    if (!file) return false;
    char line[256];
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        char word[32], rest[2];
        found = sscanf(line, " %31s %1s", word, rest) == 1 && !strcmp(word, "user_allow_other");
    }
    fclose(file);
    return found;
}

bool fuseshim_may_pass_through(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capget, &header, data)) return false;
    return data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN);
}
