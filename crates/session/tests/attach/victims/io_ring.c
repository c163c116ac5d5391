/* A read of io_uring's waits in a worker, which is listed among the threads of the process and runs none of its code. Says whether it is
   there; then what it has read, for each line. */
#include <dirent.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static int pipe_ends[2];
static char byte_read;
static int thread_count(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}
static int starts_worker(void) {
    struct io_uring_params p;
    memset(&p, 0, sizeof p);
    int ring = syscall(SYS_io_uring_setup, 4, &p);
    if (ring < 0)
        return 0;
    char *queue = mmap(0, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = mmap(0, p.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (queue == MAP_FAILED || entries == MAP_FAILED || pipe(pipe_ends))
        return 0;
    entries[0] = (struct io_uring_sqe){
        .opcode = IORING_OP_READ, .flags = IOSQE_ASYNC, .fd = pipe_ends[0], .addr = (unsigned long)&byte_read, .len = 1};
    *(unsigned *)(queue + p.sq_off.array) = 0;
    *(volatile unsigned *)(queue + p.sq_off.tail) = 1;
    if (syscall(SYS_io_uring_enter, ring, 1, 0, 0, 0, 0) != 1)
        return 0;
    for (int wait = 0; wait < 1000 && thread_count() < 2; wait++)
        usleep(1000);
    return thread_count() > 1;
}
int main(void) {
    char byte;
    setvbuf(stdout, 0, _IONBF, 0);
    free(malloc(100));
    int has_worker = starts_worker();
    puts("ready");
    puts(has_worker ? "worker" : "none");
    while (read(0, &byte, 1) == 1 && byte != '\n') {
    }
    if (has_worker && write(pipe_ends[1], "x", 1) == 1)
        for (int wait = 0; wait < 1000 && byte_read != 'x'; wait++)
            usleep(1000);
    for (int number = 0; number < 1000; number++)
        free(malloc(number + 1));
    puts(!has_worker || byte_read == 'x' ? "read" : "lost");
    pause();
}
