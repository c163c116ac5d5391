// Frames that are hard to unwind: variable length, realigned for vectors, large, a call as the last instruction of a function.
// variant: -O2 -fomit-frame-pointer
// variant: -O2 -mavx2
// expect-stack: victim_leaf <- victim_variable <- victim_all <- main allocs=64
// expect-stack: victim_leaf <- victim_realigned <- victim_all <- main allocs=64
// expect-stack: victim_leaf <- victim_large <- victim_all <- main allocs=64
// expect-stack: victim_never_returns <- victim_ends_in_call <- victim_all <- main allocs=64
#include <setjmp.h>

#include "victim.h"

static jmp_buf back;
static volatile int sink;

VICTIM static void victim_leaf(void) { MUST(malloc(241) != NULL); }
VICTIM static void victim_variable(int length) {
    volatile char room[length];
    room[0] = 1;
    victim_leaf();
    sink = room[0];
}
VICTIM static void victim_realigned(int value) {
    volatile char room[256] __attribute__((aligned(128)));
    room[value] = 1;
    victim_leaf();
    sink = room[value];
}
VICTIM static void victim_large(int value) {
    volatile char room[100000];
    room[value] = 1;
    victim_leaf();
    sink = room[value];
}
VICTIM __attribute__((noreturn)) static void victim_never_returns(void) {
    MUST(malloc(243) != NULL);
    longjmp(back, 1);
}
VICTIM __attribute__((noreturn)) static void victim_ends_in_call(void) { victim_never_returns(); }
VICTIM static void victim_all(int turn) {
    victim_variable(100 + turn * 37);
    victim_realigned(turn);
    victim_large(turn);
    if (setjmp(back) == 0)
        victim_ends_in_call();
    sink = turn;
}

int main(void) {
    for (volatile int turn = 0; turn < 64; turn++)
        victim_all(turn);
    puts("done");
    return 0;
}
