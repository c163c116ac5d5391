//! Programs with a sanitizer run as without heapr, which says whether they are traced.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use heapr_testkit::run;

use crate::passthrough::{has_victim_blocks, heapr, victim_at};
use crate::recording;

/// Builds a C program that allocates from a function of its own, with these options; `None` if the
/// compiler lacks the runtime.
fn sanitized(folder: &Path, name: &str, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    let source = folder.join("blocks.c");
    let code = "#include <stdio.h>\n#include <stdlib.h>\n\
                __attribute__((noinline)) void *victim_second(void) { return malloc(1000); }\n\
                int main(void) { free(victim_second()); puts(\"done\"); }\n";
    fs::write(&source, code).unwrap();
    let program = folder.join(name);
    let mut command = Command::new(compiler);
    command.args(["-g", "-O1", "-fno-builtin-malloc"]).args(options).arg(&source).arg("-o").arg(&program);
    if options.contains(&"-shared-libasan") {
        // The loader would not find the runtime in the compiler's own folder.
        let asked = Command::new(compiler).arg("-print-file-name=libclang_rt.asan-x86_64.so").output();
        let runtime = PathBuf::from(String::from_utf8(asked.unwrap().stdout).unwrap().trim());
        command.arg(format!("-Wl,-rpath,{}", runtime.parent().unwrap().display()));
    }
    let is_built = command.output().is_ok_and(|output| output.status.success());
    // Some runtimes do not start on some kernels.
    if !is_built || !Command::new(&program).output().is_ok_and(|output| output.status.success()) {
        heapr_testkit::not_run(format_args!("{compiler} {options:?} makes no program that runs here"));
        return None;
    }
    Some(program)
}

#[test]
fn a_sanitizer_that_allows_no_tracing_is_named_and_its_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (compiler, options, sanitizer) in [
        ("gcc", &["-fsanitize=thread"][..], "ThreadSanitizer"),
        ("gcc", &["-fsanitize=address"], "AddressSanitizer"),
        ("gcc", &["-fsanitize=thread", "-static-libtsan"], "ThreadSanitizer"),
        ("gcc", &["-fsanitize=address", "-static-libasan"], "AddressSanitizer"),
        ("clang", &["-fsanitize=thread"], "ThreadSanitizer"),
        ("clang", &["-fsanitize=address"], "AddressSanitizer"),
        ("clang", &["-fsanitize=memory"], "MemorySanitizer"),
    ] {
        if sanitized(folder.path(), "sanitized", compiler, options).is_none() {
            continue;
        }
        let outcome = heapr(folder.path(), &["run", "--quiet", "-o", "t.heapr", "--", "./sanitized"]);
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (0, "done\n"),
            "{options:?}: {}",
            outcome.stderr
        );
        let lines: Vec<_> = outcome.stderr.lines().collect();
        assert!(
            lines.len() == 1 && lines[0].contains("runs untraced") && lines[0].contains(sanitizer),
            "{compiler} {options:?}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn a_sanitizer_that_allows_tracing_is_traced() {
    let folder = tempfile::tempdir().unwrap();
    for options in [&["-fsanitize=leak"][..], &["-fsanitize=undefined"], &["-fsanitize=address"]] {
        if sanitized(folder.path(), "sanitized", "gcc", options).is_none() {
            continue;
        }
        let words = ["run", "--quiet", "-f", "-o", "t.heapr", "--", "./sanitized"];
        let mut command = recording::heapr(folder.path(), &words);
        let outcome = run(command.env("ASAN_OPTIONS", "verify_asan_link_order=0"));
        assert_eq!(
            (outcome.status, outcome.stdout.as_str(), outcome.stderr.as_str()),
            (0, "done\n", ""),
            "{options:?}"
        );
        assert!(has_victim_blocks(folder.path(), "t.heapr"), "{options:?}");
    }
}

/// The runtime cannot be called yet when it first calls the agent.
#[test]
fn a_program_with_thread_sanitizer_that_a_traced_shell_starts_runs_untraced() {
    let folder = tempfile::tempdir().unwrap();
    victim_at(&folder.path().join("victim-here"));
    for (compiler, options) in [
        ("gcc", &["-fsanitize=thread"][..]),
        ("gcc", &["-fsanitize=thread", "-static-libtsan"]),
        ("clang", &["-fsanitize=thread"]),
    ] {
        if sanitized(folder.path(), "sanitized", compiler, options).is_none() {
            continue;
        }
        let line = "./sanitized && env -i ./sanitized && ./victim-here; exit $?";
        let outcome =
            heapr(folder.path(), &["run", "--quiet", "-f", "-o", "t.heapr", "--", "sh", "-c", line]);
        assert_eq!(
            (outcome.status, outcome.stdout.as_str(), outcome.stderr.as_str()),
            (0, "done\ndone\ndone\n", ""),
            "{compiler} {options:?}"
        );
        assert!(has_victim_blocks(folder.path(), "t.heapr"));
    }
}

/// The runtime would end the program if the agent's library came before its own. The program
/// therefore runs without the agent, and the report says so.
#[test]
fn a_program_with_address_sanitizer_that_a_traced_shell_starts_runs_untraced() {
    let folder = tempfile::tempdir().unwrap();
    victim_at(&folder.path().join("victim-here"));
    for (compiler, options) in [
        ("gcc", &["-fsanitize=address"][..]),
        ("gcc", &["-fsanitize=address", "-static-libasan"]),
        ("clang", &["-fsanitize=address"]),
        ("clang", &["-fsanitize=address", "-shared-libasan"]),
        ("clang", &["-fsanitize=memory"]),
    ] {
        if sanitized(folder.path(), "sanitized", compiler, options).is_none() {
            continue;
        }
        let line = "./sanitized && env -i ./sanitized && ./victim-here; exit $?";
        let outcome =
            heapr(folder.path(), &["run", "--quiet", "-f", "-o", "t.heapr", "--", "sh", "-c", line]);
        let seen = (outcome.status, outcome.stdout.as_str(), outcome.stderr.as_str());
        assert_eq!(seen, (0, "done\ndone\ndone\n", ""), "{compiler} {options:?}");
        assert!(has_victim_blocks(folder.path(), "t.heapr"));
        let report = heapr(folder.path(), &["report", "t.heapr"]);
        let text = report.stdout + &report.stderr;
        // A runtime inside the program is not visible to the loader.
        let told = ["built with a sanitizer", "a malloc of its own"];
        let told = text.lines().filter(|line| told.iter().any(|word| line.contains(word))).count();
        assert_eq!(told, 2, "{compiler} {options:?}: {text}");
    }
}
