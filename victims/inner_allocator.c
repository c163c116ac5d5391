// An allocator embedded in the program that the loader does not know: jemalloc's interface under a
// prefix, as in Rust's crates. Its functions call one another and allocate from the C library: only
// the program's own calls count, each once.
// build: -O2
// variant: -O2 -fno-pie -no-pie
// variant: -O3 -flto
// expect: frame=victim_takes allocs=1000 alloc_bytes=100000 outstanding=0
// expect: frame=victim_zeroed allocs=50 alloc_bytes=16000 outstanding=50 outstanding_bytes=16000
// expect: frame=victim_grows allocs=20 reallocs=19 alloc_bytes=33600 outstanding=1 outstanding_bytes=3200
// expect: frame=victim_aligned allocs=10 alloc_bytes=5120 outstanding=0
// expect: frame=victim_stays allocs=3 reallocs=1 alloc_bytes=292 outstanding=1 outstanding_bytes=128
// expect: frame=victim_of_c_library allocs=7 alloc_bytes=49 outstanding=0
// expect-unmatched: 0
#include "victim.h"

#define INSIDE __attribute__((noinline, noclone, visibility("hidden"), used))

// Blocks of a power of two, with their size in front; free ones are linked.
typedef struct head { size_t bytes; struct head *next; } head;
static head *free_blocks[48];

static unsigned class_of(size_t bytes) {
    unsigned class = 4;
    while (((size_t)1 << class) < bytes) class++;
    return class;
}
INSIDE void *_rjem_malloc(size_t bytes) {
    unsigned class = class_of(bytes);
    head *block = free_blocks[class];
    if (block) free_blocks[class] = block->next;
    else block = malloc(sizeof(head) + ((size_t)1 << class));
    block->bytes = bytes;
    return block + 1;
}
INSIDE void _rjem_free(void *block) {
    if (!block) return;
    head *at = (head *)block - 1;
    unsigned class = class_of(at->bytes);
    at->next = free_blocks[class];
    free_blocks[class] = at;
}
INSIDE void *_rjem_calloc(size_t count, size_t bytes) {
    return memset(_rjem_malloc(count * bytes), 0, count * bytes);
}
INSIDE void *_rjem_realloc(void *old, size_t bytes) {
    void *block = _rjem_malloc(bytes);
    if (old) {
        size_t before = ((head *)old - 1)->bytes;
        memcpy(block, old, before < bytes ? before : bytes);
        _rjem_free(old);
    }
    return block;
}
INSIDE void *_rjem_mallocx(size_t bytes, int flags) { return flags ? _rjem_calloc(1, bytes) : _rjem_malloc(bytes); }
INSIDE void _rjem_sdallocx(void *block, size_t bytes, int flags) { (void)bytes; if (!flags) _rjem_free(block); }
INSIDE size_t _rjem_xallocx(void *block, size_t bytes, size_t extra, int flags) {
    (void)extra; (void)flags;
    head *at = (head *)block - 1;
    if (bytes <= (size_t)1 << class_of(at->bytes)) at->bytes = bytes;
    return at->bytes;
}

static void *volatile kept[50];

VICTIM static void victim_takes(int number) {
    void *volatile block = _rjem_malloc(100);
    if (number & 1) _rjem_free(block); else _rjem_sdallocx(block, 100, 0);
}
VICTIM static void victim_zeroed(int number) { kept[number] = _rjem_calloc(40, 8); }
VICTIM static void victim_grows(void) {
    void *block = NULL;
    for (size_t bytes = 160; bytes <= 3200; bytes += 160) block = _rjem_realloc(block, bytes);
    kept[0] = block;
}
VICTIM static void victim_aligned(void) { _rjem_sdallocx(_rjem_mallocx(512, 1), 512, 0); }
VICTIM static void victim_stays(void) {
    void *block = _rjem_malloc(64);
    MUST(_rjem_xallocx(block, 100000, 0, 0) == 64);
    _rjem_free(block);
    MUST(_rjem_xallocx(block = _rjem_malloc(100), 128, 0, 0) == 128);
    kept[1] = block;
}
VICTIM static void victim_of_c_library(void) { void *volatile block = malloc(7); free(block); }

int main(void) {
    for (int number = 0; number < 1000; number++) victim_takes(number);
    for (int number = 0; number < 50; number++) victim_zeroed(number);
    victim_grows();
    for (int number = 0; number < 10; number++) victim_aligned();
    victim_stays();
    for (int number = 0; number < 7; number++) victim_of_c_library();
    return 0;
}
