// A static program: it cannot be traced, heapr says so in one line, and it runs.
// build: -static
// untraced: static
// exit: 4
#include "victim.h"

int main(void) {
    free(malloc(10));
    puts("done");
    return 4;
}
