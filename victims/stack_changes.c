// Code that switches to another stack, and describes that in its unwind tables by the frame
// pointer, another register, or a word of the new stack. It runs on the main thread and on another,
// nested, on stacks that are unmapped, above and below the thread's own.
// build: -pthread
// expect-stack: victim_leaf <- leaves <- by_frame_pointer <- victim_by_frame_pointer <- main allocs=100
// expect-stack: victim_leaf <- leaves <- by_register <- victim_by_register <- main allocs=100
// expect-stack: victim_leaf <- leaves <- by_word <- victim_by_word <- main allocs=100
// expect-stack: victim_leaf <- leaves <- by_frame_pointer <- victim_gone <- main allocs=5000
// expect-stack: victim_leaf <- leaves <- by_frame_pointer <- victim_thrice <- by_register <- victim_twice <- by_word <- victim_once <- main allocs=100
// expect-stack: victim_leaf <- leaves <- victim_thrice <- by_register <- victim_twice <- by_word <- victim_once <- victim_thread allocs=100
// expect-stack: victim_leaf <- leaves <- victim_twice <- by_word <- victim_once <- victim_thread allocs=100
// expect-stack: victim_leaf <- leaves <- by_frame_pointer <- victim_gone <- victim_thread allocs=5000
// expect-stack: victim_leaf <- leaves <- by_frame_pointer <- victim_on_static <- victim_thread allocs=100
// expect: frame=victim_from_handler allocs=2
#include <pthread.h>
#include <sys/mman.h>

#include "victim.h"

#define STACK_BYTES (1 << 18)

// Functions that call `function` on the stack that ends at `top`.
void by_frame_pointer(void *top, void (*function)(void));
void by_register(void *top, void (*function)(void));
void by_word(void *top, void (*function)(void));

#define FUNCTION(name, body)                                                                       \
    __asm__(".text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" body \
            "ret\n.cfi_endproc\n.size " #name ",.-" #name "\n")

FUNCTION(by_frame_pointer,
         "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp,-16\nmov %rsp,%rbp\n.cfi_def_cfa_register %rbp\n"
         "mov %rdi,%rsp\ncall *%rsi\nmov %rbp,%rsp\npop %rbp\n.cfi_def_cfa %rsp,8\n");
FUNCTION(by_register,
         "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx,-16\nmov %rsp,%rbx\n.cfi_def_cfa_register %rbx\n"
         "mov %rdi,%rsp\ncall *%rsi\nmov %rbx,%rsp\n.cfi_def_cfa_register %rsp\npop %rbx\n.cfi_def_cfa_offset 8\n");
// The canonical frame address is the word at the stack pointer, plus 8.
FUNCTION(by_word, "mov %rsp,-16(%rdi)\nlea -16(%rdi),%rsp\n.cfi_escape 0x0f,5,0x77,0,0x06,0x23,8\ncall *%rsi\n"
                  "mov (%rsp),%rsp\n.cfi_def_cfa %rsp,8\n");

static char on_static[STACK_BYTES] __attribute__((aligned(16)));

static char *new_stack(void) {
    char *low = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(low != MAP_FAILED);
    return low + STACK_BYTES;
}
VICTIM static void victim_leaf(void) { free(malloc(131)); }
VICTIM static void leaves(void) {
    for (int i = 0; i < 100; i++)
        victim_leaf();
}
VICTIM static void victim_thrice(void) {
    by_frame_pointer(new_stack(), leaves);
    leaves();
}
VICTIM static void victim_twice(void) {
    by_register(new_stack(), victim_thrice);
    leaves();
}
VICTIM static void victim_once(void) {
    by_word(new_stack(), victim_twice);
}
VICTIM static void victim_by_frame_pointer(void) { by_frame_pointer(new_stack(), leaves); }
VICTIM static void victim_by_register(void) { by_register(new_stack(), leaves); }
VICTIM static void victim_by_word(void) { by_word(new_stack(), leaves); }
VICTIM static void victim_on_static(void) { by_frame_pointer(on_static + STACK_BYTES, leaves); }
VICTIM static void victim_gone(void) {
    for (int i = 0; i < 50; i++) {
        char *top = new_stack();
        by_frame_pointer(top, leaves);
        munmap(top - STACK_BYTES, STACK_BYTES);
    }
}
static void handler(int number) {
    (void)number;
    victim_leaf();
}
VICTIM static void raises(void) {
    raise(SIGUSR1);
    victim_leaf();
}
VICTIM static void victim_from_handler(void) { by_frame_pointer(new_stack(), raises); }

VICTIM static void *victim_thread(void *nothing) {
    victim_once();
    victim_gone();
    victim_on_static();
    return nothing;
}

int main(void) {
    static char room[65536];
    stack_t alternate = {.ss_sp = room, .ss_size = sizeof room};
    MUST(sigaltstack(&alternate, NULL) == 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    victim_by_frame_pointer();
    victim_by_register();
    victim_by_word();
    victim_once();
    victim_gone();
    victim_from_handler();
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, victim_thread, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    puts("done");
    return 0;
}
