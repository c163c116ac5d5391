// A library that allocates, built under several names for plugins_in_turn.c and plugins_reloaded.c.
// PLUGIN names its function, ROOM makes it larger.
#include <stdlib.h>

#ifdef ROOM
char room[ROOM] = {1};
#endif

__attribute__((noinline)) static void *allocate(void *(*how)(size_t), size_t size) { return how(size); }
__attribute__((noinline)) void *PLUGIN(size_t size) { return allocate(malloc, size); }
