/* One of many libraries that a program loads. */
#include <stdlib.h>
#include <string.h>
char *make_block(int size) {
    char *block = malloc(size);
    memset(block, size, size);
    return block;
}
