// reads messages, many of which end too early
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <yajl/yajl_tree.h>

static int read_message(const char *text) {
    char why[256];
    yajl_val tree = yajl_tree_parse(text, why, sizeof why);
    if (tree == NULL) return 0;
    yajl_tree_free(tree);
    return 1;
}

int main(int argc, char **argv) {
    int n = atoi(argv[argc - 1]), good = 0;
    for (int k = 0; k < n; k++) {
        char text[200];
        snprintf(text, sizeof text, "{\"id\": %d, \"items\": [1, 2, 3, \"a name\", {\"of\": \"it\"}%s", k, k % 2 ? "]}" : "");
        good += read_message(text);
        if (k % 100 == 0) nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    printf("%d\n", good);
}
