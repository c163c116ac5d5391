/* Starts a program and a session that traces it from its first instruction; waits until it has ended; stops the session.
 *
 *     cc -o trace_program trace_program.c -lheapr
 *     ./trace_program OUTPUT.heapr PROGRAM [ARGUMENTS]
 */
#include <heapr.h>
#include <stdio.h>
#include <time.h>

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, heapr_last_error());
    return 1;
}

int main(int count, char **words) {
    if (count < 3) {
        fprintf(stderr, "usage: %s OUTPUT.heapr PROGRAM [ARGUMENTS]\n", words[0]);
        return 2;
    }
    struct heapr_properties properties;
    heapr_properties_init(&properties);
    properties.output = words[1];
    properties.overwrite = 1;

    struct heapr_trace *trace;
    const char *const *program = (const char *const *)&words[2];
    if (heapr_start_program(&trace, &properties, "trace_program", program, HEAPR_STACK_DEFAULT) != HEAPR_OK)
        return fail("cannot start");

    /* The name is taken until the session ends. */
    struct heapr_trace *second;
    enum heapr_result result = heapr_start(&second, &properties, "trace_program", NULL, 0, HEAPR_STACK_DEFAULT);
    printf("a second session of this name: %d (%s)\n", result, heapr_last_error());

    if (heapr_mark(trace, "waiting") != HEAPR_OK)
        return fail("cannot mark");
    struct heapr_status status;
    struct timespec rest = {0, 20 * 1000 * 1000};
    do {
        nanosleep(&rest, NULL);
        if (heapr_query(trace, &status) != HEAPR_OK)
            return fail("cannot query");
    } while (status.process_count == 0 || status.live_process_count > 0);

    if (heapr_stop(trace, &status) != HEAPR_OK)
        return fail("cannot stop");
    printf("%llu events, %llu lost, %llu bytes in %llu blocks outstanding, peak %llu bytes\n",
           (unsigned long long)status.event_count, (unsigned long long)status.events_lost,
           (unsigned long long)status.live_bytes, (unsigned long long)status.live_count,
           (unsigned long long)status.peak_bytes);
    return 0;
}
