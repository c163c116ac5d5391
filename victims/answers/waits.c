// Makes a program wait until heapr has attached to it: preloaded, with ANSWERS_WAITS naming a file.
// It waits where it opens its own source (prog.py, Main.class ...), or at its start if it is a
// compiled program called prog. It writes its pid to that file, and goes on when FILE.go is there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int has_waited;

static void wait_here(void) {
    const char *file = getenv("ANSWERS_WAITS");
    if (file == NULL || __atomic_exchange_n(&has_waited, 1, __ATOMIC_SEQ_CST)) return;
    char path[4096], text[32];
    snprintf(path, sizeof path, "%s.new", file);
    int (*open_it)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    int out = open_it(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (out < 0 || write(out, text, length) != length) _exit(99);
    close(out);
    rename(path, file);
    snprintf(path, sizeof path, "%s.go", file);
    while (access(path, F_OK) != 0) nanosleep(&(struct timespec){0, 10000000}, NULL);
}

static void see(const char *path) {
    static const char *const SOURCES[] = {"prog.py", "prog.js", "prog.rb", "prog.pl", "prog.php", "Main.class"};
    const char *name = path == NULL ? NULL : strrchr(path, '/');
    name = name == NULL ? path : name + 1;
    for (unsigned k = 0; name != NULL && k < sizeof SOURCES / sizeof *SOURCES; k++)
        if (strcmp(name, SOURCES[k]) == 0) wait_here();
}

#define OPENS(NAME)                                                                             \
    int NAME(const char *path, int flags, ...) {                                                \
        va_list list;                                                                           \
        va_start(list, flags);                                                                  \
        int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, int) : 0;                     \
        va_end(list);                                                                           \
        see(path);                                                                              \
        int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #NAME); \
        return next(path, flags, mode);                                                         \
    }
OPENS(open)
OPENS(open64)

#define FOPENS(NAME)                                                                            \
    FILE *NAME(const char *path, const char *mode) {                                            \
        see(path);                                                                              \
        FILE *(*next)(const char *, const char *) = (FILE *(*)(const char *, const char *))dlsym(RTLD_NEXT, #NAME); \
        return next(path, mode);                                                                \
    }
FOPENS(fopen)
FOPENS(fopen64)

__attribute__((constructor)) static void at_start(void) {
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) return;
    program[length] = 0;
    const char *name = strrchr(program, '/');
    if (name != NULL && strcmp(name, "/prog") == 0) wait_here();
}
