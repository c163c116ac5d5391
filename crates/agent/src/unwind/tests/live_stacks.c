// Stacks of every shape that a compiler makes, for the unwinder to find its way out of; and the compiler's own unwinder.
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unwind.h>

#define SHAPE __attribute__((noinline)) static int
#define FRAMES_MAX 512

static void (*leaf)(void);
static volatile int sink;

SHAPE next(int depth, int shape);

SHAPE plain(int depth, int shape) { return next(depth, shape) + 1; }
SHAPE variable(int depth, int shape) {
    volatile char *room = alloca(16 + depth * 24);
    room[0] = 1;
    return next(depth, shape) + room[0];
}
SHAPE realigned(int depth, int shape) {
    volatile char room[64] __attribute__((aligned(64)));
    room[0] = 1;
    return next(depth, shape) + room[0];
}
SHAPE realigned_and_variable(int depth, int shape) {
    volatile char room[128] __attribute__((aligned(128)));
    volatile char *more = alloca(16 + depth * 40);
    more[0] = room[0] = 1;
    return next(depth, shape) + room[0] + more[0];
}
__attribute__((force_align_arg_pointer)) SHAPE realigned_at_entry(int depth, int shape) {
    return next(depth, shape) + 1;
}
SHAPE large(int depth, int shape) {
    volatile char room[5000];
    room[depth] = 1;
    return next(depth, shape) + room[depth];
}
SHAPE stack_arguments(int depth, int shape, int c, int d, int e, int f, int g, int h, int i) {
    return next(depth, shape) + c + d + e + f + g + h + i;
}
SHAPE many_registers(int depth, int shape) {
    int a = sink, b = a * 3, c = b * 5, d = c * 7, e = d * 11, f = e * 13;
    int inner = next(depth, shape);
    return inner + a + b + c + d + e + f;
}

// Interrupted in its first instruction: one byte earlier is another function.
__asm__(".globl fixture_interrupted\n"
        ".hidden fixture_interrupted\n"
        ".type fixture_interrupted, @function\n"
        "fixture_interrupted:\n"
        ".cfi_startproc\n"
        "ud2\n"
        "ret\n"
        ".cfi_endproc\n");
void fixture_interrupted(void);

static __thread int depth_in_handler;
SHAPE interrupted(int depth, int shape) {
    depth_in_handler = depth;
    fixture_interrupted();
    return shape;
}
static void on_illegal(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    sink = next(depth_in_handler, 1);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

SHAPE next(int depth, int shape) {
    if (depth == 0) {
        leaf();
        return 0;
    }
    depth--;
    if (shape == 0 && depth == 12)
        return interrupted(depth, shape) + 1;
    switch (depth % 8) {
    case 0: return plain(depth, shape) + 1;
    case 1: return variable(depth, shape) + 1;
    case 2: return realigned(depth, shape) + 1;
    case 3: return realigned_and_variable(depth, shape) + 1;
    case 4: return realigned_at_entry(depth, shape) + 1;
    case 5: return large(depth, shape) + 1;
    case 6: return stack_arguments(depth, shape, 1, 2, 3, 4, 5, 6, 7) + 1;
    default: return many_registers(depth, shape) + 1;
    }
}

struct trace {
    unsigned long *pcs;
    int count;
};
static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *data) {
    struct trace *trace = data;
    int is_exact = 0;
    unsigned long pc = _Unwind_GetIPInfo(context, &is_exact);
    if (pc != 0 && trace->count < FRAMES_MAX)
        trace->pcs[trace->count++] = pc + !!is_exact;
    return _URC_NO_REASON;
}

// The stack as the compiler's unwinder sees it: return addresses, interrupted addresses plus one.
int fixture_reference(unsigned long *pcs) {
    struct trace trace = {pcs, 0};
    _Unwind_Backtrace(on_frame, &trace);
    return trace.count;
}

static void run(void (*on_leaf)(void), int depth, int shape) {
    static __thread char room[1 << 18];
    leaf = on_leaf;
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&stack, NULL);
    struct sigaction illegal = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGILL, &illegal, NULL);
    sink += next(depth, shape);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
}

// Calls `on_leaf` at a depth of all shapes, the innermost of them in a signal handler.
void fixture_run(void (*on_leaf)(void)) { run(on_leaf, 40, 0); }

static void nothing(void) { sink++; }
static void (*interrupting_leaf)(void);
static atomic_int handled_count, is_over;
static void on_random(int number) {
    (void)number;
    interrupting_leaf();
    atomic_fetch_add(&handled_count, 1);
}
struct target {
    pthread_t thread;
    int count;
};
static void *interrupt(void *data) {
    struct target *target = data;
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int turn = 0; turn < target->count; turn++) {
        pthread_kill(target->thread, SIGUSR2);
        while (atomic_load(&handled_count) <= turn)
            sched_yield();
        for (volatile int wait = 0; wait < turn % 97; wait++)
            ;
        // On a busy machine the two threads wait for each other.
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begin.tv_sec > 1)
            break;
    }
    atomic_store(&is_over, 1);
    return NULL;
}

// Calls `on_leaf` from a signal handler up to `count` times in a second, wherever the shapes are just then.
void fixture_run_interrupted(void (*on_leaf)(void), int count) {
    struct sigaction action = {.sa_handler = on_random, .sa_flags = SA_ONSTACK};
    interrupting_leaf = on_leaf;
    sigaction(SIGUSR2, &action, NULL);
    struct target target = {pthread_self(), count};
    pthread_t other;
    atomic_store(&is_over, 0);
    atomic_store(&handled_count, 0);
    pthread_create(&other, NULL, interrupt, &target);
    while (!atomic_load(&is_over))
        run(nothing, 11, 1);
    pthread_join(other, NULL);
    signal(SIGUSR2, SIG_IGN);
}
