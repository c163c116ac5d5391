// A child whose agent is switched off from the start: it is loaded and records nothing, and lookups
// of allocator functions return the C library's. Its parent is recorded.
// build: -ldl
// variant: -O1 -Wl,-z,now
// expect: frame=victim_recorded allocs=100 alloc_bytes=4100 outstanding=0
// expect: frame=victim_switched_off allocs=0
#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "victim.h"

static int is_of_the_agent(const char *name) {
    void *function = dlsym(RTLD_DEFAULT, name);
    Dl_info info;
    MUST(function != NULL && dladdr(function, &info) != 0);
    return strstr(info.dli_fname, "libc.so") == NULL;
}

static int is_agent_loaded(void) { return dlsym(RTLD_DEFAULT, "heapr_heap_alloc") != NULL; }

// The program runs without heapr, too.
static int is_under_heapr(void) { return getenv("HEAPR_SESSION") != NULL; }

static const char *const names[] = {
    "malloc", "calloc", "realloc", "free", "posix_memalign", "memalign", "valloc", "mmap", "mmap64", "munmap", "mremap", "mprotect",
};

VICTIM static void victim_recorded(void) {
    for (int i = 0; i < 100; i++)
        free(malloc(41));
}

// Calls every function that is passed on, bound early and late.
VICTIM static void victim_switched_off(void) {
    for (int i = 0; i < 100; i++) {
        char *block = malloc(43);
        block = realloc(block, 4300);
        MUST(block != NULL && malloc_usable_size(block) >= 4300);
        free(block);
        free(calloc(3, 43));
        void *aligned;
        MUST(posix_memalign(&aligned, 64, 43) == 0);
        free(aligned);
        free(memalign(128, 43));
        free(valloc(43));
        void *mapping = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(mapping != MAP_FAILED);
        mapping = mremap(mapping, 4096, 8192, MREMAP_MAYMOVE);
        MUST(mprotect(mapping, 8192, PROT_READ | PROT_WRITE) == 0);
        MUST(mapping != MAP_FAILED && munmap(mapping, 8192) == 0);
        free(strdup("a block of the C library's own"));
    }
}

int main(int count, char **arguments) {
    MUST(is_agent_loaded() == is_under_heapr());
    if (count > 1) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            MUST(!is_of_the_agent(names[i]));
        victim_switched_off();
        return 5;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        MUST(is_of_the_agent(names[i]) == is_under_heapr());
    victim_recorded();
    pid_t child = fork();
    if (child == 0) {
        setenv("HEAPR_DISABLE", "1", 1);
        execl("/proc/self/exe", arguments[0], "off", NULL);
        _exit(98);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    return 0;
}
