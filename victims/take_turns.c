// Four stacks take turns, again and again, in a function that is reached by one of three ways which differ in a single return address: what is
// remembered of one must not be believed of the next. With frame pointers and without.
// variant: -O2 -fno-omit-frame-pointer
// variant: -O2 -fomit-frame-pointer
// variant: -O0
// expect-stack: victim_turns <- victim_middle <- victim_left allocs=13564
// expect-stack: victim_turns <- victim_middle <- victim_right allocs=13564
// expect-stack: victim_turns <- victim_middle <- victim_straight allocs=13564
// expect-stack: victim_leaf <- victim_d <- victim_turns <- victim_middle <- victim_left allocs=3391
// expect: frame=victim_outer allocs=40692 outstanding=0
#include "victim.h"

static volatile int sink;

VICTIM static void victim_leaf(int size) {
    void *volatile block = malloc((size_t)size);
    free(block);
    sink++;
}
VICTIM static void victim_a(void) { victim_leaf(261); sink++; }
VICTIM static void victim_b(void) { victim_leaf(262); sink++; }
VICTIM static void victim_c(void) { victim_leaf(263); sink++; }
VICTIM static void victim_d(void) { victim_leaf(264); sink++; }
VICTIM static void victim_turns(int count) {
    for (volatile int turn = 0; turn < count; turn++) {
        victim_a();
        victim_b();
        victim_c();
        victim_d();
    }
}
VICTIM static void victim_middle(int count) { victim_turns(count); sink++; }
VICTIM static void victim_left(int count) { victim_middle(count); sink++; }
VICTIM static void victim_right(int count) { victim_middle(count); sink++; }
VICTIM static void victim_straight(int count) { victim_middle(count); sink++; }
VICTIM static void victim_outer(int round) {
    // Of each length, so that the next way comes in any state of what is remembered.
    int count = 1 + round / 3 % 79;
    if (round % 3 == 0)
        victim_left(count);
    else if (round % 3 == 1)
        victim_right(count);
    else
        victim_straight(count);
    sink++;
}

int main(void) {
    // 100 rounds of each way, of 1 to 79 turns and of 1 to 21: 3,160 + 231.
    for (volatile int round = 0; round < 300; round++)
        victim_outer(round);
    puts("done");
    return 0;
}
