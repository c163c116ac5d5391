//! Ends of watched programs at limits that they have by themselves, and where incidents are told.

use std::fs::File;
use std::process::Child;

use heapr_testkit::wait_until;
use serde_json::Value;

use crate::engine::Engine;
use crate::stage::Stage;
use crate::watch::{Watch, compiled, incident, sentence};
use crate::watch_group::Group;

/// Program that maps memory up to nine tenths of its limit, waits, and ends as a call fails.
const FUNCTIONS: &str = "#include <fcntl.h>\n#include <sys/resource.h>\n\
    __attribute__((noinline)) static char *load_part(void) { return malloc(3000000); }\n\
    static int is_near(void) { char text[64] = {0}; struct rlimit limit; getrlimit(RLIMIT_AS, &limit);\n\
    int file = open(\"/proc/self/statm\", O_RDONLY); if (read(file, text, 63) < 1) abort(); close(file);\n\
    return atol(text) * 4096.0 > limit.rlim_cur * 0.9; }";
const BODY: &str = "int is_told = 0; for (;;) { if (!load_part()) abort();\n\
    if (!is_told && is_near()) { while (access(\"more\", F_OK)) usleep(1000); is_told = 1; } }";

/// Starts the program in a group, and waits until it runs.
fn mapper(stage: &Stage, group: &Group) -> Child {
    let program = compiled(stage, "mapper", FUNCTIONS, BODY);
    let child = group.start(stage, &["sh", "-c", "ulimit -v 2000000; exec \"$0\"", &program]);
    wait_until("the program runs", || {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap_or_default();
        (group.has(child.id()) && name.trim() == "mapper").then_some(())
    });
    child
}

#[test]
fn a_full_recording_ends_by_itself_where_the_watcher_is_killed() {
    let Some(group) = Group::new("full") else { return };
    let stage = Stage::new();
    let mut child = mapper(&stage, &group);
    let mut watch = Watch::start(&stage, &["--cgroup", &group.path, "--full-for", "3s"]);
    File::create(stage.path("go")).unwrap();
    wait_until("the limit is told as near", || watch.said().contains("may end soon by itself").then_some(()));
    watch.kill();
    wait_until("the session samples again", || {
        let mean_bytes = stage.json(&["status"])["sessions"][0]["sample_mean_bytes"].as_u64();
        mean_bytes.filter(|&bytes| bytes > 0)
    });
    File::create(stage.path("more")).unwrap();
    child.wait().unwrap();
    let _ = stage.heapr(&["stop"]);
}

#[test]
fn an_abort_at_the_limit_of_address_space_is_warned_of_told_sent_and_written_as_a_table() {
    let Some(group) = Group::new("space") else { return };
    let stage = Stage::new();
    let mut child = mapper(&stage, &group);
    let engine = Engine::start(&[]);
    let words = ["--cgroup", &group.path, "--pid", &child.id().to_string(), "--otlp", &engine.url];
    let watch = Watch::start(&stage, &[&words[..], &["--full-for", "30s"]].concat());
    File::create(stage.path("go")).unwrap();
    wait_until("the limit is told as near", || watch.said().contains("may end soon by itself").then_some(()));
    let near = stage.json(&["incidents", "--folder", "incidents"])["incidents"][0]["number"].to_string();
    let near = stage.json(&["incidents", &near, "--folder", "incidents"]);
    assert_eq!(
        (&near["trigger"]["of"], &near["kind"]),
        (&"address_space".into(), &"warning".into()),
        "{near:#}"
    );
    // All is recorded from the warning on.
    let status = &stage.json(&["status"])["sessions"][0];
    assert_eq!(status["sample_mean_bytes"], 0, "{status:#}");
    File::create(stage.path("more")).unwrap();
    assert_eq!(watch.end(), 1);
    child.wait().unwrap();
    let incident = incident(&stage);
    assert_eq!(incident["cause"]["kind"], "address_space", "{incident:#}");
    let evidence = incident["cause"]["evidence"].to_string();
    assert!(evidence.contains("1 allocation failed"), "{evidence}");
    let first = sentence(&incident);
    assert!(first.contains("its limit of address space of") && first.contains("load_part"), "{first}");
    let sent: Vec<Value> =
        engine.taken().iter().map(|one| serde_json::from_slice(&one.body).unwrap()).collect();
    let severity = |one: &Value| {
        one["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]["severityText"].as_str().unwrap().to_owned()
    };
    assert_eq!(sent.iter().map(severity).collect::<Vec<_>>(), ["WARN", "ERROR"]);
    stage.heapr(&["incidents", "--folder", "incidents", "--tables", "tables"]).ok();
    assert!(stage.path("tables/incidents").exists());
}
