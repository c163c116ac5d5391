// A library that allocates; built twice under two names for plugins_in_turn.c. PLUGIN names its function.
#include <stdlib.h>

__attribute__((noinline)) static void *allocate(void *(*how)(size_t), size_t size) { return how(size); }
__attribute__((noinline)) void *PLUGIN(size_t size) { return allocate(malloc, size); }
