//! `cargo heapr` on a package: its programs are recorded, and the status is Cargo's.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use heapr_testkit::not_run;

fn cargo_heapr(folder: &Path, heapr: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-heapr"));
    command.arg("heapr").args(words).current_dir(folder).stdin(Stdio::null());
    // Environment as for a call by Cargo, without the variables of this test's own Cargo.
    command.env("HEAPR", heapr).env_remove("CARGO_TARGET_DIR").env("CARGO_TERM_QUIET", "true");
    command.output().unwrap()
}

#[test]
fn run_and_test_are_recorded_with_lines() {
    let heapr = Path::new(env!("CARGO_BIN_EXE_cargo-heapr")).with_file_name("heapr");
    if !heapr.is_file() {
        return not_run("target/…/heapr is not built: cargo build -p heapr");
    }
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    std::fs::create_dir(folder.join("src")).unwrap();
    let manifest = "[package]\nname = \"kept\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    let source = "fn keep() -> Vec<u8> { Vec::with_capacity(3_000_001) }\n\
                  fn main() { std::hint::black_box(keep()); std::process::exit(7) }\n\
                  #[test] fn passes() { std::hint::black_box(keep()); }\n";
    std::fs::write(folder.join("src/main.rs"), source).unwrap();
    let ran = cargo_heapr(folder, &heapr, &["-o", "with a space.heapr", "run", "--release"]);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(7), "{said}");
    let report = |file: &Path| {
        let mut command = Command::new(&heapr);
        command.arg("report").arg(file).args(["--stacks", "st", "--size", "3000001", "3000002"]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let text = report(&folder.join("with a space.heapr"));
    assert!(text.contains("main.rs:1"), "{text}\n{said}");
    let tested = cargo_heapr(folder, &heapr, &["test", "passes"]);
    let said = String::from_utf8_lossy(&tested.stderr).into_owned();
    assert_eq!(tested.status.code(), Some(0), "{said}");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.into_iter().find(|path| path.to_string_lossy().contains("heapr.kept-")).unwrap();
    assert!(report(&file).contains("main.rs:1"), "{said}");
    let usage = cargo_heapr(folder, &heapr, &["--help"]);
    assert!(usage.status.success() && String::from_utf8_lossy(&usage.stdout).contains("run|test|bench"));
}
