// Dies with others: it holds as many MiB as its first argument says, and waits.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static char *load_table(size_t bytes)
{
    return malloc(bytes);
}

int main(int count, char **words)
{
    if (count != 2) return 2;
    size_t bytes = 100000;
    while (access("go", F_OK)) usleep(1000);
    for (size_t part = 0; part < (size_t)atoi(words[1]) * 1048576 / bytes; part++) {
        memset(load_table(bytes), 1, bytes);
        usleep(1000);
    }
    for (;;) pause();
}
