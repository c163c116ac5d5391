/* An allocator that no loader knows of, of jemalloc's interface. For each line on standard input 100 blocks of 50 bytes, of which
   10 are kept, by a function that calls another of the allocator; then "done". With an argument it is the library of this name that
   does so, loaded with the first line: built from this file, too (-DLIBRARY). */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#define INSIDE __attribute__((noinline, noclone, used)) static
static char pool[1 << 20];
static size_t taken;
INSIDE void *_my_malloc(size_t bytes) { taken += (bytes + 15) & ~(size_t)15; return pool + taken; }
INSIDE void *_my_calloc(size_t count, size_t bytes) { return memset(_my_malloc(count * bytes), 0, count * bytes); }
INSIDE void _my_free(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }
INSIDE void _my_sdallocx(void *block, size_t bytes, int flags) { (void)bytes; if (!flags) _my_free(block); }
void work(void) {
    for (int number = 0; number < 100; number++) {
        void *volatile block = _my_calloc(5, 10);
        if (number >= 10) _my_sdallocx(block, 50, 0);
    }
}
#ifndef LIBRARY
int main(int count, char **arguments) {
    char line[64];
    void (*todo)(void) = count > 1 ? NULL : work;
    write(1, "ready\n", 6);
    while (read(0, line, sizeof line) > 0) {
        if (!todo) todo = (void (*)(void))dlsym(dlopen(arguments[1], RTLD_NOW), "work");
        todo();
        write(1, "done\n", 5);
    }
    return 0;
}
#endif
