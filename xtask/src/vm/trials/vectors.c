// Holds numbers in all registers of SVE while it makes no system call, until it is told to end. It
// prints how often it found others. Without such registers it only prints that.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static volatile sig_atomic_t is_over;

static void handle_end(int signal) { (void)signal; is_over = 1; }

#ifdef __aarch64__
#define EACH_16(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
#define EACH_OTHER_16(F)                                                                              \
    F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23) F(24) F(25) F(26) F(27) F(28) F(29) F(30) F(31)
#define LOAD_VECTOR(n) "ldr z" #n ", [%[vectors], " #n ", mul vl]\n"
#define LOAD_MASK(n) "ldr p" #n ", [%[masks], " #n ", mul vl]\n"
#define STORE_VECTOR(n) "str z" #n ", [%[found], " #n ", mul vl]\n"
#define STORE_MASK(n) "str p" #n ", [%[found_masks], " #n ", mul vl]\n"

static size_t vector_bytes(void) {
    size_t bytes;
    __asm__(".arch_extension sve\n rdvl %0, 1" : "=r"(bytes));
    return bytes;
}

// Waits for so many steps; the registers come from `from` and go to `to`.
__attribute__((noinline)) static void hold(const unsigned char *from, unsigned char *to, size_t bytes,
                                           long steps) {
    __asm__ volatile(".arch_extension sve\n" EACH_16(LOAD_VECTOR) EACH_OTHER_16(LOAD_VECTOR)
                         EACH_16(LOAD_MASK) "1: subs %[steps], %[steps], 1\n b.ne 1b\n"
                             EACH_16(STORE_VECTOR) EACH_OTHER_16(STORE_VECTOR) EACH_16(STORE_MASK)
                     : [steps] "+r"(steps)
                     : [vectors] "r"(from), [masks] "r"(from + 32 * bytes), [found] "r"(to),
                       [found_masks] "r"(to + 32 * bytes)
                     : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",
                       "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
                       "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}

static int has_vectors(void) { return getauxval(AT_HWCAP) >> 22 & 1; }
#else
static size_t vector_bytes(void) { return 0; }
static void hold(const unsigned char *from, unsigned char *to, size_t bytes, long steps) {
    (void)from, (void)to, (void)bytes, (void)steps;
}
static int has_vectors(void) { return 0; }
#endif

int main(void) {
    static unsigned char from[32 * 256 + 16 * 32], to[sizeof from];
    long rounds = 0, faults = 0;
    if (!has_vectors()) {
        printf("no such registers, faults 0\n");
        return 0;
    }
    signal(SIGTERM, handle_end);
    size_t bytes = vector_bytes(), all = 32 * bytes + 16 * bytes / 8;
    for (size_t at = 0; at < all; at++) from[at] = (unsigned char)(at * 7 + at / 251 + 1);
    while (!is_over) {
        memset(to, 0, all);
        hold(from, to, bytes, 3000000);
        faults += memcmp(from, to, all) != 0;
        rounds++;
        free(malloc(100));
    }
    printf("vectors of %zu bytes, rounds %ld, faults %ld\n", bytes, rounds, faults);
    return faults != 0;
}
