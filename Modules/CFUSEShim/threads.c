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

/* Whether a line of a status file is that with a set of signals. */
static bool is_signal_set(const char *line, const char *name, uint64_t *set)
{
    size_t length = strlen(name);
    if (strncmp(line, name, length) != 0) return false;
    *set = strtoull(line + length, NULL, 16);
    return true;
}

int fuseshim_thread_signals(int32_t thread, uint64_t *signals)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/status", thread);
    FILE *file = fopen(path, "re");
    if (!file) return errno;
    uint64_t own = 0, shared = 0, blocked = 0;
    int found = 0;
    /* The groups of the process, which come before, are a line of any length. */
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, file) >= 0)
        found += is_signal_set(line, "SigPnd:", &own) || is_signal_set(line, "ShdPnd:", &shared) ||
                 is_signal_set(line, "SigBlk:", &blocked);
    free(line);
    fclose(file);
    if (found < 3) return ENODATA;
    *signals = (own | shared) & ~blocked;
    return 0;
}
