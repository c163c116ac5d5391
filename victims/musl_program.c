// A program on musl, whose loader is not the C library's that the agent is for: it runs, traced or told in one line that it cannot be.
// needs: musl-gcc
// build: compiler=musl-gcc
// untraced: musl
// exit: 6
#include "victim.h"

int main(void) {
    for (int i = 0; i < 1000; i++)
        free(malloc(307));
    puts("done");
    return 6;
}
