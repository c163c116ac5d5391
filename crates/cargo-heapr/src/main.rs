//! `cargo heapr`: records the programs that `cargo run`, `test` and `bench` run.
//!
//! Cargo builds as usual, and starts each program through a runner: `heapr run`. Optimized programs
//! get line tables, so that stacks have lines.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo heapr [OPTIONS OF heapr run] run|test|bench [OPTIONS OF cargo] [-- ARGUMENTS]

  cargo heapr run --release -- input.txt      builds and runs the program, and records it
  cargo heapr test parser                     each test program is recorded into a file of its own
  cargo heapr -o bench.heapr bench --bench parse

Without -o the files are heapr.PROGRAM.PID.heapr, where Cargo runs the program; `heapr run --help` lists the options.";

/// Commands of Cargo that run the built programs.
const COMMANDS: &[&str] = &["run", "test", "bench"];

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Cargo passes the subcommand's name first.
    if words.first().is_some_and(|word| word == "heapr") {
        words.remove(0);
    }
    let Some(at) = words.iter().position(|word| COMMANDS.iter().any(|command| word == command)) else {
        let is_asked = words.iter().any(|word| word == "--help" || word == "-h");
        if is_asked {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let runner = match runner(&words[..at]) {
        Ok(runner) => runner,
        Err(reason) => {
            eprintln!("cargo heapr: {reason}");
            return ExitCode::from(2);
        }
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.arg(&words[at]);
    command.arg("--config").arg(format!("target.'cfg(target_os = \"linux\")'.runner = {runner}"));
    for profile in ["release", "bench"] {
        command.arg("--config").arg(format!("profile.{profile}.debug = \"line-tables-only\""));
        command.arg("--config").arg(format!("profile.{profile}.strip = \"none\""));
    }
    command.args(&words[at + 1..]);
    let error = command.exec();
    eprintln!("cargo heapr: cannot run {}: {error}", cargo.to_string_lossy());
    ExitCode::from(2)
}

/// Runner for Cargo, as TOML.
fn runner(options: &[OsString]) -> Result<String, String> {
    let heapr = heapr();
    let mut words = vec![text(heapr.as_os_str())?, "run".to_owned()];
    for option in options {
        words.push(text(option)?);
    }
    words.push("--".to_owned());
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    Ok(format!("[{}]", words.join(", ")))
}

/// Program `heapr`: the one named by `HEAPR`, the one beside this program, or the one in PATH.
fn heapr() -> PathBuf {
    if let Some(named) = std::env::var_os("HEAPR") {
        return named.into();
    }
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("heapr"));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| "heapr".into())
}

fn text(word: &std::ffi::OsStr) -> Result<String, String> {
    word.to_str().map(str::to_owned).ok_or_else(|| format!("{} is no UTF-8", word.to_string_lossy()))
}

/// A basic string of TOML.
fn quoted(word: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in word.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(letter))),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[test]
fn words_of_a_runner_keep_what_they_hold() {
    assert_eq!(quoted("a b\"c\\d\n"), "\"a b\\\"c\\\\d\\u000A\"");
}
