/* heapr_heap.h: reports blocks of a program's own heaps (pools, arenas, slabs) to heapr, which records them like malloc's.
 *
 * No library is linked: the functions are weak. They exist only in programs that heapr records from their start (`heapr run`,
 * `heapr start -- PROGRAM`, a flag), not in programs that it attaches to. Otherwise each of the calls below costs one comparison.
 * For C and C++.
 *
 *   heapr_heap_t heap = heapr_heap_new("session pool");
 *   void *block = take_from_pool(pool, size);
 *   heapr_heap_on_alloc(heap, block, size);         after the block is allocated
 *   heapr_heap_on_free(heap, block);                before the block is freed
 *   give_back_to_pool(pool, block);
 *   heapr_heap_delete(heap);                        before the heap is destroyed: its blocks are freed with it
 *
 * Calls for one heap may come from any thread. Calls for one block must come in the order of its life. A heap may be created
 * before heapr starts: its handle is then NULL, and calls with NULL have no effect. Up to 237 heaps can exist at once. Several
 * heaps may have the same name. Memory that the pool itself allocates by malloc is recorded as malloc's in addition.
 */
#ifndef HEAPR_HEAP_H
#define HEAPR_HEAP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Handle of a heap, or NULL. */
typedef struct heapr_heap *heapr_heap_t;

extern heapr_heap_t heapr_heap_create(const char *name) __attribute__((weak));
extern void heapr_heap_destroy(heapr_heap_t heap) __attribute__((weak));
extern void heapr_heap_alloc(heapr_heap_t heap, const void *block, size_t size) __attribute__((weak));
extern void heapr_heap_free(heapr_heap_t heap, const void *block) __attribute__((weak));
extern void heapr_heap_resize(heapr_heap_t heap, const void *old_block, const void *block, size_t size)
    __attribute__((weak));

/* Address of the function, or NULL. It is loaded from the global offset table. In code that is not position-independent, compilers
 * would use the address directly. The linker of a program would then set that of an undefined weak function to NULL for good. */
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

/* Registers a heap. At most 64 bytes of the name are stored. Returns NULL if heapr does not record, or has no number left. */
static inline heapr_heap_t heapr_heap_new(const char *name) {
    __typeof__(&heapr_heap_create) create = HEAPR_HEAP_FUNCTION(heapr_heap_create);
    return create ? create(name) : NULL;
}

/* Reports that the heap is destroyed, with all blocks that were not freed. */
static inline void heapr_heap_delete(heapr_heap_t heap) {
    __typeof__(&heapr_heap_destroy) destroy = HEAPR_HEAP_FUNCTION(heapr_heap_destroy);
    if (heap && destroy) destroy(heap);
}

/* Reports that all blocks of the heap are freed. Returns the heap's new handle. */
static inline heapr_heap_t heapr_heap_reset(heapr_heap_t heap, const char *name) {
    heapr_heap_delete(heap);
    return heapr_heap_new(name);
}

/* Reports an allocated block. */
static inline void heapr_heap_on_alloc(heapr_heap_t heap, const void *block, size_t size) {
    __typeof__(&heapr_heap_alloc) alloc = HEAPR_HEAP_FUNCTION(heapr_heap_alloc);
    if (heap && alloc) alloc(heap, block, size);
}

/* Reports a block that is about to be freed. */
static inline void heapr_heap_on_free(heapr_heap_t heap, const void *block) {
    __typeof__(&heapr_heap_free) release = HEAPR_HEAP_FUNCTION(heapr_heap_free);
    if (heap && release) release(heap, block);
}

/* Reports that a block has another size, and perhaps another address. */
static inline void heapr_heap_on_resize(heapr_heap_t heap, const void *old_block, const void *block, size_t size) {
    __typeof__(&heapr_heap_resize) resize = HEAPR_HEAP_FUNCTION(heapr_heap_resize);
    if (heap && resize) resize(heap, old_block, block, size);
}

#ifdef __cplusplus
}
#endif

#endif
