// Dies with others, or of a lowered limit: it holds as many MiB as its first argument says. With a second one it goes
// on by as many MiB once the file `more` is there. Then it waits.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static char *load_table(size_t bytes)
{
    return malloc(bytes);
}

static void hold(const char *file, const char *mib)
{
    size_t bytes = 100000;
    while (access(file, F_OK)) usleep(1000);
    for (size_t part = 0; part < (size_t)atoi(mib) * 1048576 / bytes; part++) {
        memset(load_table(bytes), 1, bytes);
        usleep(1000);
    }
}

int main(int count, char **words)
{
    if (count < 2) return 2;
    hold("go", words[1]);
    if (count > 2) hold("more", words[2]);
    for (;;) pause();
}
