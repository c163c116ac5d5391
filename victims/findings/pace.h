// Spreads the work of a small program over some tenths of a second, as a service's is spread over days.
#pragma once
#include <time.h>

static inline void pace(int done, int all) {
  const int pauses = 120;
  if (all < pauses || done % (all / pauses) == 0) {
    struct timespec pause = {0, 2500000};
    nanosleep(&pause, nullptr);
  }
}
