// Blocks held only by threads: on their stacks, in registers of all kinds, in thread-local memory;
// and one held only by an ended thread.
// build: -pthread
// leaks: frame=on_stack kind=reachable count=2
// leaks: frame=in_general_register kind=reachable count=1
// leaks: frame=in_vector_register kind=reachable count=1
// leaks: frame=in_red_zone kind=reachable count=1
// leaks: frame=in_thread_local kind=reachable count=3
// leaks: frame=in_early_key kind=reachable count=1
// leaks: frame=in_late_key kind=reachable count=1
// leaks: frame=as_argument kind=reachable count=1
// leaks: frame=as_result kind=reachable count=1
// leaks: frame=of_ended_thread kind=definite count=1
#include "graph.h"
#include <pthread.h>
static __thread void *volatile local, *volatile second;
APART void *on_stack(void) { return malloc(100); }
APART void *in_general_register(void) { return malloc(101); }
APART void *in_vector_register(void) { return malloc(102); }
APART void *in_red_zone(void) { return malloc(103); }
APART void *in_thread_local(void) { return malloc(104); }
APART void *in_early_key(void) { return malloc(105); }
APART void *in_late_key(void) { return malloc(106); }
APART void *as_argument(void) { return malloc(107); }
APART void *as_result(void) { return malloc(108); }
APART void *of_ended_thread(void) { return malloc(109); }
static volatile int ready;
static pthread_key_t keys[200];
static void *stack_thread(void *unused) {
  void *volatile held[20];
  held[7] = on_stack();
  local = in_thread_local();
  second = in_thread_local();
  forget();
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  for (;;) { pause(); held[3] = 0; }
  return (void *)held[7];
}
static void *key_thread(void *unused) {
  pthread_setspecific(keys[3], in_early_key());
  pthread_setspecific(keys[150], in_late_key());
  forget();
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  for (;;) pause();
}
#if defined(__x86_64__)
static void *general_thread(void *unused) {
  __asm__ volatile("call in_general_register\n mov %%rax, %%r13\n xor %%eax, %%eax\n lock incl %0\n 1: pause\n jmp 1b\n"
                   : "+m"(ready) : : "rax", "r13", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
  return 0;
}
static void *vector_thread(void *unused) {
  void *p = in_vector_register();
  __asm__ volatile("movq %1, %%xmm0\n pslldq $8, %%xmm0\n movdqa %%xmm0, %%xmm11\n xorps %%xmm0, %%xmm0\n xor %1, %1\n"
                   "lock incl %0\n 1: pause\n jmp 1b\n" : "+m"(ready), "+r"(p) : : "memory");
  return 0;
}
static void *red_zone_thread(void *unused) {
  void *p = in_red_zone();
  __asm__ volatile("mov %1, -120(%%rsp)\n xor %1, %1\n lock incl %0\n 1: pause\n jmp 1b\n" : "+m"(ready), "+r"(p) : : "memory");
  return 0;
}
#elif defined(__aarch64__)
// Adds 1 to the word at register 0 and stays.
#define SPIN "2: ldaxr w9,[%0]\n add w9,w9,#1\n stlxr w10,w9,[%0]\n cbnz w10,2b\n 1: yield\n b 1b\n"
static void *general_thread(void *unused) {
  __asm__ volatile("bl in_general_register\n mov x20,x0\n mov x0,xzr\n" SPIN
                   : : "r"(&ready) : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
                     "x13", "x14", "x15", "x16", "x17", "x18", "x20", "x30", "memory");
  return 0;
}
static void *vector_thread(void *unused) {
  void *p = in_vector_register();
  __asm__ volatile("ins v11.d[1],%1\n mov %1,xzr\n" SPIN : : "r"(&ready), "r"(p) : "v11", "x9", "x10", "memory");
  return 0;
}
// There is no red zone: the word lies above the stack pointer.
static void *red_zone_thread(void *unused) {
  void *p = in_red_zone();
  __asm__ volatile("str %1,[sp,#-16]!\n mov %1,xzr\n" SPIN : : "r"(&ready), "r"(p) : "x9", "x10", "memory");
  return 0;
}
#endif
static void *argument_thread(void *argument) {
  argument = 0;
  forget();
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  for (;;) pause();
}
static void *result_thread(void *unused) { void *p = as_result(); forget(); return p; }
static void *ending_thread(void *unused) { void *volatile p = of_ended_thread(); (void)p; return 0; }
static APART void build(pthread_t *result) {
  pthread_t t;
  for (int i = 0; i < 200; i++) pthread_key_create(&keys[i], 0);
  local = in_thread_local();
  pthread_create(&t, 0, stack_thread, 0);
  pthread_create(&t, 0, key_thread, 0);
  pthread_create(&t, 0, general_thread, 0);
  pthread_create(&t, 0, vector_thread, 0);
  pthread_create(&t, 0, red_zone_thread, 0);
  pthread_create(&t, 0, argument_thread, as_argument());
  pthread_create(result, 0, result_thread, 0);
  while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < 6) usleep(1000);
  pthread_create(&t, 0, ending_thread, 0);
  pthread_join(t, 0);
  usleep(20000);
}
int main(void) {
  static pthread_t result;
  void *volatile held[4];
  held[1] = on_stack();
  build(&result);
  wait_to_be_seen();
  held[2] = held[1];
}
