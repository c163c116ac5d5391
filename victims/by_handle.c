// Functions of the C library reached by a handle, by version, behind the agent (RTLD_NEXT), and by
// glibc's own names. Each call counts once, and a block may be freed by a function of another name.
// build: -ldl -fno-builtin
// expect: frame=victim_plain allocs=300 alloc_bytes=30300 outstanding=0
// expect: frame=victim_handle allocs=100 alloc_bytes=10300 outstanding=100
// expect: frame=victim_direct allocs=100 alloc_bytes=10700 outstanding=0
// expect: frame=victim_version allocs=100 alloc_bytes=10900 outstanding=0
// expect: frame=victim_next allocs=100 alloc_bytes=12700 outstanding=0
// expect: frame=victim_kin allocs=50 outstanding=0
// expect-unmatched: 0
#define _GNU_SOURCE
#include <dlfcn.h>

#include "victim.h"

// The version of the first glibc for the processor.
#ifdef __aarch64__
#define FIRST_VERSION "GLIBC_2.17"
#else
#define FIRST_VERSION "GLIBC_2.2.5"
#endif

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

typedef void *Allocate(size_t);
typedef void *Calloc(size_t, size_t);
typedef void Free(void *);

VICTIM static void *victim_plain(void) { return malloc(101); }
VICTIM static void *victim_handle(Allocate *by) { return by(103); }
VICTIM static void *victim_direct(void) { return __libc_malloc(107); }
VICTIM static void *victim_version(Allocate *by) { return by(109); }
VICTIM static void *victim_next(Calloc *by) { return by(1, 127); }
VICTIM static void victim_kin(Free *give) {
    give(__libc_realloc(__libc_calloc(3, 11), 1000));
    give(__libc_memalign(64, 131));
    void *stored = NULL;
    MUST(posix_memalign(&stored, 64, 137) == 0);
    __libc_free(stored);
    free(__libc_malloc(139));
}

int main(void) {
    void *library = dlopen("libc.so.6", RTLD_NOW);
    MUST(library);
    Allocate *by_handle = (Allocate *)dlsym(library, "malloc");
    Allocate *by_version = (Allocate *)dlvsym(library, "malloc", FIRST_VERSION);
    Calloc *by_next = (Calloc *)dlsym(RTLD_NEXT, "calloc");
    Free *give = (Free *)dlsym(library, "free");
    MUST(by_handle && by_version && by_next && give);
    for (int i = 0; i < 100; i++) {
        give(victim_plain());
        __libc_free(victim_plain());
        free(victim_plain());
        victim_handle(by_handle);
        free(victim_direct());
        give(victim_version(by_version));
        __libc_free(victim_next(by_next));
    }
    for (int i = 0; i < 10; i++)
        victim_kin(give);
    puts("done");
    return 0;
}
