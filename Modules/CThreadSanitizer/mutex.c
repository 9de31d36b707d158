/* Shows the thread sanitizer what Swift's Mutex synchronizes.
 *
 * The fast path of Synchronization.Mutex is inlined and thus instrumented. Its slow path lies in libswiftSynchronization, which is
 * not: the sanitizer sees no acquisition by a thread that had to wait, and reports a race of what the mutex protects. These
 * functions take the place of the slow path in an instrumented test program, call it, and announce what it does. */
#include "CThreadSanitizer.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef RTLD_NEXT
#define RTLD_NEXT ((void *)-1l)
#endif

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

void __tsan_acquire(void *address);
void __tsan_release(void *address);

typedef SWIFT void (*lock_function)(uint32_t thread, SELF void *handle);
typedef SWIFT void (*unlock_function)(SELF void *handle);

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

static lock_function original_lock;
static unlock_function original_unlock;

__attribute__((constructor)) static void find_originals(void)
{
    original_lock = (lock_function)dlsym(RTLD_NEXT, LOCK);
    original_unlock = (unlock_function)dlsym(RTLD_NEXT, UNLOCK);
    if (!original_lock || !original_unlock) abort();
}

SWIFT void mutex_lock_slow(uint32_t thread, SELF void *handle) __asm__(LOCK);
SWIFT void mutex_lock_slow(uint32_t thread, SELF void *handle)
{
    original_lock(thread, handle);
    __tsan_acquire(handle);
}

SWIFT void mutex_unlock_slow(SELF void *handle) __asm__(UNLOCK);
SWIFT void mutex_unlock_slow(SELF void *handle)
{
    __tsan_release(handle);
    original_unlock(handle);
}

#endif
#endif
