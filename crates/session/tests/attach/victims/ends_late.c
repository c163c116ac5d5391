/*
 * A thread for each line, on the stack of the last one. At its end the C library frees what dlopen
 * has said, after the last destructor.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *work(void *argument) {
    for (int i = 0; i < 100; i++) free(malloc(1000 + i));
    dlopen("/no/such/library", RTLD_NOW);
    return argument;
}
int main(void) {
    char line[100];
    setvbuf(stdout, 0, _IONBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        pthread_t thread;
        pthread_create(&thread, 0, work, 0);
        pthread_join(thread, 0);
        puts("done");
    }
    return 0;
}
