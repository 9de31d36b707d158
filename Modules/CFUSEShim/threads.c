/* What Swift's Glibc does not show of threads. */
#include "internal.h"

#include <sys/prctl.h>

void fuseshim_name_thread(const char *name) { prctl(PR_SET_NAME, name); }
