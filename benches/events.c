// Makes events of one kind: KIND COUNT [LIBRARY]. A LIBRARY is loaded first, and none of its
// functions is called.
// The time of COUNT more events is the price of that kind; start and end are in both runs.
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STAY __attribute__((noinline, noclone))

typedef void event(unsigned number);

static void *volatile held;

STAY static void pair(unsigned number) {
    held = malloc(24 + (number & 7) * 64);
    free(held);
}

STAY static void zeroed(unsigned number) {
    held = calloc(1 + (number & 7), 16);
    free(held);
}

STAY static void resized(unsigned number) {
    held = realloc(held, 64 + (number & 63) * 8);
}

STAY static void aligned(unsigned number) {
    void *block = 0;
    if (posix_memalign(&block, 64, 64 + (number & 7) * 64))
        abort();
    held = block;
    free(block);
}

// Ten blocks of a list, and one without a reference to it.
STAY static void listed(unsigned number) {
    static struct item {
        struct item *next;
        unsigned long number;
    } *volatile first;
    (void)!malloc(40);
    for (int item = 0; item < 10; item++) {
        struct item *new = malloc(sizeof *new);
        if (!new)
            abort();
        *new = (struct item){first, number};
        first = new;
    }
}

STAY static void mapped(unsigned number) {
    void *pages = mmap(0, 4096 * (1 + (number & 3)), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        abort();
    munmap(pages, 4096 * (1 + (number & 3)));
}

// Thirty frames: the outer ones stay, and each event changes which of two functions the three inner
// ones are.
STAY static void left(unsigned number, int depth);
STAY static void right(unsigned number, int depth);

static void descend(unsigned number, int depth) {
    if (depth == 0)
        pair(number);
    else if (depth <= 3 && number >> depth & 1)
        left(number, depth - 1);
    else
        right(number, depth - 1);
}

STAY static void left(unsigned number, int depth) {
    descend(number, depth);
    __asm__ volatile("");
}

STAY static void right(unsigned number, int depth) {
    descend(number, depth);
    __asm__ volatile("");
}

STAY static void deep(unsigned number) {
    right(number, 30);
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        event *function;
    } kinds[] = {{"pair", pair}, {"calloc", zeroed}, {"realloc", resized}, {"aligned", aligned}, {"mmap", mapped}, {"list", listed}, {"deep", deep}};
    if (count < 3)
        return 2;
    if (count > 3 && !dlopen(arguments[3], RTLD_NOW)) {
        fprintf(stderr, "%s\n", dlerror());
        return 77;
    }
    unsigned long events = strtoul(arguments[2], 0, 10);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        if (strcmp(kinds[kind].name, arguments[1]))
            continue;
        for (unsigned long number = 0; number < events; number++)
            kinds[kind].function((unsigned)number);
        return 0;
    }
    return 2;
}
