//! Memory of heapr that ended threads leave in the program: it must not grow with their number.

use std::process::Command;

use crate::recording::{Settings, record};

/// Runs threads one after the other, and prints the growth of resident memory since the hundredth,
/// in KiB.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *work(void *ends) {
    void *blocks[10];
    for (int i = 0; i < 10; i++) blocks[i] = malloc(73);
    for (int i = 0; i < 10; i++) free(blocks[i]);
    if (ends) pthread_exit(NULL);
    return NULL;
}
static long resident_kib(void) {
    static char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "VmRSS:", 6)) kib = atol(line + 6);
    fclose(status);
    return kib;
}
int main(void) {
    long before = 0;
    for (int i = 0; i < 3500; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, i % 2 ? &thread : NULL)) return 1;
        pthread_join(thread, NULL);
        if (i == 100) before = resident_kib();
    }
    printf("%ld\n", resident_kib() - before);
    return 0;
}
"#;

/// The shared buffers are few and small (128 KiB), because the amount that waits in them depends on
/// how busy the machine is. The slots of all threads in the pool take 512 KiB, if none is free
/// again before the end. One more thread's state may be in use then.
#[test]
fn threads_that_have_ended_leave_nothing_resident() {
    const MAY_GROW_KIB: i64 = 1024;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("threads.c"), THREADS).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-g", "-O1", "-pthread", "threads.c", "-o", "threads"]).current_dir(folder.path());
    assert!(compiler.status().unwrap().success());
    let program = folder.path().join("threads");
    let alone = Command::new(&program).output().unwrap();
    let growth_kib = |output: &str| output.trim().parse::<i64>().unwrap();
    let alone_kib = growth_kib(&String::from_utf8_lossy(&alone.stdout));
    for stacks in [&["-q"][..], &["-q", "--stacks", "none"], &["-q", "--sample", "4K"]] {
        let options = [stacks, &["--buffer-size", "8", "--max-buffers", "16"]].concat();
        let settings = Settings { options: &options, ..Settings::default() };
        let recording = record(&[program.display().to_string()], &settings);
        assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
        let kib = growth_kib(&recording.outcome.stdout);
        assert!(kib <= alone_kib + MAY_GROW_KIB, "{options:?}: {kib} KiB, alone {alone_kib}");
        if !options.contains(&"--sample") {
            let report = recording.json(&["report"]);
            assert!(report["totals"]["alloc_count"].as_u64() >= Some(35_000), "{}", report["totals"]);
        }
    }
}
