// Processes that end while their recorder is stopped, with many stack nodes, so that they hold all
// buffers. The next process waits until the recorder has read these, and loses no stack. (Its own
// test runs it with few buffers.)
// exit: 0
// expect: frame=victim_work allocs=8 alloc_bytes=800 outstanding=0
// expect-unmatched: 0
// expect-processes: 10
#include "victim.h"

#include <fcntl.h>
#include <sys/wait.h>

// A block of 4 KiB has 256 nodes: each child needs three.
enum { CHILDREN = 8, DEPTH = 600, STOPPED_MS = 1500 };

VICTIM static void victim_work(int depth) {
    if (depth > 1)
        return victim_work(depth - 1);
    void *block;
    MUST((block = malloc(100)) != NULL);
    free(block);
}

// Returns the parent if it is heapr. (Without heapr the parent is the test.)
static pid_t recorder_id(void) {
    char path[64], name[16] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)getppid());
    int file = open(path, O_RDONLY);
    MUST(file >= 0 && read(file, name, sizeof name - 1) > 0 && close(file) == 0);
    return strcmp(name, "heapr\n") == 0 ? getppid() : 0;
}

int main(void) {
    pid_t recorder = recorder_id();
    pid_t waker = fork();
    MUST(waker >= 0);
    if (waker == 0) {
        usleep(1000 * STOPPED_MS);
        if (recorder != 0)
            kill(recorder, SIGCONT);
        _exit(0);
    }
    if (recorder != 0)
        MUST(kill(recorder, SIGSTOP) == 0);
    for (int number = 0; number < CHILDREN; number++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            victim_work(DEPTH);
            _exit(0);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && status == 0);
    }
    int status;
    MUST(waitpid(waker, &status, 0) == waker);
    puts("done");
    return 0;
}
