// Threads that end in every way: they return, leave by pthread_exit, are cancelled, run destructors
// in several rounds, free the C library's own blocks for them (the text of strerror) after the last
// destructor, or end by the bare system call. The recording's memory in the program must not grow
// with their number.
// build: -pthread
// run: 500
// expect: frame=victim_work allocs>=60000 outstanding=0
// expect: frame=victim_late allocs=1500 alloc_bytes=60000 outstanding=0
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum way { RETURNS, EXITS, CANCELLED, ROUNDS, STRERROR, DETACHED, RAW, WAYS };

static pthread_key_t key;
// Small stacks, so that a few more at a time do not matter.
static pthread_attr_t small;
static sem_t done;

static long of_status(const char *name) {
    char line[256];
    long value = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) sscanf(line + strlen(name), "%ld", &value);
    if (file) fclose(file);
    return value;
}

__attribute__((noinline)) void victim_late(void) {
    char *block = malloc(40);
    memset(block, 1, 40);
    free(block);
    __asm__ volatile("");
}

static void destroy(void *round) {
    victim_late();
    if ((long)round < 3) pthread_setspecific(key, (void *)((long)round + 1));
}

__attribute__((noinline)) void victim_work(void) {
    void *blocks[20];
    for (int i = 0; i < 20; i++) blocks[i] = malloc(100 + i);
    for (int i = 0; i < 20; i++) free(blocks[i]);
    __asm__ volatile("");
}

static void *work(void *argument) {
    enum way way = (enum way)(long)argument;
    victim_work();
    switch (way) {
    case EXITS: pthread_exit(NULL);
    case CANCELLED: for (;;) pause();
    case ROUNDS: pthread_setspecific(key, (void *)1); break;
    case STRERROR: if (strerror(12345)[0] == 0) abort(); break;
    case DETACHED: sem_post(&done); break;
    case RAW: syscall(SYS_exit, 0);
    default: break;
    }
    return NULL;
}

static void start(enum way way) {
    pthread_t thread;
    if (pthread_create(&thread, &small, work, (void *)(long)way) != 0) {
        fprintf(stderr, "no thread\n");
        exit(99);
    }
    if (way == CANCELLED) pthread_cancel(thread);
    if (way == DETACHED) {
        pthread_detach(thread);
        sem_wait(&done);
        // At most one such thread at a time, however late it ends.
        while (of_status("Threads:") > 1) sched_yield();
    } else {
        pthread_join(thread, NULL);
    }
}

int main(int count, char **arguments) {
    int times = count > 1 ? atoi(arguments[1]) : 500;
    mallopt(M_ARENA_MAX, 1);
    sem_init(&done, 0, 0);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    pthread_key_create(&key, destroy);
    for (int i = 0; i < 20; i++)
        for (int way = 0; way < RAW; way++) start((enum way)way);
    long resident = of_status("RssAnon:"), mapped = of_status("VmSize:");
    for (int i = 20; i < times; i++)
        for (int way = 0; way < RAW; way++) start((enum way)way);
    resident = of_status("RssAnon:") - resident;
    // The C library does not free what it holds of a thread that ends so.
    for (int i = 0; i < times; i++) start(RAW);
    mapped = of_status("VmSize:") - mapped;
    // The state of a thread alone takes more than 100 kB of addresses.
    if (resident > 1024 || mapped > 16384) {
        fprintf(stderr, "grows by %ld kB resident, %ld kB mapped\n", resident, mapped);
        return 99;
    }
    return 0;
}
