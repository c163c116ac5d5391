// Death: a file in tmpfs (the first argument) that grows. No heap holds it.
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words)
{
    static char page[65536];
    while (access("go", F_OK)) usleep(1000);
    FILE *file = fopen(words[1], "w");
    if (count != 2 || !file) return 2;
    for (;;) {
        fwrite(page, 1, sizeof page, file);
        fflush(file);
        usleep(1000);
    }
}
