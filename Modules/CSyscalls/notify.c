#define _GNU_SOURCE
#include "CSyscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int close_keeping_errno(int descriptor)
{
    int failure = errno;
    close(descriptor);
    errno = failure;
    return -1;
}

int yonder_notify_open(char *address, size_t size)
{
    int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return -1;
    int yes = 1;
    /* Binding the family alone makes the kernel choose an unused abstract name, see unix(7), autobind. */
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    socklen_t length = sizeof place;
    if (setsockopt(made, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0
        || bind(made, (struct sockaddr *)&place, sizeof(sa_family_t)) != 0
        || getsockname(made, (struct sockaddr *)&place, &length) != 0)
        return close_keeping_errno(made);
    size_t name = length - offsetof(struct sockaddr_un, sun_path) - 1;
    if (name + 2 > size) {
        errno = ENAMETOOLONG;
        return close_keeping_errno(made);
    }
    address[0] = '@';
    memcpy(address + 1, place.sun_path + 1, name);
    address[name + 1] = 0;
    return made;
}

/* The sender of the next message, which stays in the queue. Its descriptors are not installed, because closing a descriptor of a
 * stranger may block. */
static int peek_sender(int socket, pid_t *sender)
{
    char byte;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
        return -1;
    *sender = 0;
    struct cmsghdr *first = CMSG_FIRSTHDR(&message);
    if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_CREDENTIALS
        && first->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
        struct ucred credentials;
        memcpy(&credentials, CMSG_DATA(first), sizeof credentials);
        *sender = credentials.pid;
    }
    return 0;
}

ssize_t yonder_notify_receive(
    int socket, pid_t sender, int32_t strangers, uint8_t *text, size_t size, int *descriptors, int32_t *count)
{
    *count = 0;
    for (int32_t discarded = 0;; discarded++) {
        pid_t found;
        while (peek_sender(socket, &found) != 0)
            if (errno != EINTR)
                return -1;
        if (found > 0 && found == sender)
            break;
        if (discarded >= strangers) {
            errno = EAGAIN;
            return -1;
        }
        char byte;
        (void)recv(socket, &byte, 1, MSG_DONTWAIT);
    }
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int) * YONDER_MESSAGE_DESCRIPTORS)];
    } control;
    struct iovec part = {.iov_base = text, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0)
        return -1;
    for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS)
            continue;
        size_t number = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t index = 0; index < number; index++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(each) + index * sizeof(int), sizeof(int));
            if (*count < YONDER_MESSAGE_DESCRIPTORS)
                descriptors[(*count)++] = descriptor;
            else
                close(descriptor);
        }
    }
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        for (int32_t index = 0; index < *count; index++)
            close(descriptors[index]);
        *count = 0;
        errno = EMSGSIZE;
        return -1;
    }
    return length;
}

int yonder_notify_send(const char *address, const char *text, size_t length, const int *descriptors, int32_t count)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    size_t name = strlen(address);
    if (name < 2 || name >= sizeof place.sun_path || (address[0] != '@' && address[0] != '/') || count < 0
        || count > YONDER_MESSAGE_DESCRIPTORS) {
        errno = EINVAL;
        return -1;
    }
    memcpy(place.sun_path, address, name);
    if (address[0] == '@')
        place.sun_path[0] = 0;
    int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (made < 0)
        return -1;
    struct timeval patience = {.tv_sec = 5};
    (void)setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    struct iovec part = {.iov_base = (void *)text, .iov_len = length};
    struct msghdr message = {
        .msg_name = &place,
        .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name + (address[0] == '/')),
        .msg_iov = &part,
        .msg_iovlen = 1,
    };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * YONDER_MESSAGE_DESCRIPTORS)];
    } control;
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        memcpy(CMSG_DATA(rights), descriptors, sizeof(int) * (size_t)count);
    }
    ssize_t sent;
    do
        sent = sendmsg(made, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return close_keeping_errno(made);
    close(made);
    return 0;
}

