//! Refusals of commands that read a trace, and what they print for a damaged file.

use std::path::Path;
use std::process::{Command, Stdio};

use heapr_testkit::{Outcome, run};
use serde_json::Value;

use crate::header::Header;
use crate::recording::{Recording, Settings, record};
use crate::victim_build::{build, sources};

fn recorded(options: &[&str]) -> Recording {
    let header = Header::read(&sources().join("own_heaps.c"));
    let program = build("own_heaps.c", &header, &["-O1".to_owned()]);
    let settings = Settings { options, ..Settings::default() };
    let recording = record(&[program.to_str().unwrap().to_owned()], &settings);
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    recording
}

fn command_of(recording: &Recording, words: &str) -> Command {
    crate::recording::heapr(recording.folder(), &words.split(' ').collect::<Vec<_>>())
}

/// Runs heapr in the recording's folder.
fn heapr(recording: &Recording, words: &str) -> Outcome {
    run(&mut command_of(recording, words))
}

/// Fails unless heapr ends with one line that contains `reason`, and prints nothing else.
fn refuses(recording: &Recording, words: &str, reason: &str) {
    let Outcome { status, stdout, stderr } = heapr(recording, words);
    assert_eq!((status, stdout.as_str(), stderr.lines().count()), (2, "", 1), "{words}: {stderr}");
    assert!(stderr.contains(reason), "{words}: {stderr}");
}

#[test]
fn the_trace_that_is_read_is_not_written_over() {
    let recording = recorded(&["--quiet"]);
    let before = std::fs::read(recording.file()).unwrap();
    let place = |name: &str| recording.folder().join(name);
    std::os::unix::fs::symlink("trace.heapr", place("symbolic")).unwrap();
    std::fs::hard_link(recording.file(), place("hard")).unwrap();
    for output in ["trace.heapr", "./trace.heapr", "symbolic", "hard"] {
        for command in ["report trace.heapr --totals", "export trace.heapr --to collapsed"] {
            refuses(&recording, &format!("{command} -o {output}"), "the file that is read");
        }
    }
    assert!(std::fs::read(recording.file()).unwrap() == before);
    std::fs::write(place("culled"), "main\n").unwrap();
    for command in ["report trace.heapr --totals", "export trace.heapr --to collapsed"] {
        refuses(&recording, &format!("{command} --cull-lists culled -o culled"), "the file that is read");
    }
    assert!(std::fs::read(place("culled")).unwrap() == b"main\n");
    assert_eq!(heapr(&recording, "report trace.heapr --totals -o other").status, 0);
    let written = std::fs::read(place("other")).unwrap();
    assert!(!written.is_empty());
    for words in ["report trace.heapr -o other", "export trace.heapr --to collapsed -o other"] {
        let refused = heapr(&recording, words);
        assert!(
            refused.status == 2 && refused.stderr.contains("other exists"),
            "{words}: {}",
            refused.stderr
        );
        assert_eq!(std::fs::read(place("other")).unwrap(), written, "{words}");
        assert_eq!(heapr(&recording, &format!("{words} -f")).status, 0, "{words}");
        assert_eq!(heapr(&recording, &words.replace("-o other", "-o /dev/null")).status, 0, "{words}");
        std::fs::write(place("other"), &written).unwrap();
    }
}

