/* Refuses AMX to a process, for a llama.cpp whose AMX code ends in an illegal instruction:
 *   cc -O2 -shared -fPIC benches/noamx.c -o noamx.so
 *   printf '#!/bin/sh\nLD_PRELOAD=%s/noamx.so exec .peer/bin/python "$@"\n' "$PWD" > peer-python; chmod +x peer-python
 *   PEER_PYTHON=./peer-python .peer/bin/python benches/peer.py ...
 * Only libc's syscall() is replaced; everything but the request for tile registers is passed on. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

enum { SYS_ARCH_PRCTL = 158, ARCH_REQ_XCOMP_PERM = 0x1023 };

long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (number == SYS_ARCH_PRCTL && a == ARCH_REQ_XCOMP_PERM) {
        errno = EPERM;
        return -1;
    }
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}
