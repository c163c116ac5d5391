// takes a prefix off the names of items, of which many are numbers
#include <jq.h>
#include <stdio.h>
#include <stdlib.h>

static int trim_names(jq_state *jq, const char *text) {
    int count = 0;
    jq_start(jq, jv_parse(text), 0);
    for (jv name; jv_is_valid(name = jq_next(jq)); count++) jv_free(name);
    return count;
}

int main(int argc, char **argv) {
    int n = atoi(argv[argc - 1]), count = 0;
    jq_state *jq = jq_init();
    if (!jq_compile(jq, ".items[] | ltrimstr(\"name of \")")) return 1;
    for (int k = 0; k < n; k++) {
        char text[200];
        snprintf(text, sizeof text, "{\"items\": [\"name of %d\", %d, %d, \"name\"]}", k, k + 1, k + 2);
        count += trim_names(jq, text);
    }
    jq_teardown(&jq);
    printf("%d\n", count);
}
