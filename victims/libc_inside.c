// Blocks that the C library allocates for the program: strdup, asprintf, getline, fopen, opendir,
// qsort of a large array.
// expect: frame=victim_strings allocs>=200 outstanding=0
// expect: frame=victim_file allocs=200 outstanding=0
// expect: frame=victim_directory allocs=100 outstanding=0
// expect-stack: strdup <- victim_strings allocs=100 alloc_bytes=700
#include <dirent.h>

#include "victim.h"

VICTIM static void victim_strings(void) {
    char *text = strdup("victim");
    free(text);
    MUST(asprintf(&text, "%s", "another") == 7);
    free(text);
}
VICTIM static void victim_file(void) {
    FILE *file = fopen("/dev/null", "r");
    MUST(file && fgetc(file) == EOF);
    fclose(file);
}
VICTIM static void victim_directory(void) {
    DIR *directory = opendir("/");
    MUST(directory && readdir(directory));
    closedir(directory);
}

int main(void) {
    for (int i = 0; i < 100; i++) {
        victim_strings();
        victim_file();
        victim_directory();
    }
    puts("done");
    return 0;
}
