/* heapr_heap.h: tell heapr of heaps of your own (pools, arenas, slabs), so that what they hand out is recorded like malloc.
 *
 * Nothing is linked: the functions are weak, and are there only while heapr records the program, from its start (`heapr run`,
 * `heapr start -- PROGRAM`, a flag), not in one that it attaches to. Otherwise each of the calls below costs one comparison.
 * C and C++.
 *
 *   heapr_heap_t heap = heapr_heap_new("session pool");
 *   void *block = take_from_pool(pool, size);
 *   heapr_heap_on_alloc(heap, block, size);         after the block is taken
 *   heapr_heap_on_free(heap, block);                before it is given back
 *   give_back_to_pool(pool, block);
 *   heapr_heap_delete(heap);                        before all of it goes: its blocks are free with it
 *
 * Calls for one heap may come from any thread; those for one block come in the order of its life. A heap may exist before
 * heapr does: its handle is NULL then, and calls with NULL do nothing. Up to 254 heaps can exist at once; one name may be
 * given to many. Memory that the pool itself takes from malloc is recorded as malloc's, besides.
 */
#ifndef HEAPR_HEAP_H
#define HEAPR_HEAP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A heap, or NULL. */
typedef struct heapr_heap *heapr_heap_t;

extern heapr_heap_t heapr_heap_create(const char *name) __attribute__((weak));
extern void heapr_heap_destroy(heapr_heap_t heap) __attribute__((weak));
extern void heapr_heap_alloc(heapr_heap_t heap, const void *block, size_t size) __attribute__((weak));
extern void heapr_heap_free(heapr_heap_t heap, const void *block) __attribute__((weak));
extern void heapr_heap_resize(heapr_heap_t heap, const void *old_block, const void *block, size_t size)
    __attribute__((weak));

/* The function, or NULL. By way of the global offset table: in code that is not position-independent compilers name it directly, and
 * the linker of a program takes a weak function that it does not find for NULL, for good. */
#if defined(__x86_64__) && defined(__LP64__) && defined(__ELF__)
#define HEAPR_HEAP_FUNCTION(name)                                                                   \
    __extension__({                                                                                 \
        void *heapr_found;                                                                          \
        __asm__(".weak " #name "\n\tmovq " #name "@GOTPCREL(%%rip), %0" : "=r"(heapr_found));       \
        (__typeof__(&name))heapr_found;                                                             \
    })
#else
#define HEAPR_HEAP_FUNCTION(name) (&name)
#endif

/* Makes a heap known. At most 64 bytes of the name are kept. NULL: heapr does not record, or has no number left. */
static inline heapr_heap_t heapr_heap_new(const char *name) {
    __typeof__(&heapr_heap_create) create = HEAPR_HEAP_FUNCTION(heapr_heap_create);
    return create ? create(name) : NULL;
}

/* The heap goes, and with it all blocks that were not freed. */
static inline void heapr_heap_delete(heapr_heap_t heap) {
    __typeof__(&heapr_heap_destroy) destroy = HEAPR_HEAP_FUNCTION(heapr_heap_destroy);
    if (heap && destroy) destroy(heap);
}

/* All blocks of the heap go, the heap stays: gives its new handle. */
static inline heapr_heap_t heapr_heap_reset(heapr_heap_t heap, const char *name) {
    heapr_heap_delete(heap);
    return heapr_heap_new(name);
}

/* A block was taken. */
static inline void heapr_heap_on_alloc(heapr_heap_t heap, const void *block, size_t size) {
    __typeof__(&heapr_heap_alloc) alloc = HEAPR_HEAP_FUNCTION(heapr_heap_alloc);
    if (heap && alloc) alloc(heap, block, size);
}

/* A block is about to be given back. */
static inline void heapr_heap_on_free(heapr_heap_t heap, const void *block) {
    __typeof__(&heapr_heap_free) release = HEAPR_HEAP_FUNCTION(heapr_heap_free);
    if (heap && release) release(heap, block);
}

/* A block has another size now, and perhaps another address. */
static inline void heapr_heap_on_resize(heapr_heap_t heap, const void *old_block, const void *block, size_t size) {
    __typeof__(&heapr_heap_resize) resize = HEAPR_HEAP_FUNCTION(heapr_heap_resize);
    if (heap && resize) resize(heap, old_block, block, size);
}

#ifdef __cplusplus
}
#endif

#endif
