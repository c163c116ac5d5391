// The program execs itself by the functions that take the arguments one by one, with an environment
// that lacks heapr's variables. It uses execle with one of its own, execl and execlp after it has
// emptied the given one, and at last more arguments than fit the stack's room. Each image is
// traced, and gets exactly the arguments that were passed.
// exit: 5
// expect: frame=victim_image allocs=5 alloc_bytes=1615 outstanding=5
// expect-processes: 5
#include "victim.h"

#define TEN(x) x, x, x, x, x, x, x, x, x, x
#define HUNDRED(x) TEN(x), TEN(x), TEN(x), TEN(x), TEN(x), TEN(x), TEN(x), TEN(x), TEN(x), TEN(x)

VICTIM static void victim_image(void) { MUST(malloc(323) != NULL); }

int main(int count, char **arguments) {
    victim_image();
    static char path[4096];
    MUST(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    switch (count) {
    case 1: {
        char *environment[] = {"GREETING=hello", NULL};
        execle(path, arguments[0], "one", NULL, environment);
        break;
    }
    case 2:
        MUST(strcmp(arguments[1], "one") == 0 && strcmp(getenv("GREETING"), "hello") == 0);
        clearenv();
        execl(path, arguments[0], "1", "2", "3", "4", "5", "6", NULL);
        break;
    case 7:
        MUST(strcmp(arguments[1], "1") == 0 && strcmp(arguments[4], "4") == 0 && strcmp(arguments[6], "6") == 0);
        clearenv();
        execlp(path, arguments[0], "1", "2", "3", NULL);
        break;
    case 4:
        MUST(strcmp(arguments[3], "3") == 0);
        clearenv();
        execl(path, arguments[0], HUNDRED("x"), HUNDRED("y"), HUNDRED("z"), NULL);
        break;
    case 301:
        MUST(strcmp(arguments[1], "x") == 0 && strcmp(arguments[150], "y") == 0 && strcmp(arguments[300], "z") == 0);
        puts("done");
        return 5;
    default:
        break;
    }
    return 98;
}