int yonder_signals_open(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    /* An ignored SIGCHLD would take the exit status from waitpid(2). */
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int yonder_signals_next(int descriptor)
{
    struct signalfd_siginfo next;
    return read(descriptor, &next, sizeof next) == sizeof next ? (int)next.ssi_signo : 0;
}

static void set_to_own_number(const char *name)
{
    char number[32];
    snprintf(number, sizeof number, "%ld", (long)getpid());
    if (setenv(name, number, 1) != 0)
        _exit(126);
}

/* In the new process. */
static void become(char **words, const int *descriptors, int *moved, int32_t count, int has_watchdog)
{
    if (count > 0)
        set_to_own_number("LISTEN_PID");
    if (has_watchdog)
        set_to_own_number("WATCHDOG_PID");
    /* First out of the way, because a descriptor may have a number that another is to get. */
    for (int32_t index = 0; index < count; index++)
        if ((moved[index] = fcntl(descriptors[index], F_DUPFD_CLOEXEC, 3 + count)) < 0)
            _exit(126);
    for (int32_t index = 0; index < count; index++)
        if (dup2(moved[index], 3 + index) < 0)
            _exit(126);
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execv(words[0], words);
    _exit(127);
}

pid_t yonder_start(const char *arguments, size_t size, const int *descriptors, int32_t count, int has_watchdog)
{
    size_t number = 0;
    for (size_t index = 0; index < size; index++)
        number += arguments[index] == 0;
    char **words = calloc(number + 1, sizeof *words);
    int *moved = calloc((size_t)count + 1, sizeof *moved);
    pid_t started = -1;
    if (words && moved && number > 0) {
        for (size_t index = 0; index < number; index++, arguments += strlen(arguments) + 1)
            words[index] = (char *)arguments;
        started = fork();
        if (started == 0)
            become(words, descriptors, moved, count, has_watchdog);
    }
    int failure = errno;
    free(words);
    free(moved);
    errno = failure;
    return started;
}

int yonder_adopt_orphans(void) { return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

int yonder_kill_groups_of_children(pid_t parent)
{
    int count = 0;
    DIR *processes = opendir("/proc");
    if (!processes)
        return -1;
    for (struct dirent *entry; (entry = readdir(processes));) {
        char path[64], text[256];
        int number = atoi(entry->d_name);
        if (number <= 0)
            continue;
        snprintf(path, sizeof path, "/proc/%d/stat", number);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0)
            continue;
        ssize_t length = read(file, text, sizeof text - 1);
        close(file);
        if (length <= 0)
            continue;
        text[length] = 0;
        /* "NUMBER (NAME) STATE PARENT GROUP SESSION ..." (proc_pid_stat(5)): the name may contain anything. */
        const char *end = strrchr(text, ')');
        int found, group, session;
        if (end && sscanf(end + 1, " %*c %d %d %d", &found, &group, &session) == 3 && found == parent && group == number
            && group != getpgrp() && session == getsid(0) && !kill(-group, SIGKILL))
            count++;
    }
    closedir(processes);
    return count;
}

int yonder_listen(const char *path)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof place.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(place.sun_path, path);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return -1;
    /* The file takes the permissions of the socket, so that it is never open to other users. */
    if (fchmod(made, 0600) != 0 || bind(made, (struct sockaddr *)&place, sizeof place) != 0 || listen(made, 256) != 0)
        return close_keeping_errno(made);
    return made;
}

int yonder_connects(const char *path)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof place.sun_path)
        return 0;
    strcpy(place.sun_path, path);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return 0;
    /* EAGAIN: its backlog is full. */
    int connects = connect(made, (struct sockaddr *)&place, sizeof place) == 0 || errno == EAGAIN;
    close(made);
    return connects;
}

int yonder_listens(int descriptor, const char *path)
{
    int accepts = 0;
    socklen_t size = sizeof accepts;
    struct sockaddr_un place = {0};
    socklen_t length = sizeof place - 1;
    return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) == 0 && accepts
        && getsockname(descriptor, (struct sockaddr *)&place, &length) == 0 && place.sun_family == AF_UNIX
        && strncmp(place.sun_path, path, sizeof place.sun_path) == 0;
}

int yonder_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

void yonder_raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}
