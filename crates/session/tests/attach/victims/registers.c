// An allocator whose functions use hardly any register, and a caller that knows that: it has something in all others, masks too, in the
// flags, in the state of floating point (everything noted already, another rounding, and nothing noted and everything trapped), and the
// stack is not aligned. What a compiler makes of functions that it sees together, at its worst.
//
// arguments: 0, 1 or 2: xmm, ymm or zmm registers. Prints "skip" if the processor lacks them.
// A round: four functions that allocate, and free, each at two alignments of the stack: 8 allocations, 8 frees.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__asm__(
    ".bss\n.balign 64\narena: .zero 1<<22\n.data\nat: .quad arena\nlast: .quad 0\n.text\n"
    // rax and flags are used.
    ".globl malloc\n.type malloc,@function\nmalloc:\n"
    "mov at(%rip), %rax\nadd $64, %rax\nadd $64, %rax\nmov %rax, at(%rip)\nret\n.size malloc,.-malloc\n"
    // Nothing is used.
    ".globl free\n.type free,@function\nfree:\nmov %rdi, last(%rip)\nret\n.size free,.-free\n"
    // One goes on to another by a jump, one calls it.
    ".globl calloc\n.type calloc,@function\ncalloc:\nmovq $0, last(%rip)\njmp malloc\n.size calloc,.-calloc\n"
    ".globl memalign\n.type memalign,@function\nmemalign:\n.cfi_startproc\nsub $8, %rsp\n.cfi_def_cfa_offset 16\n"
    "movq $0, last(%rip)\ncall malloc\nadd $8, %rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size memalign,.-memalign\n"
    ".globl realloc\n.type realloc,@function\nrealloc:\n"
    "mov at(%rip), %rax\nadd $64, %rax\nadd $64, %rax\nmov %rax, at(%rip)\nret\n.size realloc,.-realloc\n");

struct state {
    unsigned long rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11, flags, rsp;
    unsigned char vectors[32][64];
    unsigned long masks[8];
    unsigned mxcsr;
    unsigned short control, status;
} __attribute__((aligned(64)));

// Loads all of `before`, calls, stores all into `after`. The stack is `odd` bytes off.
void probe(void *function, struct state *before, struct state *after, long odd, long vectors);
#define LOAD(n) "vmovdqu64 88+64*" #n "(%rbx), %zmm" #n "\n"
#define STORE(n) "vmovdqu64 %zmm" #n ", 88+64*" #n "(%r12)\n"
#define LOAD1(n) "vmovdqu 88+64*" #n "(%rbx), %ymm" #n "\n"
#define STORE1(n) "vmovdqu %ymm" #n ", 88+64*" #n "(%r12)\n"
#define LOAD0(n) "movups 88+64*" #n "(%rbx), %xmm" #n "\n"
#define STORE0(n) "movups %xmm" #n ", 88+64*" #n "(%r12)\n"
#define LOADK(n) "kmovw 2136+8*" #n "(%rbx), %k" #n "\n"
#define STOREK(n) "kmovw %k" #n ", 2136+8*" #n "(%r12)\n"
#define MASKS(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#define LOW(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
#define HIGH(F) F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23) F(24) F(25) F(26) F(27) F(28) F(29) F(30) F(31)
__asm__(
    ".globl probe\n.type probe,@function\nprobe:\n.cfi_startproc\n"
    "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp,-16\nmov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
    "push %rbx\n.cfi_offset %rbx,-24\npush %r12\n.cfi_offset %r12,-32\npush %r13\n.cfi_offset %r13,-40\n"
    "push %r14\n.cfi_offset %r14,-48\n"
    "mov %rsi, %rbx\nmov %rdx, %r12\nmov %rdi, %r13\nmov %r8, %r14\nand $-16, %rsp\nsub %rcx, %rsp\n"
    "cmp $1, %r14\njb 1f\nje 2f\n" LOW(LOAD) HIGH(LOAD) MASKS(LOADK) "jmp 3f\n"
    "2:\n" LOW(LOAD1) "jmp 3f\n"
    "1:\n" LOW(LOAD0) "3:\n"
    "fnclex\nfldcw 2204(%rbx)\nldmxcsr 2200(%rbx)\n"
    "push 72(%rbx)\npopf\n"
    "mov 0(%rbx), %rax\nmov 8(%rbx), %rcx\nmov 16(%rbx), %rdx\nmov 24(%rbx), %rsi\nmov 32(%rbx), %rdi\n"
    "mov 40(%rbx), %r8\nmov 48(%rbx), %r9\nmov 56(%rbx), %r10\nmov 64(%rbx), %r11\n"
    "call *%r13\n"
    "mov %rax, 0(%r12)\nmov %rcx, 8(%r12)\nmov %rdx, 16(%r12)\nmov %rsi, 24(%r12)\nmov %rdi, 32(%r12)\n"
    "mov %r8, 40(%r12)\nmov %r9, 48(%r12)\nmov %r10, 56(%r12)\nmov %r11, 64(%r12)\npushf\npop 72(%r12)\n"
    "stmxcsr 2200(%r12)\nfnstcw 2204(%r12)\nfnstsw 2206(%r12)\nfnclex\nfldcw ordinary_control(%rip)\nldmxcsr ordinary(%rip)\n"
    "cmp $1, %r14\njb 4f\nje 5f\n" LOW(STORE) HIGH(STORE) MASKS(STOREK) "vzeroupper\njmp 6f\n"
    "5:\n" LOW(STORE1) "vzeroupper\njmp 6f\n"
    "4:\n" LOW(STORE0) "6:\n"
    "lea -32(%rbp), %rsp\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\n.cfi_def_cfa %rsp,8\nret\n"
    ".cfi_endproc\n.size probe,.-probe\n");

