// Threads that wait for their next task, on stacks with leftover addresses of the previous one; one
// waits in a signal handler on a stack of its own. Each line of standard input runs a task in each
// thread. (operator new is another allocator than the C library's.)
// build: -pthread
#include "graph.h"
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <signal.h>
#include <thread>
#include <vector>
enum { THREADS = 8, DEPTH = 64 };
static std::mutex lock;
static std::condition_variable next, done;
static int round_number, done_count;
// Makes frames of many sizes, so that addresses of the agent lie all over the stack.
APART static void task(int depth) {
  volatile char room[40];
  room[depth % 40] = 1;
  delete new int(depth);
  free(malloc(16 + depth));
  if (depth < DEPTH) task(depth + 1);
  room[0] = room[depth % 40];
}
// Waits deep enough that the task's leftovers lie above the wait.
APART static void wait_for(int last) {
  volatile char room[8192];
  room[0] = 1;
  std::unique_lock<std::mutex> holds(lock);
  next.wait(holds, [=] { return round_number != last; });
  room[1] = room[0];
}
static void worker() {
  for (int last = 0;; last++) {
    wait_for(last);
    task(0);
    std::unique_lock<std::mutex> holds(lock);
    done_count++;
    done.notify_one();
  }
}
static void handler(int) { worker(); }
static void interrupted() {
  stack_t own = {malloc(1 << 18), 0, 1 << 18};
  sigaltstack(&own, nullptr);
  raise(SIGUSR1);
}
int main() {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  std::vector<std::thread> threads;
  for (int number = 0; number < THREADS; number++) threads.emplace_back(worker);
  threads.emplace_back(interrupted);
  printf("ready %d\n", getpid());
  fflush(stdout);
  while (getchar() == '\n') {
    std::unique_lock<std::mutex> holds(lock);
    done_count = 0;
    round_number++;
    next.notify_all();
    done.wait(holds, [] { return done_count == THREADS + 1; });
    puts("done");
    fflush(stdout);
  }
  _exit(0);
}
