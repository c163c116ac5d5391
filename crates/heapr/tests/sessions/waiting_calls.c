// Threads that wait in the kernel, each in another call: nobody may see that somebody looks on.
//
// Prints `ready` when all wait, and at the end a line for each call: its name, what it answered, errno's
// name and for how many milliseconds it waited. Calls with a limit have the milliseconds of the first
// argument (of a socket by SO_RCVTIMEO); those without one `wait` still at the end.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long limit_ms;
static struct timespec limit;
static int begun;
static int queue = -1, set_of_semop = -1;

struct call { const char *name; long (*wait)(void); int has_limit; };
struct done { long answer; int error; long ms; int is_over; };

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int *a_pipe(void) { int *ends = malloc(8); if (pipe(ends)) abort(); return ends; }
static int a_socket(void) {
    int ends[2];
    struct timeval time = {limit_ms / 1000, limit_ms % 1000 * 1000};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    return ends[0];
}
static int listener(void) {
    struct timeval time = {limit_ms / 1000, limit_ms % 1000 * 1000};
    int file = socket(AF_INET, SOCK_STREAM, 0);
    if (listen(file, 1)) abort();
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    return file;
}
static int semaphore(void) { return semget(IPC_PRIVATE, 1, 0600); }
static sigset_t one_signal(int number) { sigset_t set; sigemptyset(&set); sigaddset(&set, number); return set; }
static sigset_t all_signals(void) { sigset_t set; sigfillset(&set); return set; }

static long t_epoll_wait(void) { struct epoll_event e; return epoll_wait(epoll_create1(0), &e, 1, limit_ms); }
static long t_epoll_wait_for_ever(void) { struct epoll_event e; return epoll_wait(epoll_create1(0), &e, 1, -1); }
static long t_epoll_pwait(void) {
    struct epoll_event e;
    sigset_t set = all_signals();
    return epoll_pwait(epoll_create1(0), &e, 1, limit_ms, &set);
}
static long t_epoll_pwait2(void) {
    struct epoll_event e;
    return syscall(441, epoll_create1(0), &e, 1, &limit, NULL, 8);
}
static long t_poll(void) { return poll(NULL, 0, limit_ms); }
static long t_ppoll(void) { struct timespec time = limit; return ppoll(NULL, 0, &time, NULL); }
static long t_select(void) {
    struct timeval time = {limit_ms / 1000, limit_ms % 1000 * 1000};
    return select(0, NULL, NULL, NULL, &time);
}
static long t_pselect(void) { return pselect(0, NULL, NULL, NULL, &limit, NULL); }
static long t_semop(void) {
    struct sembuf take = {0, -1, 0};
    set_of_semop = semaphore();
    return semop(set_of_semop, &take, 1);
}
static long t_semtimedop(void) {
    struct sembuf take = {0, -1, 0};
    int set = semaphore();
    long answer = semtimedop(set, &take, 1, &limit);
    int error = errno;
    semctl(set, 0, IPC_RMID);
    errno = error;
    return answer;
}
static long t_sigwaitinfo(void) { sigset_t set = one_signal(SIGUSR1); return sigwaitinfo(&set, NULL); }
static long t_sigtimedwait(void) { sigset_t set = one_signal(SIGUSR2); return sigtimedwait(&set, NULL, &limit); }
static long t_accept(void) { return accept(listener(), NULL, NULL); }
static long t_accept4(void) { return accept4(listener(), NULL, NULL, SOCK_CLOEXEC); }
static long t_recv(void) { char byte; return recv(a_socket(), &byte, 1, 0); }
static long t_recvmsg(void) {
    char byte;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    return recvmsg(a_socket(), &message, 0);
}
static long t_read_socket(void) { char byte; return read(a_socket(), &byte, 1); }
static long t_nanosleep(void) { return nanosleep(&limit, NULL); }
static long t_clock_nanosleep(void) {
    int error = clock_nanosleep(CLOCK_MONOTONIC, 0, &limit, NULL);
    errno = error;
    return error ? -1 : 0;
}
static long t_clock_nanosleep_until(void) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += limit.tv_sec;
    int error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    errno = error;
    return error ? -1 : 0;
}
static long t_futex(void) { static int word; return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &limit, NULL, 0); }
static long t_futex_for_ever(void) { static int word; return syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0); }
static long t_msgrcv(void) {
    struct { long type; char text[8]; } message;
    queue = msgget(IPC_PRIVATE, 0600);
    return msgrcv(queue, &message, 8, 0, 0);
}
static long t_io_getevents(void) {
    aio_context_t context = 0;
    struct io_event event;
    if (syscall(SYS_io_setup, 1, &context)) { errno = ENOSYS; return -1; }
    return syscall(SYS_io_getevents, context, 1, 1, &event, &limit);
}
static long t_io_uring_enter(void) {
    struct io_uring_params parameters;
    memset(&parameters, 0, sizeof parameters);
    long ring = syscall(SYS_io_uring_setup, 2, &parameters);
    if (ring < 0) { errno = ENOSYS; return -1; }
    struct { unsigned long mask; unsigned mask_size, pad; unsigned long time; } argument = {0, 8, 0, (unsigned long)&limit};
    return syscall(SYS_io_uring_enter, ring, 0, 1, 1 | 8, &argument, sizeof argument);
}
static long t_read_pipe(void) { char byte; return read(a_pipe()[0], &byte, 1); }
static long t_read_eventfd(void) { long value; return read(eventfd(0, 0), &value, 8); }
static long t_read_inotify(void) { char events[4096]; return read(inotify_init1(0), events, sizeof events); }
static long t_pause(void) { return pause(); }
static long t_sigsuspend(void) { sigset_t set = all_signals(); return sigsuspend(&set); }
static long t_wait4(void) {
    pid_t child = fork();
    if (child == 0) for (prctl(PR_SET_PDEATHSIG, SIGKILL);;) pause();
    return waitpid(child, NULL, __WALL | __WNOTHREAD);
}

