// Frames of one size, 16 bytes, that follow each other in changing order. They leave the frame
// pointer register alone, put anything into it, or need it. Some differ from the previous stack's,
// and all have the same positions. The cached stack can be repaired in place, unless the register
// says otherwise.
// expect: frame=victim_leaf allocs=60000 alloc_bytes=15420000 outstanding=0
#include "victim.h"

#define DEPTH 12

// Functions of the inner frames, outermost first.
static void (*path[DEPTH + 1])(void *next);
uint64_t victim_seed = 88172645463325252u;

// Functions of which each calls the next of the path, whose address it gets.
void victim_leaves_it(void *next);
void victim_uses_it(void *next);
void victim_needs_it(void *next);

#define FRAME(name, before, body, after)                                                                                \
    __asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n" before body            \
            "mov (%rdi), %rax\nadd $8, %rdi\ncall *%rax\n" after "ret\n.cfi_endproc\n.size " name ", . - " name "\n")

FRAME("victim_leaves_it", "sub $8, %rsp\n.cfi_def_cfa_offset 16\n", "", "add $8, %rsp\n.cfi_def_cfa_offset 8\n");
FRAME("victim_uses_it", "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n",
      "mov victim_seed(%rip), %rbp\nadd %rdi, %rbp\n", "pop %rbp\n.cfi_def_cfa_offset 8\n");
FRAME("victim_needs_it",
      "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n", "",
      "pop %rbp\n.cfi_def_cfa %rsp, 8\n");

static unsigned any(void) {
    victim_seed ^= victim_seed << 13;
    victim_seed ^= victim_seed >> 7;
    victim_seed ^= victim_seed << 17;
    return (unsigned)(victim_seed >> 33);
}

VICTIM static void victim_leaf(void *next) {
    (void)next;
    void *volatile block = malloc(257);
    free(block);
}

int main(void) {
    static void (*const kinds[3])(void *) = {victim_leaves_it, victim_uses_it, victim_needs_it};
    for (int place = 0; place < DEPTH; place++)
        path[place] = kinds[any() % 3];
    path[DEPTH] = victim_leaf;
    for (int turn = 0; turn < 60000; turn++) {
        // Replaces one to three of the frames, the outermost least often.
        for (unsigned changes = any() % 3 + 1; changes > 0; changes--)
            path[any() % 4 ? DEPTH / 2 + any() % (DEPTH / 2) : any() % DEPTH] = kinds[any() % 3];
        path[0](path + 1);
    }
    puts("done");
    return 0;
}
