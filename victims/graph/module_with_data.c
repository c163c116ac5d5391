// A library for other programs here: its data and its thread-local variables hold blocks.
// (no program: graph programs load it)
#include <stdlib.h>
void *module_global;
static void *volatile kept;
__thread void *module_local;
__thread char large_local[20000];
__attribute__((noinline)) void *of_module_data(void) { void *p = malloc(70); __asm__ volatile("" : "+r"(p)); return p; }
__attribute__((noinline)) void *of_module_local(void) { void *p = malloc(71); __asm__ volatile("" : "+r"(p)); return p; }
__attribute__((noinline)) void *forgotten_by_module(void) { void *p = malloc(72); __asm__ volatile("" : "+r"(p)); return p; }
void fill(void) {
  module_global = of_module_data();
  kept = of_module_data();
  module_local = of_module_local();
  *(void **)(large_local + 16000) = of_module_local();
  forgotten_by_module();
}
