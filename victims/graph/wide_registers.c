// Blocks held only by the upper part of a wide vector register: of ymm11 (AVX), of zmm5 and of
// zmm21 (AVX-512); of z11, z5 and z21 (SVE). If the processor lacks the register, a variable holds
// the block instead.
// build: -pthread
// leaks: frame=in_ymm kind=reachable count=1
// leaks: frame=in_low_zmm kind=reachable count=1
// leaks: frame=in_high_zmm kind=reachable count=1
// leaks: frame=in_none kind=definite count=1
#include "graph.h"
#include <pthread.h>
#include <sys/auxv.h>
APART void *in_ymm(void) { return malloc(201); }
APART void *in_low_zmm(void) { return malloc(202); }
APART void *in_high_zmm(void) { return malloc(203); }
APART void *in_none(void) { return malloc(204); }
static volatile int ready;
static void *volatile instead[3];
#if defined(__x86_64__)
#define WAIT "lock incl %0\n 1: pause\n jmp 1b\n"
static void *ymm_thread(void *unused) {
  void *p = in_ymm();
  if (!__builtin_cpu_supports("avx")) instead[0] = p;
  else
    __asm__ volatile("vmovq %1, %%xmm0\n vpslldq $8, %%xmm0, %%xmm0\n vxorps %%xmm11, %%xmm11, %%xmm11\n"
                     "vinsertf128 $1, %%xmm0, %%ymm11, %%ymm11\n vxorps %%xmm0, %%xmm0, %%xmm0\n xor %1, %1\n" WAIT
                     : "+m"(ready), "+r"(p) : : "memory");
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  return 0;
}
static void *low_zmm_thread(void *unused) {
  void *p = in_low_zmm();
  if (!__builtin_cpu_supports("avx512f")) instead[1] = p;
  else
    __asm__ volatile("vmovq %1, %%xmm0\n vpxorq %%zmm5, %%zmm5, %%zmm5\n vinserti64x4 $1, %%ymm0, %%zmm5, %%zmm5\n"
                     "vxorps %%xmm0, %%xmm0, %%xmm0\n xor %1, %1\n" WAIT
                     : "+m"(ready), "+r"(p) : : "memory");
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  return 0;
}
static void *high_zmm_thread(void *unused) {
  void *p = in_high_zmm();
  if (!__builtin_cpu_supports("avx512f")) instead[2] = p;
  else
    __asm__ volatile("vmovq %1, %%xmm0\n vpxorq %%zmm21, %%zmm21, %%zmm21\n vinserti64x4 $1, %%ymm0, %%zmm21, %%zmm21\n"
                     "vxorps %%xmm0, %%xmm0, %%xmm0\n xor %1, %1\n" WAIT
                     : "+m"(ready), "+r"(p) : : "memory");
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  return 0;
}
#elif defined(__aarch64__)
// Puts register 1 behind the first 16 bytes of a vector register, adds 1 to the word at register 0
// and stays.
#define IN_UPPER_PART(z)                                                                                  \
  ".arch_extension sve\n mov " z ".d,#0\n insr " z ".d,%1\n insr " z ".d,xzr\n insr " z ".d,xzr\n"         \
  " mov %1,xzr\n 2: ldaxr w9,[%0]\n add w9,w9,#1\n stlxr w10,w9,[%0]\n cbnz w10,2b\n 1: yield\n b 1b\n"
static int has_upper_part(void) {
  unsigned long bytes = 0;
  if (getauxval(AT_HWCAP) & 1 << 22) __asm__(".arch_extension sve\n rdvl %0,#1" : "=r"(bytes));
  return bytes > 16;
}
static void *ymm_thread(void *unused) {
  void *p = in_ymm();
  if (!has_upper_part()) instead[0] = p;
  else __asm__ volatile(IN_UPPER_PART("z11") : : "r"(&ready), "r"(p) : "v11", "x9", "x10", "memory");
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  return 0;
}
static void *low_zmm_thread(void *unused) {
  void *p = in_low_zmm();
  if (!has_upper_part()) instead[1] = p;
  else __asm__ volatile(IN_UPPER_PART("z5") : : "r"(&ready), "r"(p) : "v5", "x9", "x10", "memory");
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  return 0;
}
static void *high_zmm_thread(void *unused) {
  void *p = in_high_zmm();
  if (!has_upper_part()) instead[2] = p;
  else __asm__ volatile(IN_UPPER_PART("z21") : : "r"(&ready), "r"(p) : "v21", "x9", "x10", "memory");
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  return 0;
}
#endif
static APART void build(void) {
  pthread_t t;
  pthread_create(&t, 0, ymm_thread, 0);
  pthread_create(&t, 0, low_zmm_thread, 0);
  pthread_create(&t, 0, high_zmm_thread, 0);
  while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < 3) usleep(1000);
  in_none();
}
int main(void) { build(); wait_to_be_seen(); }
