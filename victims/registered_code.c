// JIT code whose unwind tables are registered: a whole section at a time, by the older function,
// and anew at the same addresses after removal, with frames of another size.
// expect: frame=victim_caller allocs=240 alloc_bytes=31440 outstanding=0
#include <sys/mman.h>

#include "victim.h"

void __register_frame(void *);
void __deregister_frame(void *);
void __register_frame_info(const void *, void *);
void *__deregister_frame_info(const void *);

typedef void made(void (*)(void));

static unsigned char *page;
static unsigned char section[64];
static long object[16];

// sub $bytes,%rsp; call *%rdi; add $bytes,%rsp; ret
static made *make(unsigned char bytes) {
    unsigned char code[] = {0x48, 0x83, 0xec, bytes, 0xff, 0xd7, 0x48, 0x83, 0xc4, bytes, 0xc3};
    memcpy(page, code, sizeof code);
    unsigned char cie[24] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1};
    unsigned char fde[32] = {28, 0, 0, 0, 28};
    unsigned long start = (unsigned long)page, length = sizeof code;
    memcpy(fde + 8, &start, 8);
    memcpy(fde + 16, &length, 8);
    unsigned char steps[] = {0x44, 0x0e, bytes + 8, 0x46, 0x0e, 8};
    memcpy(fde + 24, steps, sizeof steps);
    memset(section, 0, sizeof section);
    memcpy(section, cie, sizeof cie);
    memcpy(section + sizeof cie, fde, sizeof fde);
    return (made *)page;
}
VICTIM static void victim_leaf(void) { free(malloc(131)); }
VICTIM static void victim_caller(made *function) {
    for (int i = 0; i < 30; i++)
        function(victim_leaf);
}

int main(void) {
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(page != MAP_FAILED);
    for (int round = 0; round < 8; round++) {
        made *function = make(24 + 16 * (round % 3));
        if (round % 2)
            __register_frame_info(section, object);
        else
            __register_frame(section);
        victim_caller(function);
        if (round % 2)
            MUST(__deregister_frame_info(section) == object);
        else
            __deregister_frame(section);
    }
    puts("done");
    return 0;
}
