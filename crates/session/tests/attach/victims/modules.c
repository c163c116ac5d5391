/* Loads lib0.so to lib199.so of the folder that the argument names, and has each of them allocate in turn; a line for each
   20000 blocks. Ends by abort when a block does not hold what was written into it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments) {
    char *(*make_block[200])(int);
    setvbuf(stdout, 0, _IONBF, 0);
    for (int i = 0; i < 200; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/lib%d.so", arguments[count - 1], i);
        void *library = dlopen(path, RTLD_NOW);
        if (!library) return 1;
        make_block[i] = (char *(*)(int))dlsym(library, "make_block");
    }
    puts("ready");
    for (long n = 0;; n++) {
        int size = n % 100 + 1;
        char *block = make_block[n % 200](size);
        if (block[size - 1] != size) abort();
        free(block);
        if (n % 20000 == 0) printf("%ld\n", n);
    }
}
