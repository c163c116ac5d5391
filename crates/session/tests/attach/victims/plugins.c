/* Loads and unloads libraries without end; a line for each 200. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    const char *names[] = {"libm.so.6", "libutil.so.1", "libresolv.so.2", "librt.so.1"};
    setvbuf(stdout, 0, _IONBF, 0);
    puts("ready");
    for (long n = 0;; n++) {
        void *handle = dlopen(names[n % 4], RTLD_NOW);
        void *block = malloc(30);
        free(block);
        if (handle) dlclose(handle);
        if (n % 200 == 199) printf("%ld\n", n);
    }
}