#[test]
fn what_is_missing_in_a_file_is_said_whatever_the_format() {
    let recording = recorded(&["--quiet"]);
    let whole = std::fs::read(recording.file()).unwrap();
    let cut = Path::new("cut.heapr");
    std::fs::write(recording.folder().join(cut), &whole[..whole.len() * 2 / 3]).unwrap();
    let said = "heapr: warning: cut.heapr: the recording goes on, or did not end in order";
    for words in [
        "report cut.heapr --format csv",
        "report cut.heapr --layout xperf",
        "export cut.heapr --to collapsed",
        "export cut.heapr --to pprof",
        "export cut.heapr --to speedscope",
        "export cut.heapr --to flamegraph",
        "diff trace.heapr cut.heapr --fail-if-growth 1T",
        "diff cut.heapr trace.heapr --fail-if-growth 1T",
        "diff trace.heapr cut.heapr --format csv",
    ] {
        let outcome = heapr(&recording, words);
        assert_eq!(outcome.status, 0, "{words}: {}", outcome.stderr);
        let lines = outcome.stderr.lines().filter(|line| line.starts_with(said)).count();
        assert_eq!(lines, 1, "{words}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("trace.heapr: "), "{words}: {}", outcome.stderr);
    }
    let outcome = heapr(&recording, "diff trace.heapr cut.heapr --format json");
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    let diff: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let count = |side: &str| diff[side]["warnings"].as_array().unwrap().len();
    assert!(count("before") == 0 && count("after") > 0, "{diff}");
}

#[test]
fn a_file_of_nothing_known_is_told_by_its_beginning_whatever_is_asked() {
    let recording = recorded(&["--quiet"]);
    std::fs::write(recording.folder().join("notes"), "not JSON").unwrap();
    for words in [
        "report notes",
        "explain notes",
        "info notes",
        "snapshot summary notes",
        "snapshot suspects notes notes",
    ] {
        refuses(&recording, words, "it begins with \"not ");
    }
}

#[test]
fn a_file_without_events_says_so_where_they_are_needed() {
    let recording = recorded(&["--quiet", "--mode", "snapshot", "--snapshot-at-exit"]);
    for words in [
        "report trace.heapr --size 1 100",
        "report trace.heapr --at peak",
        "report trace.heapr --range 0 1s",
        "report trace.heapr --lifetime 0 1s",
        "report trace.heapr --temporary",
        "report trace.heapr --by-thread",
        "report trace.heapr --histogram size",
        "export trace.heapr --to collapsed --size 1 100",
        "diff trace.heapr trace.heapr --size 1 100",
    ] {
        refuses(&recording, words, "no events");
    }
    let count = |words: &[&str]| recording.json(words)["totals"]["alloc_count"].as_u64().unwrap();
    assert!(count(&["report", "--totals"]) > 0);
    assert!(count(&["report", "--snapshot", "last", "--size", "1", "100000"]) > 0);
}

#[test]
fn the_layout_of_xperf_refuses_what_it_has_not() {
    let recording = recorded(&["--quiet"]);
    for option in ["--invert", "--histogram size"] {
        refuses(&recording, &format!("report trace.heapr --layout xperf {option}"), "--layout xperf");
    }
    for format in ["json", "csv"] {
        refuses(
            &recording,
            &format!("report trace.heapr --layout xperf --format {format}"),
            "--layout xperf",
        );
    }
}

#[test]
fn numbers_below_zero_are_named_in_the_refusal() {
    let recording = recorded(&["--quiet"]);
    for option in ["--size -5 10", "--lifetime 1 -5", "--range -5 10", "--at -5"] {
        refuses(&recording, &format!("report trace.heapr {option}"), option);
    }
}

#[test]
fn a_filter_given_twice_is_not_dropped() {
    let recording = recorded(&["--quiet"]);
    for option in [
        "--size 0 101 --size 3000 4500",
        "--range 0 1us --range 1us 2us",
        "--lifetime 1h 2h --lifetime 2h 3h",
    ] {
        for command in
            ["report trace.heapr --totals", "diff trace.heapr trace.heapr", "export trace.heapr --to pprof"]
        {
            let outcome = heapr(&recording, &format!("{command} {option}"));
            assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{command} {option}");
            assert!(outcome.stderr.contains("multiple times"), "{}", outcome.stderr);
        }
    }
    let count = |words: &[&str]| recording.json(words)["totals"]["alloc_count"].as_u64().unwrap();
    let of_sizes = |least, below| count(&["report", "--totals", "--size", least, below]);
    assert_eq!(of_sizes("0", "101") + of_sizes("101", "1T"), count(&["report", "--totals"]));
    assert_eq!(
        count(&["report", "--totals", "--range", "0", "1h30m", "--lifetime", "0", "24 h"]),
        count(&["report", "--totals"])
    );
}

#[test]
fn totals_leave_out_no_action() {
    let recording = recorded(&["--quiet"]);
    let asked = "report trace.heapr --totals --frames --images --invert --histogram size --by-thread";
    let text = heapr(&recording, asked).stdout;
    for title in ["FRAMES by", "IMAGES by", "TOP-DOWN TREE by", "THREADS by", "SIZES of"] {
        assert!(text.contains(title), "{title}: {text}");
    }
    let csv = heapr(&recording, &format!("{asked} --format csv")).stdout;
    let json: Value =
        serde_json::from_str(&heapr(&recording, &format!("{asked} --format json")).stdout).unwrap();
    let first = json["action"].as_str().into_iter();
    let sections =
        json["sections"].as_array().unwrap().iter().filter_map(|section| section["action"].as_str());
    let in_json: Vec<&str> = first.chain(sections).collect();
    for action in ["frames", "images", "invert", "by-thread"] {
        assert!(csv.lines().any(|line| line.starts_with(&format!("{action},"))), "{action}: {csv}");
        assert!(in_json.contains(&action), "{action}: {in_json:?}");
    }
    let xperf = heapr(&recording, "report trace.heapr --layout xperf --totals --images --frames").stdout;
    assert_eq!(xperf.matches("TOP ").count(), 2, "{xperf}");
    let alone = heapr(&recording, "report trace.heapr --totals --format csv").stdout;
    assert!(
        alone.lines().skip(1).all(|line| line.starts_with("totals,") || line.starts_with("heaps,")),
        "{alone}"
    );
}

#[test]
fn the_layout_of_xperf_shows_stacks_unless_told_otherwise() {
    let recording = recorded(&["--quiet"]);
    let layout = |rest: &str| heapr(&recording, &format!("report trace.heapr --layout xperf{rest}")).stdout;
    let (heaps, stacks) = ("Heap Handle", "!victim_session_take");
    assert!(layout("").contains(heaps) && layout("").contains(stacks), "{}", layout(""));
    assert!(!layout(" --stacks").contains(heaps) && layout(" --stacks").contains(stacks));
    assert!(!layout(" --totals").contains(heaps) && !layout(" --totals").contains(stacks));
}

#[test]
fn functions_of_the_header_for_own_heaps_are_culled() {
    let header = Header::read(&sources().join("own_heaps.c"));
    for level in ["-O0", "-O2"] {
        let program = build("own_heaps.c", &header, &[level.to_owned()]);
        let recording = record(&[program.to_str().unwrap().to_owned()], &Settings::default());
        let report = recording.json(&["report", "--heap", "session pool", "--frames", "st"]);
        let frames: Vec<&str> = report["groups"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|group| group["frames"][0]["symbol"].as_str())
            .collect();
        assert_eq!(frames, ["victim_resize", "victim_session_take"], "{level}: {report}");
    }
}

#[test]
fn a_pipe_is_not_waited_for() {
    let recording = recorded(&["--quiet"]);
    assert!(Command::new("mkfifo").arg(recording.folder().join("pipe")).status().unwrap().success());
    for words in [
        "report pipe",
        "info pipe",
        "export pipe --to pprof",
        "symbolize pipe",
        "diff pipe pipe",
        "report /dev/null",
    ] {
        refuses(&recording, words, "it is a pipe or a device");
    }
    refuses(&recording, "view pipe", "it is a pipe or a device");
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let recording = recorded(&["--quiet"]);
    for words in ["diff trace.heapr trace.heapr --format json", "report trace.heapr --format json"] {
        let mut child =
            command_of(&recording, words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{words}: {said}");
    }
}

#[test]
fn frees_are_the_same_whatever_is_asked() {
    let recording = recorded(&["--quiet"]);
    let frees = |words: &[&str]| recording.json(words)["totals"]["free_count"].as_u64().unwrap();
    let whole = frees(&["report", "--totals"]);
    assert!(whole > 0);
    for words in [
        &["report", "--by-thread"][..],
        &["report", "--histogram", "lifetime"],
        &["report", "--range", "0", "100s"],
    ] {
        assert_eq!(frees(words), whole, "{words:?}");
    }
}

/// Returns the explanation of a file.
fn explained(recording: &Recording, file: &str) -> Value {
    let Outcome { status, stdout, stderr } = heapr(recording, &format!("explain {file} --format json"));
    assert_eq!(status, 0, "{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn a_file_that_was_not_read_is_not_called_healthy() {
    let recording = recorded(&["--quiet"]);
    let whole = std::fs::read(recording.file()).unwrap();
    // Cuts the file at every length: what is printed is true of what was read.
    let mut empty = 0;
    for part in 1..40 {
        let length = whole.len() * part / 40;
        std::fs::write(recording.folder().join("cut.heapr"), &whole[..length]).unwrap();
        let refused = heapr(&recording, "info cut.heapr").status != 0;
        if refused {
            continue;
        }
        let answer = explained(&recording, "cut.heapr");
        let totals: Value =
            serde_json::from_str(&heapr(&recording, "report cut.heapr --totals --format json").stdout)
                .unwrap();
        let (verdict, first) = (answer["verdict"].as_str().unwrap(), &answer["findings"][0]);
        let is_empty = totals["totals"]["alloc_count"] == 0;
        if is_empty {
            empty += 1;
            assert_eq!((verdict, first["kind"].as_str()), ("", Some("unseen")), "{length}: {answer}");
            assert!(first["sentence"].as_str().unwrap().starts_with("Nothing"), "{answer}");
            let text = heapr(&recording, "report cut.heapr").stdout;
            // A file that ends right after a chunk is not damaged: so ends a file that is being
            // written.
            let says_so = text.contains("Nothing could be read") || text.contains("Nothing was recorded yet");
            assert!(says_so && !text.contains("Nothing grows"), "{text}");
            let judged = heapr(&recording, "explain cut.heapr --fail-on growth");
            assert_eq!(judged.status, 2, "{}", judged.stderr);
        } else if verdict.contains("Nothing grows") {
            assert!(verdict.contains("in the part that was recorded and read"), "{length}: {verdict}");
        }
    }
    assert!(empty > 0, "no cut lies before the first events");
    let answer = explained(&recording, "trace.heapr");
    assert!(!answer["verdict"].as_str().unwrap().contains("in the part"), "{answer}");
}

#[test]
fn what_is_suppressed_is_not_counted() {
    let recording = recorded(&["--quiet"]);
    let place = |name: &str| recording.folder().join(name);
    let totals = |words: &str| {
        let Outcome { status, stdout, stderr } =
            heapr(&recording, &format!("report trace.heapr --totals --format json{words}"));
        assert_eq!(status, 0, "{stderr}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        report["totals"]["alloc_count"].as_u64().unwrap()
    };
    let (all, of_main) = (totals(""), totals(" --require-frames main"));
    assert!(of_main > 0 && of_main <= all);
    std::fs::write(place("sanitizer"), "# what main makes\nleak:^main$\n").unwrap();
    assert_eq!(totals(" --suppress sanitizer"), all - of_main);
    std::fs::write(place("valgrind"), "{\n   what main makes\n   Memcheck:Leak\n   ...\n   fun:main\n}\n")
        .unwrap();
    assert_eq!(totals(" --suppress valgrind"), all - of_main);
    assert_eq!(totals(" --suppress valgrind --require-frames main"), 0);
    assert!(totals(" --hide-known") <= all);
    // A line of main, of several.
    let stacks = heapr(&recording, "report trace.heapr --stacks --top 1000 --format json").stdout;
    let stacks: Value = serde_json::from_str(&stacks).unwrap();
    let mut by_line = std::collections::BTreeMap::<u64, u64>::new();
    for group in stacks["groups"].as_array().unwrap() {
        let frames = group["frames"].as_array().unwrap();
        if let Some(line) = frames.iter().find(|frame| frame["symbol"] == "main") {
            *by_line.entry(line["line"].as_u64().unwrap()).or_default() +=
                group["total_count"].as_u64().unwrap();
        }
    }
    assert!(by_line.len() > 1 && by_line.values().sum::<u64>() == of_main, "{by_line:?} {of_main}");
    for (line, count) in by_line {
        let rule = format!("{{\n   a line\n   Memcheck:Leak\n   ...\n   src:*.c:{line}\n}}\n");
        std::fs::write(place("line"), rule).unwrap();
        assert_eq!(totals(" --suppress line"), all - count, "{line}");
    }
    std::fs::write(place("wrong"), "{\n   no kind\n}\n").unwrap();
    refuses(&recording, "report trace.heapr --suppress wrong", "wrong: line 1");
}

/// The recordings are of a Python script. `heapr symbolize` has written the names into them where
/// they were recorded. Each file's name ends with its processor.
#[test]
fn a_file_of_any_processor_is_read_with_its_symbols_and_frames_of_languages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_stem().unwrap().to_str().unwrap();
        let Some(processor) = name.strip_prefix("recorded-on-") else { continue };
        count += 1;
        let file = file.to_str().unwrap();
        let read = |words: &[&str]| {
            let Outcome { status, stdout, stderr } = run(&mut crate::recording::heapr(&folder, words));
            assert_eq!(status, 0, "{processor}: {stderr}");
            serde_json::from_str::<Value>(&stdout).unwrap()
        };
        let info = read(&["info", file, "--format", "json"]);
        assert_eq!(info["system"]["machine"], processor);
        let report =
            read(&["report", file, "--stacks", "--size", "7778", "7779", "--top", "1", "--format", "json"]);
        let group = &report["groups"][0];
        assert_eq!(group["total_count"], 50, "{processor}");
        let frames = group["frames"].as_array().unwrap();
        let has = |symbol: &str, line: Option<u64>| {
            frames.iter().any(|it| it["symbol"] == symbol && (line.is_none() || it["line"].as_u64() == line))
        };
        assert!(has("keep", Some(4)) && has("<module>", Some(5)), "{processor}: {group}");
        assert!(has("_PyObject_MakeTpCall", None) && has("__libc_start_main", None), "{processor}: {group}");
    }
    assert!(count >= 2, "{}", folder.display());
}
