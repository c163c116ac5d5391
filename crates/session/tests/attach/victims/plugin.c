// A plugin that allocates by its own C library, and uses its keys.
#include <pthread.h>
#include <stdlib.h>

void *plugin_alloc(size_t size) { return malloc(size); }
void plugin_free(void *block) { free(block); }
int plugin_keys(void) {
    static pthread_key_t keys[8];
    static int count;
    if (!count)
        while (count < 8 && !pthread_key_create(&keys[count], 0)) count++;
    for (int i = 0; i < count; i++) pthread_setspecific(keys[i], (void *)(long)(0x1111 * (i + 1)));
    for (int i = 0; i < count; i++)
        if (pthread_getspecific(keys[i]) != (void *)(long)(0x1111 * (i + 1))) return 1;
    return 0;
}
