/* What Swift's Glibc does not show of threads. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

void fuseshim_name_thread(const char *name) { prctl(PR_SET_NAME, name); }

int fuseshim_keep_only(int descriptor)
{
    if (unshare(CLONE_FILES) != 0) return errno;
    /* Before Linux 5.9 there is no close_range(2). */
    if ((descriptor > 0 && syscall(SYS_close_range, 0, descriptor - 1, 0) != 0) ||
        syscall(SYS_close_range, descriptor + 1, ~0u, 0) != 0) {
        for (int other = (int)sysconf(_SC_OPEN_MAX) - 1; other >= 0; other--)
            if (other != descriptor) close(other);
    }
    return 0;
}

int32_t fuseshim_thread_number(void) { return (int32_t)gettid(); }

int fuseshim_thread_allowed(struct fuseshim_processors *allowed)
{
    return sched_getaffinity(0, sizeof allowed->bits, (cpu_set_t *)allowed->bits) == 0 ? 0 : errno;
}

int fuseshim_thread_allow(int32_t thread, const struct fuseshim_processors *allowed)
{
    return sched_setaffinity(thread, sizeof allowed->bits, (const cpu_set_t *)allowed->bits) == 0 ? 0 : errno;
}

bool fuseshim_processors_narrow(struct fuseshim_processors *processors, int32_t one)
{
    cpu_set_t *set = (cpu_set_t *)processors->bits;
    if (one < 0 || one >= CPU_SETSIZE || !CPU_ISSET(one, set)) return false;
    CPU_ZERO(set);
    CPU_SET(one, set);
    return true;
}

/* Where a thread ran last: the 37th field after its name, which may itself hold blanks and brackets. */
int32_t fuseshim_thread_processor(int32_t thread)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    if (count <= 0) return -1;
    text[count] = 0;
    const char *field = strrchr(text, ')');
    for (int number = 0; field && number < 37; number++) field = strchr(field + 1, ' ');
    return field ? (int32_t)strtol(field, NULL, 10) : -1;
}

/* A line of a status file with a set of signals. */
static bool signal_set(const char *text, const char *name, uint64_t *set)
{
    const char *line = strstr(text, name);
    if (!line) return false;
    *set = strtoull(line + strlen(name), NULL, 16);
    return true;
}

int fuseshim_thread_signals(int32_t thread, uint64_t *signals)
{
    char path[32], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno;
    ssize_t count = read(file, text, sizeof text - 1);
    int error = errno;
    close(file);
    if (count < 0) return error;
    text[count] = 0;
    uint64_t own, shared, blocked;
    if (!signal_set(text, "\nSigPnd:", &own) || !signal_set(text, "\nShdPnd:", &shared) ||
        !signal_set(text, "\nSigBlk:", &blocked))
        return ENODATA;
    *signals = (own | shared) & ~blocked;
    return 0;
}