static const struct call calls[] = {
    {"epoll_wait", t_epoll_wait, 1}, {"epoll_wait_for_ever", t_epoll_wait_for_ever, 0}, {"epoll_pwait", t_epoll_pwait, 1},
    {"epoll_pwait2", t_epoll_pwait2, 1}, {"poll", t_poll, 1}, {"ppoll", t_ppoll, 1}, {"select", t_select, 1},
    {"pselect", t_pselect, 1}, {"semop", t_semop, 0}, {"semtimedop", t_semtimedop, 1}, {"sigwaitinfo", t_sigwaitinfo, 0},
    {"sigtimedwait", t_sigtimedwait, 1}, {"accept", t_accept, 2}, {"accept4", t_accept4, 2}, {"recv", t_recv, 2},
    {"recvmsg", t_recvmsg, 2}, {"read_socket", t_read_socket, 2}, {"nanosleep", t_nanosleep, 1},
    {"clock_nanosleep", t_clock_nanosleep, 1}, {"clock_nanosleep_until", t_clock_nanosleep_until, 1}, {"futex", t_futex, 1},
    {"futex_for_ever", t_futex_for_ever, 0}, {"msgrcv", t_msgrcv, 0}, {"io_getevents", t_io_getevents, 1},
    {"io_uring_enter", t_io_uring_enter, 1}, {"read_pipe", t_read_pipe, 0}, {"read_eventfd", t_read_eventfd, 0},
    {"read_inotify", t_read_inotify, 0}, {"pause", t_pause, 0}, {"sigsuspend", t_sigsuspend, 0}, {"wait4", t_wait4, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };
static struct done done[CALLS];

static void *waits(void *number) {
    long place = (long)number, begin = now_ms();
    __atomic_fetch_add(&begun, 1, __ATOMIC_SEQ_CST);
    long answer = calls[place].wait();
    done[place] = (struct done){answer, answer < 0 ? errno : 0, now_ms() - begin, 1};
    return NULL;
}

int main(int count, char **words) {
    limit_ms = count > 1 ? atol(words[1]) : 3000;
    limit = (struct timespec){limit_ms / 1000, limit_ms % 1000 * 1000000};
    sigset_t set = all_signals();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGCHLD, SIG_DFL);
    long begin = now_ms();
    for (long place = 0; place < CALLS; place++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, waits, (void *)place)) abort();
    }
    while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) < CALLS) usleep(1000);
    usleep(100000);
    puts("ready");
    fflush(stdout);
    // Until each call with a limit has ended.
    for (int left = 1; left;) {
        left = 0;
        for (int place = 0; place < CALLS; place++) left |= calls[place].has_limit && !done[place].is_over;
        free(malloc(100));
        usleep(20000);
        if (now_ms() - begin > 20 * limit_ms) break;
    }
    usleep(200000);
    for (int place = 0; place < CALLS; place++) {
        if (done[place].is_over)
            printf("%s %ld %s %ld\n", calls[place].name, done[place].answer, strerrorname_np(done[place].error), done[place].ms);
        else
            printf("%s waits\n", calls[place].name);
    }
    fflush(stdout);
    msgctl(queue, IPC_RMID, NULL);
    semctl(set_of_semop, 0, IPC_RMID);
    _exit(0);
}
