// Shared by the programs here: each builds structures, drops the references that its header names, and
// waits.
#ifndef GRAPH_H
#define GRAPH_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

// Overwrites what calls have left below, and in the registers that calls may change.
static APART void forget(void) {
  volatile char below[64 << 10];
  memset((void *)below, 0, sizeof below);
  __asm__ volatile(
      "xorps %%xmm0,%%xmm0\n xorps %%xmm1,%%xmm1\n xorps %%xmm2,%%xmm2\n xorps %%xmm3,%%xmm3\n"
      "xorps %%xmm4,%%xmm4\n xorps %%xmm5,%%xmm5\n xorps %%xmm6,%%xmm6\n xorps %%xmm7,%%xmm7\n"
      "xorps %%xmm8,%%xmm8\n xorps %%xmm9,%%xmm9\n xorps %%xmm10,%%xmm10\n xorps %%xmm11,%%xmm11\n"
      "xorps %%xmm12,%%xmm12\n xorps %%xmm13,%%xmm13\n xorps %%xmm14,%%xmm14\n xorps %%xmm15,%%xmm15\n"
      ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
          "xmm12", "xmm13", "xmm14", "xmm15", "memory");
}

#ifdef WITH_SANITIZER
#ifdef __cplusplus
extern "C"
#endif
int __lsan_do_recoverable_leak_check(void);
#endif

// Says that all is as it should be, and who it is, and waits to be looked at.
// (Nothing is kept in a register that would have to be saved: its old value may be what was
// forgotten.)
static char ready_line[32];
static APART void say_who(void) { snprintf(ready_line, sizeof ready_line, "ready %d\n", getpid()); }
static APART void wait_to_be_seen(void) {
  say_who();
  forget();
#ifdef WITH_SANITIZER
  // It looks at the same point, and in place of us.
  __lsan_do_recoverable_leak_check();
  _exit(0);
#endif
  (void)!write(1, ready_line, strlen(ready_line));
  forget();
  for (;;) pause();
}

// Hides an address from the compiler and from whoever looks for it.
#define HIDDEN(address) (~(uintptr_t)(address))
#endif
