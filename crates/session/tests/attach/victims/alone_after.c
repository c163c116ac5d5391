// Its first thread ends at once; another one allocates 101 bytes at a time, at each line that it is told.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *goes_on(void *nothing) {
    char path[64], text[512] = "", line[16];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    while (strstr(text, ") Z ") == NULL) {
        usleep(1000);
        FILE *file = fopen(path, "r");
        if (file == NULL || fgets(text, sizeof text, file) == NULL)
            _exit(99);
        fclose(file);
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin) != NULL) {
        for (int i = 0; i < 1000; i++)
            if (malloc(101) == NULL)
                _exit(99);
        puts("done");
    }
    return nothing;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, goes_on, NULL) != 0)
        return 99;
    pthread_exit(NULL);
}
