// The first thread ends by pthread_exit, and the others continue: all their allocations are
// recorded, also those of threads that they start.
// build: -pthread
// expect: frame=victim_late allocs=2000 alloc_bytes=202000 outstanding=2000
// expect-processes: 1
#include <pthread.h>
#include <sys/syscall.h>

#include "victim.h"

static void *keep[2000];

VICTIM static void victim_late(int number) { keep[number] = malloc(101); }
static void *later(void *nothing) {
    for (int i = 1000; i < 2000; i++) {
        victim_late(i);
        usleep(100);
    }
    puts("done");
    return nothing;
}
static void *goes_on(void *nothing) {
    // Waits until the first thread is a zombie, and the recorder has had time to see that.
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    do {
        usleep(1000);
        FILE *file = fopen(path, "r");
        MUST(file != NULL && fgets(text, sizeof text, file) != NULL);
        fclose(file);
    } while (strstr(text, ") Z ") == NULL);
    for (int i = 0; i < 1000; i++) {
        victim_late(i);
        usleep(1000);
    }
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, later, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    return nothing;
}

int main(void) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, goes_on, NULL) == 0);
    pthread_exit(NULL);
}
