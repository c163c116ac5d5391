// Shared by all victims: headers, and functions that keep their name and their frame.
#ifndef VICTIM_H
#define VICTIM_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VICTIM __attribute__((noinline, noclone))

// Ends the program with a status that no victim has as its own when something that must hold does not.
#define MUST(claim)                                                            \
    do {                                                                       \
        if (!(claim)) {                                                        \
            fprintf(stderr, "%s:%d: %s does not hold (errno %d)\n", __FILE__,  \
                    __LINE__, #claim, errno);                                  \
            _exit(99);                                                         \
        }                                                                      \
    } while (0)

#endif
