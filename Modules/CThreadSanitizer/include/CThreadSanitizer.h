/* Part of test programs that are built with the thread sanitizer; empty otherwise. Declares nothing. */
