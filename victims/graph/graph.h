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
#if defined(__x86_64__)
  __asm__ volatile(
      "xorps %%xmm0,%%xmm0\n xorps %%xmm1,%%xmm1\n xorps %%xmm2,%%xmm2\n xorps %%xmm3,%%xmm3\n"
      "xorps %%xmm4,%%xmm4\n xorps %%xmm5,%%xmm5\n xorps %%xmm6,%%xmm6\n xorps %%xmm7,%%xmm7\n"
      "xorps %%xmm8,%%xmm8\n xorps %%xmm9,%%xmm9\n xorps %%xmm10,%%xmm10\n xorps %%xmm11,%%xmm11\n"
      "xorps %%xmm12,%%xmm12\n xorps %%xmm13,%%xmm13\n xorps %%xmm14,%%xmm14\n xorps %%xmm15,%%xmm15\n"
      ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
          "xmm12", "xmm13", "xmm14", "xmm15", "memory");
#elif defined(__aarch64__)
  __asm__ volatile(
      "movi v0.2d,#0\n movi v1.2d,#0\n movi v2.2d,#0\n movi v3.2d,#0\n movi v4.2d,#0\n movi v5.2d,#0\n"
      "movi v6.2d,#0\n movi v7.2d,#0\n movi v16.2d,#0\n movi v17.2d,#0\n movi v18.2d,#0\n movi v19.2d,#0\n"
      "movi v20.2d,#0\n movi v21.2d,#0\n movi v22.2d,#0\n movi v23.2d,#0\n movi v24.2d,#0\n movi v25.2d,#0\n"
      "movi v26.2d,#0\n movi v27.2d,#0\n movi v28.2d,#0\n movi v29.2d,#0\n movi v30.2d,#0\n movi v31.2d,#0\n"
      ::: "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
          "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory");
#endif
}

// Runs a function below the frames of the wait: what a frame does not write keeps what was there.
static APART void far_below(void (*function)(void)) {
  volatile char room[4096];
  room[0] = 1;
  function();
  room[1] = room[0];
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
