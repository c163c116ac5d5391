//! `heapr explain PID`: the lines add up to the kernel's figures, and each class is found.

use std::path::Path;
use std::process::Command;

use heapr_testkit::{run, wait_until};
use serde_json::Value;

use crate::explained::{Waiting, assert_adds_up, bytes, explain, line, smaps_bytes};
use crate::header::Header;
use crate::recording::{HEAPR, command, with_sessions};
use crate::victim_build::{build, sources};

#[test]
fn each_kind_of_memory_is_found_and_the_lines_add_up_to_the_page() {
    /// Bytes of a class that are not the victim's own: the loader's data, headers, pages at the
    /// ends.
    const BESIDE_BYTES: u64 = 512 << 10;
    let victim = Waiting::start("resident/kinds.c", &[]);
    victim.stop();
    // As many as the kernel made. It splits a huge page when a page is read that a child shares.
    let huge = smaps_bytes(victim.pid(), &["AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"]);
    let answer = explain(victim.pid(), &[]);
    assert_adds_up(&answer, victim.pid());
    let resident = &answer["resident"];
    for class in ["thread_stacks", "shared_memory", "unknown", "written_data", "glibc_heap"] {
        let (found, said) = (bytes(resident, class, "bytes"), victim.said[class]);
        assert!((said..said + BESIDE_BYTES).contains(&found), "{class}: {found} of {said}: {resident}");
    }
    assert_eq!(resident["arena_count"], 5);
    assert_eq!(bytes(resident, "shared_memory", "bytes"), victim.said["shared_memory"]);
    assert_eq!(line(resident, "shared_memory").unwrap()["parts"][0]["name"], "memfd:kinds");
    for (key, amount) in [("lazily_freed", "lazily_freed_bytes"), ("locked", "locked_bytes")] {
        // Checked only if the kernel did it.
        if let Some(said) = victim.said.get(key) {
            assert_eq!(bytes(resident, "unknown", amount), *said, "{resident}");
        }
    }
    let found: u64 =
        resident["lines"].as_array().unwrap().iter().map(|line| line["huge_bytes"].as_u64().unwrap()).sum();
    assert_eq!(found, huge);
    // The child shares all memory that was not written after the fork.
    let (unknown, shared) = (bytes(resident, "unknown", "bytes"), bytes(resident, "unknown", "shared_bytes"));
    assert!(shared > 0 && shared <= unknown - (512 << 10), "{resident}");
}

/// Frees all blocks of one size but every k-th, in one arena and in several.
#[test]
fn what_a_trim_gives_back_is_foretold_and_live_blocks_are_those_that_were_kept() {
    /// Bytes of the victim's own: thread descriptors, and blocks of the C library.
    const BESIDE_BYTES: u64 = 16 << 10;
    // Blocks in a thread's cache, in large bins, of pages, and of four arenas.
    let layouts: [&[&str]; 4] = [
        &["20000", "1000", "7"],
        &["20000", "1000", "50", "4"],
        &["3000", "5000", "3"],
        &["300000", "24", "100"],
    ];
    for layout in layouts {
        let mut victim = Waiting::start("resident/fragmented.c", layout);
        let answer = explain(victim.pid(), &["--deep"]);
        assert_adds_up(&answer, victim.pid());
        let resident = &answer["resident"];
        let malloc = &resident["malloc"];
        let amount = |key: &str| malloc["all"][key].as_u64().unwrap();
        assert_eq!(malloc["findings"].as_array().unwrap().len(), 0, "{malloc}");
        let (live, kept) = (amount("live_bytes"), victim.said["kept_bytes"]);
        assert!((kept..kept + BESIDE_BYTES).contains(&live), "{layout:?}: {live} of {kept}");
        assert_eq!(bytes(resident, "free_whole_pages", "bytes"), amount("free_whole_bytes"));
        let (kind, given_back) = victim.ask("trim");
        assert_eq!((kind.as_str(), given_back), ("given_back", amount("free_whole_bytes")), "{layout:?}");
    }
}

