//! `heapr doctor` finds what the other tests use.

use std::process::Command;

use crate::stage::Stage;

#[test]
fn it_finds_what_works_on_this_machine() {
    let stage = Stage::new();
    let output = stage.heapr(&["doctor"]).ok().stdout;
    let line = |topic: &str| {
        let found = output.lines().find(|line| line.contains(topic));
        found.unwrap_or_else(|| panic!("nothing on {topic}: {output}")).to_owned()
    };
    for topic in ["processor", "kernel", "shared buffers", "descriptor passing"] {
        assert!(line(topic).starts_with("ok"), "{}", line(topic));
    }
    // Its own heap, which it changes itself while it looks.
    let version = Command::new("getconf").arg("GNU_LIBC_VERSION").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap().trim().to_owned();
    let minor: u32 = version.rsplit('.').next().unwrap().parse().unwrap();
    if (31..=43).contains(&minor) {
        let heap = line("blocks before attaching");
        assert!(heap.starts_with("ok") && heap.contains(&version), "{heap}, {version}");
    }
}
