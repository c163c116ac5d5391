//! Runs the fuzz targets, one after the other: each with libFuzzer's counters and the address
//! sanitizer. The stable compiler takes the flags that `cargo fuzz` passes to a nightly one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

use crate::bench::write_small_hprof;

/// Seconds of a target if none are given.
const SECONDS: &str = "120";
/// Stated, so that build scripts are built without the flags.
const PROCESSOR: &str = "x86_64-unknown-linux-gnu";
/// Counters of edges, their addresses, compared numbers; and what the readers know a fuzzer by.
const FLAGS: &str = "--cfg fuzzing -Zsanitizer=address -Ccodegen-units=1 -Cpasses=sancov-module \
                     -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares";
/// Bounds of a run: memory, length of an input, and seconds of one input.
const BOUNDS: [&str; 3] = ["-rss_limit_mb=2048", "-max_len=65536", "-timeout=25"];
/// Leaks that the sanitizer finds in the C library, in the folder `fuzz`.
const LEAKS_OF_OTHERS: &str = "leaks-of-others.txt";
/// Files that the tests have, too: target, path in the repository.
const SEEDS_OF_TESTS: &[(&str, &str)] = &[
    ("dotnet_events", "crates/managed/tests/data/static-map.nettrace"),
    ("trace_reader", "crates/heapr/tests/it/data/recorded-on-aarch64.heapr"),
    ("trace_reader", "crates/trace/tests/data/version-1.heapr"),
];

/// Runs `cargo xtask fuzz [--seconds N] TARGET…`.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let (seconds, targets) = match words {
        ["--seconds", seconds, targets @ ..] => (*seconds, targets),
        targets => (SECONDS, targets),
    };
    seconds.parse::<u32>().with_context(|| format!("{seconds} is no number of seconds"))?;
    let all = all_targets()?;
    if let Some(unknown) = targets.iter().find(|target| !all.iter().any(|known| known == *target)) {
        bail!("there is no target {unknown}; the targets are {}", all.join(", "));
    }
    ensure!(!targets.is_empty(), "which targets? They are {}", all.join(", "));
    let mut failed = Vec::new();
    println!("| target | runs | in | code reached (edges) | found |\n|---|---:|---:|---:|---|");
    for target in targets {
        let outcome = measure(target, seconds)?;
        println!(
            "| `{target}` | {} | {:.0} s | {} | {} |",
            outcome.runs, outcome.seconds, outcome.edges, outcome.found
        );
        if outcome.found != NOTHING {
            failed.push(*target);
        }
    }
    ensure!(failed.is_empty(), "found something: {}", failed.join(", "));
    Ok(())
}

const NOTHING: &str = "nothing";

/// Figures that a run tells of itself.
struct Outcome {
    runs: String,
    seconds: f64,
    edges: String,
    found: String,
}

fn all_targets() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(crate::root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn measure(target: &str, seconds: &str) -> anyhow::Result<Outcome> {
    let program = built(target)?;
    let folder = crate::root().join("fuzz");
    let (corpus, findings) = (folder.join("corpus").join(target), folder.join("artifacts").join(target));
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&findings)?;
    add_made_seeds(target, &corpus)?;
    let seeds = folder.join("seeds").join(target);
    let mut command = Command::new(program);
    command.arg(&corpus).args(seeds.is_dir().then_some(seeds)).args(BOUNDS);
    command.arg(format!("-max_total_time={seconds}")).arg("-print_final_stats=1");
    command.env("LSAN_OPTIONS", format!("suppressions={}", folder.join(LEAKS_OF_OTHERS).display()));
    command.arg(format!("-artifact_prefix={}/", findings.display()));
    let begun = Instant::now();
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let log = findings.join("log");
    std::fs::write(&log, &output.stderr)?;
    let found = if output.status.success() {
        NOTHING.to_owned()
    } else {
        format!("{}: {}", cause(&text), log.display())
    };
    Ok(Outcome {
        runs: word_after(&text, "stat::number_of_executed_units:"),
        seconds: begun.elapsed().as_secs_f64(),
        edges: word_after(&text, "cov:"),
        found,
    })
}

/// Builds a target and returns the path of its program.
fn built(target: &str) -> anyhow::Result<PathBuf> {
    let manifest = crate::root().join("fuzz/Cargo.toml");
    let mut build = crate::cargo();
    build.args(["build", "--quiet", "--release", "--target", PROCESSOR, "--bin", target]);
    build.arg("--manifest-path").arg(&manifest);
    crate::run(build.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FLAGS))?;
    let folder = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| crate::root().join("fuzz/target"));
    Ok(folder.join(PROCESSOR).join("release").join(target))
}

/// Writes the seeds that are not in `fuzz/seeds`, because others have them.
fn add_made_seeds(target: &str, corpus: &Path) -> anyhow::Result<()> {
    for (_, path) in SEEDS_OF_TESTS.iter().filter(|(of, _)| *of == target) {
        let from = crate::root().join(path);
        let name = from.file_name().context("a seed is a file")?;
        std::fs::copy(&from, corpus.join(name)).with_context(|| from.display().to_string())?;
    }
    if target == "java_dump" { write_small_hprof(&corpus.join("seed.hprof")) } else { Ok(()) }
}

/// Last word after a mark.
fn word_after(text: &str, mark: &str) -> String {
    let rest = text.rsplit_once(mark).map(|(_, rest)| rest);
    rest.and_then(|rest| rest.split_whitespace().next()).unwrap_or("unknown").to_owned()
}

/// Line that says why a run ended.
fn cause(text: &str) -> &str {
    let is_one = |line: &&str| ["panicked at", "ERROR: ", "SUMMARY: "].iter().any(|mark| line.contains(mark));
    text.lines().find(is_one).unwrap_or("ended early").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runs_end_is_told() {
        let text = "#2\tINITED cov: 10 ft: 11\n#900\tpulse  cov: 123 ft: 200\n\
                    stat::number_of_executed_units: 901\n";
        assert_eq!(word_after(text, "cov:"), "123");
        assert_eq!(word_after(text, "stat::number_of_executed_units:"), "901");
        assert_eq!(word_after("", "cov:"), "unknown");
        let text = "cov: 3\nthread 'x' panicked at src/a.rs:3:5:\n==1== ERROR: libFuzzer: deadly signal";
        assert_eq!(cause(text), "thread 'x' panicked at src/a.rs:3:5:");
    }

    #[test]
    fn each_target_is_named_by_the_manifest() {
        let manifest = std::fs::read_to_string(crate::root().join("fuzz/Cargo.toml")).unwrap();
        for target in all_targets().unwrap() {
            assert!(manifest.contains(&format!("fuzz_targets/{target}.rs")), "{target}");
        }
    }
}