fn rules_say(answer: &Value) -> Vec<String> {
    let findings = answer["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["sentence"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn advice_is_given_where_following_it_helps_and_nowhere_else() {
    // Pinned memory cannot be trimmed, whole pages can, and live blocks need no advice.
    let cases: [(&[&str], Option<&str>); 3] = [
        (&["20000", "1000", "5"], Some("cannot be given back")),
        (&["20000", "1000", "400"], Some("malloc_trim(0)")),
        (&["20000", "1000", "1"], None),
    ];
    for (layout, expected) in cases {
        let mut victim = Waiting::start("resident/fragmented.c", layout);
        let answer = explain(victim.pid(), &["--deep"]);
        let said = rules_say(&answer);
        assert_eq!(said.len(), usize::from(expected.is_some()), "{layout:?}: {said:?}");
        assert!(expected.is_none_or(|words| said[0].contains(words)), "{layout:?}: {said:?}");
        let (_, given_back) = victim.ask("trim");
        for finding in answer["findings"].as_array().unwrap() {
            let is_told = finding["evidence"].as_array().is_some_and(|evidence| !evidence.is_empty());
            assert!(
                is_told && finding["confidence"] == "high" && finding["bytes"].as_u64() > Some(0),
                "{finding}"
            );
        }
        let is_trim = expected.is_some_and(|words| words.contains("trim"));
        let promised = answer["findings"][0]["bytes"].as_u64();
        assert!(!is_trim || promised == Some(given_back), "{said:?}: {given_back}");
    }
}

#[test]
fn a_recorded_process_tells_the_stack_whose_blocks_pin_free_memory() {
    let header = Header::read(&sources().join("resident/fragmented.c"));
    let program = build("resident/fragmented.c", &header, &["-O1".to_owned()]);
    let folder = tempfile::tempdir().unwrap();
    let heapr = |words: &[&str]| with_sessions(folder.path(), words);
    // The program's input ends when the other end of the pipe does.
    let output = folder.path().join("trace");
    let script = format!("tail -f /dev/null | {} 20000 1000 7", program.display());
    let started = heapr(&["start", "pins", "-o", output.to_str().unwrap(), "--", "sh", "-c", &script]);
    assert_eq!(started.status, 0, "{}", started.stderr);
    let answer: Value = wait_until("it has made its blocks", || {
        let outcome = heapr(&["explain", "pins", "--format", "json"]);
        let answer: Value = serde_json::from_str(&outcome.stdout).ok()?;
        // The session's snapshot is a moment older than the reading.
        let recorded = answer["resident"]["recorded"]["count"].as_u64()?;
        let pinned = answer["resident"]["malloc"]["all"]["free_pinned_bytes"].as_u64()?;
        (pinned > 10 << 20 && (2856..3000).contains(&recorded)).then_some(answer)
    });
    heapr(&["cancel", "pins"]);
    let resident = &answer["resident"];
    let pinned = resident["malloc"]["all"]["free_pinned_bytes"].as_u64().unwrap();
    let first = &resident["pinned_by"][0];
    assert_eq!(first["frames"][0]["symbol"], "kept_block", "{first}");
    assert_eq!(first["own_frame"].as_str().unwrap().rsplit('!').next(), Some("kept_block"));
    assert!(first["free_bytes"].as_u64().unwrap() * 100 > pinned * 95, "{first} of {pinned}");
    assert!((2856..=2858).contains(&first["block_count"].as_u64().unwrap()), "{first}");
    let sum: u64 =
        resident["pinned_by"].as_array().unwrap().iter().map(|one| one["free_bytes"].as_u64().unwrap()).sum();
    // The rest lies in pages that only chunks in a thread's cache pin.
    assert!(sum <= pinned && sum * 100 > pinned * 98, "{sum} of {pinned}");
    assert!(rules_say(&answer).iter().any(|sentence| sentence.contains("cannot be given back")));
    let findings = answer["findings"].as_array().unwrap();
    let resident = findings.iter().find(|finding| finding["kind"] == "resident").unwrap();
    assert!(resident["evidence"].to_string().contains("kept_block"), "{findings:?}");
}

/// Threads hold much memory one after the other, or all at once. The saving of fewer arenas lies
/// within the forecast, and a recording narrows the forecast.
#[test]
fn what_fewer_arenas_would_save_is_foretold() {
    for order in ["turns", "together"] {
        let layout = ["8", "10000000", order];
        let victim = Waiting::start("resident/arenas.c", &layout);
        let header = Header::read(&sources().join("resident/arenas.c"));
        let program = build("resident/arenas.c", &header, &["-O1".to_owned()]);
        let mut shared = Command::new(&program);
        shared.env("MALLOC_ARENA_MAX", "2").args(layout);
        let saved = victim.said["grown_bytes"].saturating_sub(Waiting::begin(shared).said["grown_bytes"]);
        let (least, most) = arenas_would_save(&explain(victim.pid(), &["--deep"]));
        let is_near = |foretold: u64| saved.abs_diff(foretold) < 2 << 20;
        assert!(least == 0 && (saved <= most || is_near(most)), "{order}: {saved} of at most {most}");

        let folder = tempfile::tempdir().unwrap();
        let heapr = |words: &[&str]| with_sessions(folder.path(), words);
        let waits = folder.path().join("waits");
        std::fs::write(&waits, "").unwrap();
        let mut start = vec!["start", "arenas", "--", program.to_str().unwrap()];
        start.extend(layout);
        start.push(waits.to_str().unwrap());
        let started = heapr(&start);
        assert_eq!(started.status, 0, "{}", started.stderr);
        let answer = wait_until("all threads have freed what they held", || {
            let answer: Value =
                serde_json::from_str(&heapr(&["explain", "arenas", "--format", "json"]).stdout).ok()?;
            let live = answer["resident"]["recorded"]["count"].as_u64()?;
            let free = answer["resident"]["malloc"]["all"]["free_whole_bytes"].as_u64()?;
            ((8..60).contains(&live) && free > 70_000_000).then_some(answer)
        });
        std::fs::remove_file(&waits).unwrap();
        heapr(&["cancel", "arenas"]);
        let (least, most) = arenas_would_save(&answer);
        assert!(saved + (2 << 20) >= least && saved <= most + (2 << 20), "{order}: {least} {saved} {most}");
        let expected_least = if order == "turns" { 55_000_000..62_000_000 } else { 0..1 };
        assert!(expected_least.contains(&least), "{order}: {least} {saved}");
    }
}

/// Returns the least and the largest saving in the finding on arenas.
fn arenas_would_save(answer: &Value) -> (u64, u64) {
    let findings = answer["findings"].as_array().unwrap();
    let says = |finding: &&Value| finding["sentence"].as_str().unwrap().contains("MALLOC_ARENA_MAX");
    let finding = findings.iter().find(says).unwrap_or_else(|| panic!("{findings:?}"));
    let sentence = finding["sentence"].as_str().unwrap();
    let least = sentence.split_once("between ").map_or(0.0, |(_, rest)| {
        let (amount, rest) = rest.split_once(' ').unwrap();
        assert!(rest.starts_with("MiB and "), "{sentence}");
        amount.parse::<f64>().unwrap() * 1_048_576.0
    });
    (least as u64, finding["bytes"].as_u64().unwrap())
}

#[test]
fn an_earlier_answer_or_a_series_is_compared_with() {
    let mut victim = Waiting::start("resident/fragmented.c", &["20000", "1000", "400"]);
    let folder = tempfile::tempdir().unwrap();
    let series = folder.path().join("series");
    let old = series.to_str().unwrap();
    let pid = victim.pid().to_string();
    let mut looks = command(&["explain", &pid, "--every", "0.05", "-o", old]).spawn().unwrap();
    let lines = || std::fs::read_to_string(&series).unwrap_or_default();
    wait_until("it has looked twice", || (lines().lines().count() >= 2).then_some(()));
    looks.kill().unwrap();
    looks.wait().unwrap();
    let first: Value = serde_json::from_str(lines().lines().next().unwrap()).unwrap();
    assert_eq!(first["schema"], "heapr.explain/1");
    // A line that was cut off in the middle is not an answer.
    let whole: Vec<String> = lines().lines().take(2).map(str::to_owned).collect();
    std::fs::write(&series, whole.join("\n")).unwrap();
    let (_, given_back) = victim.ask("trim");
    let answer = explain(victim.pid(), &["--diff", old]);
    let since = &answer["resident"]["since"];
    let heap = since["lines"].as_array().unwrap().iter().find(|line| line["class"] == "glibc_heap").unwrap();
    assert_eq!(heap["change_bytes"].as_i64(), Some(-(given_back as i64)), "{since}");
}

#[test]
fn a_page_of_html_holds_the_answer_and_no_foreign_markup() {
    let victim = Waiting::start("resident/kinds.c", &[]);
    let outcome = run(&mut command(&["explain", &victim.pid().to_string(), "--format", "html"]));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    // The page's data is packed, and tested in a browser: text of the process cannot be markup.
    for words in ["heapr-answers", "Content-Security-Policy", "</html>"] {
        assert!(outcome.stdout.contains(words), "{words} is not in {}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains("memfd:kinds"));
}

/// Root may create a group of its own.
#[test]
fn a_groups_processes_are_summed_up_with_each_page_counted_once() {
    let group = Path::new("/sys/fs/cgroup/memory").join(format!("heapr-test-{}", std::process::id()));
    if std::fs::create_dir(&group).is_err() {
        heapr_testkit::cannot_run_here("no control group of version 1 can be made");
        return;
    }
    let victims = [(); 2].map(|()| Waiting::start("resident/kinds.c", &[]));
    for victim in &victims {
        std::fs::write(group.join("cgroup.procs"), victim.pid().to_string()).unwrap();
    }
    let answer = explain(victims[0].pid(), &["--cgroup"]);
    let told = &answer["resident"]["group"];
    let pids: Vec<u64> =
        told["processes"].as_array().unwrap().iter().map(|one| one["pid"].as_u64().unwrap()).collect();
    assert!(victims.iter().all(|victim| pids.contains(&victim.pid().into())), "{told}");
    let sum = |list: &str, key: &str| -> u64 {
        told[list].as_array().unwrap().iter().map(|one| one[key].as_u64().unwrap()).sum()
    };
    assert_eq!(sum("lines", "bytes"), sum("processes", "pss_bytes"), "{told}");
    drop(victims);
    wait_until("the group is empty", || std::fs::remove_dir(&group).is_ok().then_some(()));
}

#[test]
fn a_process_that_stands_still_already_stays_so_and_is_looked_into() {
    let victim = Waiting::start("resident/fragmented.c", &["60000", "1000", "5"]);
    victim.stop();
    let answer = explain(victim.pid(), &["--deep"]);
    assert_adds_up(&answer, victim.pid());
    let malloc = &answer["resident"]["malloc"];
    assert!(
        malloc["held_ns"].as_u64().is_some() && malloc["live_blocks"].as_u64() >= Some(12000),
        "{malloc}"
    );
    let state = std::fs::read_to_string(format!("/proc/{}/stat", victim.pid())).unwrap();
    assert!(state.rsplit(')').next().unwrap().trim_start().starts_with('T'), "{state}");
}

#[test]
fn a_process_that_may_not_be_read_is_told_by_the_kernels_counters() {
    let has_root = std::fs::read_to_string("/proc/self/status").unwrap().contains("Uid:\t0\t0");
    if !has_root || Command::new("setpriv").arg("--version").output().is_err() {
        heapr_testkit::cannot_run_here("only root can become another user, with setpriv");
        return;
    }
    let victim = Waiting::start("resident/kinds.c", &[]);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("heapr");
    std::fs::copy(HEAPR, &copy).unwrap();
    for path in [folder.path(), &copy] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }
    let mut heapr = Command::new("setpriv");
    heapr.args(["--reuid", "65534", "--clear-groups"]).arg(&copy);
    heapr.args(["explain", &victim.pid().to_string(), "--format", "json"]);
    let outcome = run(&mut heapr);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let answer: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let resident = &answer["resident"];
    assert!(resident["rss_bytes"].as_u64().unwrap() > 20 << 20, "{resident}");
    assert!(resident["not_told"][0].as_str().unwrap().contains("only the kernel's counters"), "{resident}");
}

#[test]
fn a_process_that_has_ended_and_one_of_the_kernel_are_refused_with_the_reason() {
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    for (pid, reason) in [(ended.id(), "no process"), (2, "thread of the kernel")] {
        if pid == 2 && std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name != "kthreadd\n") {
            continue;
        }
        let outcome = run(&mut command(&["explain", &pid.to_string()]));
        assert_eq!(outcome.status, 2);
        assert!(
            pid == 2 && outcome.stderr.contains("no process") || outcome.stderr.contains(reason),
            "{}",
            outcome.stderr
        );
    }
}
