//! Commands of a page, run in one shell.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::page::{Block, Page};

/// Text printed after each command on both outputs.
const END: &str = "--- end of a command of the book ---";

/// Time-out of a page.
const LIMIT: Duration = Duration::from_secs(240);

/// Runs a page, adds differences to `wrong`, and puts the output into the page. Returns the number
/// of commands.
pub(crate) fn run(page: &mut Page, shown: &str, wrong: &mut Vec<String>) -> usize {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("work");
    for made in [&folder, &scratch.path().join("bin"), &scratch.path().join("run")] {
        std::fs::create_dir(made).unwrap();
    }
    let built = PathBuf::from(env!("CARGO_BIN_EXE_heapr"));
    let heapr = std::env::var_os("HEAPR").map_or_else(|| built.clone(), PathBuf::from);
    let cargo_heapr = built.with_file_name("cargo-heapr");
    for (name, program) in [("heapr", heapr), ("cargo-heapr", cargo_heapr)] {
        std::os::unix::fs::symlink(program, scratch.path().join("bin").join(name)).unwrap();
    }
    let script = script_of(page, &folder);
    let path = std::env::join_paths(
        std::iter::once(scratch.path().join("bin"))
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    // Output goes into a file: a process that outlives the page would keep a pipe open.
    let printed = scratch.path().join("printed");
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &script])
        .current_dir(&folder)
        .env("PATH", path.unwrap())
        .env("HOME", &folder)
        .env("XDG_RUNTIME_DIR", scratch.path().join("run"))
        .env("HEAPR_SOURCE", &root)
        .env_remove("CARGO_TARGET_DIR")
        .env("CARGO_TERM_QUIET", "true")
        // A Cargo that is a shim of rustup finds its toolchain there.
        .envs(["CARGO_HOME", "RUSTUP_HOME"].into_iter().zip([".cargo", ".rustup"]).filter_map(
            |(name, below)| {
                let home = std::env::home_dir()?;
                Some((name, std::env::var_os(name).unwrap_or_else(|| home.join(below).into_os_string())))
            },
        ))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&printed).unwrap())
        .process_group(0);
    let mut child = shell.spawn().unwrap();
    let begin = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() && begin.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Kills the page's process group, with all that still runs.
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    let _ = child.wait();
    let text = String::from_utf8_lossy(&std::fs::read(&printed).unwrap()).into_owned();
    let text = text
        .replace(&folder.display().to_string(), "/home/you")
        .replace(&root.display().to_string(), "heapr");
    let end = format!("{END}\n");
    let mut printed = text.split(end.as_str());
    let mut count = 0;
    for block in &mut page.blocks {
        let Block::Console { steps } = block else { continue };
        for step in steps {
            count += 1;
            let Some(said) = printed.next() else {
                wrong.push(format!("{shown}: $ {}\nwas not reached", step.command));
                continue;
            };
            if without_numbers(&without_varying(said)) != without_numbers(&without_varying(&step.output)) {
                wrong.push(format!(
                    "{shown}: $ {}\nsays:\n{said}and the book:\n{}",
                    step.command, step.output
                ));
            }
            step.output = said.to_owned();
            if !said.is_empty() && !said.ends_with('\n') {
                step.output.push('\n');
            }
        }
    }
    count
}

/// Writes the files of a page into its folder, and returns its commands as a script that prints
/// [`END`] after each.
fn script_of(page: &Page, folder: &Path) -> String {
    let mut script = String::from("exec 2>&1\n");
    for block in page.blocks() {
        match block {
            Block::Text(_) => {}
            Block::File { name, content, .. } => {
                let path = folder.join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, content).unwrap();
            }
            Block::Console { steps } => {
                for step in steps {
                    script.push_str(&format!("{}\necho '{END}'\n", step.command));
                }
            }
        }
    }
    script
}

/// Returns the text without warnings of memory that no recorded block explains. How much a runtime
/// keeps for itself differs from machine to machine, as with huge pages.
fn without_varying(text: &str) -> String {
    let varies = |line: &str| {
        line.starts_with("heapr: warning: ") && line.contains(" anonymous memory are in no recorded block: ")
    };
    text.split_inclusive('\n').filter(|line| !varies(line)).collect()
}

/// Returns the text without varying parts: numbers become `#`, their units `u`, and spaces a single
/// one.
fn without_numbers(text: &str) -> String {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        let mut plain = String::new();
        for letter in word.chars() {
            let is_number =
                letter.is_ascii_digit() || matches!(letter, '.' | ',' | ':') && plain.ends_with('#');
            match is_number {
                true if plain.ends_with('#') => {}
                true => plain.push('#'),
                false => plain.push(letter),
            }
        }
        let is_unit = ["B", "KiB", "MiB", "GiB", "ns", "us", "µs", "ms", "s", "min", "s,", "ms,", "us,"]
            .contains(&plain.as_str());
        let follows = words.last().is_some_and(|last: &String| last.ends_with('#'));
        words.push(if is_unit && follows { "u".to_owned() } else { plain });
    }
    words.join(" ")
}

#[test]
fn numbers_and_their_units_may_differ_and_words_may_not() {
    let [a, b, c] = [
        "peak 1.5 MiB in 1,204 blocks at 12.1 ms",
        "peak  900 KiB in 7 blocks at 1.2 s",
        "peak 900 KiB in 7 pages at 1 s",
    ]
    .map(without_numbers);
    assert_eq!(a, b);
    assert_ne!(b, c);
}

#[test]
fn warnings_of_a_runtimes_own_memory_may_differ_and_others_may_not() {
    let [own, other] =
        ["7.8 MiB of its 46.2 MiB anonymous memory are in no recorded block: JVM heap", "3 events were lost"]
            .map(|warning| {
                without_varying(&format!("heapr: warning: a.heapr: java (7): {warning}\nMemory\n"))
            });
    assert_eq!(own, "Memory\n");
    assert!(other.contains("3 events were lost"));
}