_Static_assert(offsetof(struct state, masks) == 2136 && offsetof(struct state, mxcsr) == 2200, "as the assembly has it");
unsigned ordinary = 0x1f80;
unsigned short ordinary_control = 0x37f;

void *memalign(size_t, size_t);
static struct state before, after;
static long vectors, wrong;
static unsigned long blocks[2];

static void run(void *function, const char *name, unsigned long first, unsigned long second, int is_free) {
    for (long odd = 0; odd <= 8; odd += 8) {
        for (unsigned long i = 0; i < sizeof before; i++) ((unsigned char *)&before)[i] = (unsigned char)(i * 7 + odd + 1);
        for (int i = 0; i < 8; i++) before.masks[i] = 0xbeef ^ (unsigned long)(i * 0x1111 + odd);
        before.mxcsr = odd ? 0xffbf : 0;
        before.control = odd ? 0xc7f : 0x340;
        before.status = 0;
        before.flags = 0xad7 & ~0x500 | 0x202; // Carry, parity, adjust, zero, sign, overflow.
        before.rdi = is_free ? blocks[odd / 8] : first;
        before.rsi = second;
        memset(&after, 0, sizeof after);
        probe(function, &before, &after, odd, vectors);
        if (!is_free) { blocks[odd / 8] = after.rax; after.rax = before.rax; after.flags = before.flags; }
        after.rsp = before.rsp;
        if (before.mxcsr != after.mxcsr || before.control != after.control || before.status != after.status) {
            wrong++;
            fprintf(stderr, "%s: floating point %x %x %x for %x %x %x\n", name, after.mxcsr, after.control, after.status, before.mxcsr,
                    before.control, before.status);
        }
        if (vectors == 2 && memcmp(before.masks, after.masks, sizeof before.masks)) { wrong++; fprintf(stderr, "%s: a mask changed\n", name); }
        int size = vectors == 0 ? 16 : vectors == 1 ? 32 : 64;
        if (memcmp(&before, &after, 80)) { wrong++; fprintf(stderr, "%s: a register or flag changed\n", name); }
        for (int i = 0; i < (vectors == 2 ? 32 : 16); i++)
            if (memcmp(before.vectors[i], after.vectors[i], size)) { wrong++; fprintf(stderr, "%s: vector %d changed\n", name, i); }
    }
}

int main(int count, char **arguments) {
    setvbuf(stdout, 0, _IONBF, 0);
    setvbuf(stdin, 0, _IONBF, 0);
    vectors = count > 1 ? atoi(arguments[1]) : 0;
    int has = vectors == 0 || (vectors == 1 ? __builtin_cpu_supports("avx") : __builtin_cpu_supports("avx512f"));
    write(1, "ready\n", 6);
    char line[16];
    while (read(0, line, sizeof line) > 0) {
        if (!has) { write(1, "skip\n", 5); continue; }
        wrong = 0;
        run(malloc, "malloc", 40, 0, 0);
        run(free, "free", 0, 0, 1);
        run(calloc, "calloc", 2, 21, 0);
        run(free, "free", 0, 0, 1);
        run(memalign, "memalign", 64, 43, 0);
        run(free, "free", 0, 0, 1);
        run(realloc, "realloc", 0, 44, 0);
        run(free, "free", 0, 0, 1);
        if (wrong) write(1, "wrong\n", 6); else write(1, "done\n", 5);
    }
    return 0;
}
