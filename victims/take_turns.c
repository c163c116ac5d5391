// Four stacks with frames of different sizes take turns in a function that is reached by one of
// three paths, which differ in a single return address. A cached suffix of one path must not be
// used for the next. Built with frame pointers and without.
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
// Frames of different sizes: equal ones would be repaired into each other.
#define TAKES_TURN(name, words)            \
    VICTIM static void name(int size) {    \
        volatile long room[words];         \
        room[size % (words)] = size;       \
        victim_leaf(size);                 \
        sink += (int)room[size % (words)]; \
    }
TAKES_TURN(victim_a, 2)
TAKES_TURN(victim_b, 8)
TAKES_TURN(victim_c, 16)
TAKES_TURN(victim_d, 32)
VICTIM static void victim_turns(int count, int first) {
    for (volatile int turn = 0; turn < count * 4; turn++)
        switch ((turn + first) % 4) {
        case 0: victim_a(261); break;
        case 1: victim_b(262); break;
        case 2: victim_c(263); break;
        default: victim_d(264);
        }
}
VICTIM static void victim_middle(int count, int first) { victim_turns(count, first); sink++; }
VICTIM static void victim_left(int count, int first) { victim_middle(count, first); sink++; }
VICTIM static void victim_right(int count, int first) { victim_middle(count, first); sink++; }
VICTIM static void victim_straight(int count, int first) { victim_middle(count, first); sink++; }
VICTIM static void victim_outer(int round) {
    // Turns of each length, beginning with each of the four, so that the next path finds the cache
    // in any state.
    int count = 1 + round / 3 % 79, first = round / 5;
    if (round % 3 == 0)
        victim_left(count, first);
    else if (round % 3 == 1)
        victim_right(count, first);
    else
        victim_straight(count, first);
    sink++;
}

int main(void) {
    // 100 rounds of each path, of 1 to 79 turns and of 1 to 21: 3,160 + 231.
    for (volatile int round = 0; round < 300; round++)
        victim_outer(round);
    puts("done");
    return 0;
}
