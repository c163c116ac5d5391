//! Builds the examples in C against `heapr.h` and `libheapr.so`, and runs them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Folder of `libheapr.so`: that of this test's program, or the one above.
fn library_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap();
    let folders = [folder.parent().unwrap(), folder];
    let found = folders.into_iter().find(|folder| folder.join("libheapr.so").exists());
    found.unwrap_or_else(|| panic!("no libheapr.so near {}", program.display())).to_owned()
}

fn compile(source: &Path, program: &Path, options: &[&OsStr]) {
    let status = Command::new("gcc")
        .args(["-g", "-Wall", "-Wextra", "-Werror", "-std=c11", "-D_GNU_SOURCE", "-fno-builtin"])
        .arg("-I")
        .arg(here())
        .arg("-o")
        .arg(program)
        .arg(source)
        .args(options)
        .status()
        .unwrap();
    assert!(status.success(), "gcc {}", source.display());
}

fn example(name: &str, folder: &Path) -> PathBuf {
    let program = folder.join(name);
    let libraries = library_folder();
    compile(
        &here().join("examples").join(name).with_extension("c"),
        &program,
        &[OsStr::new("-L"), libraries.as_os_str(), OsStr::new("-lheapr")],
    );
    program
}

/// Runs an example for at most half a minute, in its own runtime directory.
fn run(program: &Path, arguments: &[&OsStr], folder: &Path) -> Output {
    let private = folder.join("run");
    std::fs::create_dir(&private).unwrap();
    std::fs::set_permissions(&private, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    Command::new("timeout")
        .args(["--kill-after=5", "30"])
        .arg(program)
        .args(arguments)
        .env("LD_LIBRARY_PATH", library_folder())
        .env("HEAPR_RUNTIME_DIR", &private)
        .env("XDG_RUNTIME_DIR", &private)
        .output()
        .unwrap()
}

#[test]
fn the_example_traces_a_program_from_its_first_instruction_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let source = folder.join("keeps_ten.c");
    std::fs::write(
        &source,
        "#include <stdlib.h>\n#include <stdio.h>\nint main(void) { void *kept[10]; for (int i = 0; i < 1000; i++) {\n\
         void *block = malloc(12345); if (i % 100 == 0) kept[i / 100] = block; else free(block); }\n\
         fprintf(stderr, \"%p\\n\", kept[9]); return 0; }\n",
    )
    .unwrap();
    let target = folder.join("keeps_ten");
    compile(&source, &target, &[]);
    let output = folder.join("out.heapr");
    let outcome = run(&example("trace_program", folder), &[output.as_os_str(), target.as_os_str()], folder);
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(outcome.status.success(), "{text}{}", String::from_utf8_lossy(&outcome.stderr));
    assert!(
        text.contains("a second session of this name: 1 (a session named trace_program exists"),
        "{text}"
    );
    assert!(text.contains(" 0 lost, 123450 bytes in 10 blocks outstanding"), "{text}");
    assert!(output.metadata().unwrap().len() > 0);
}

#[test]
fn the_example_traces_a_child_that_was_created_suspended() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let output = folder.join("out.heapr");
    let outcome = run(&example("trace_child", folder), &[output.as_os_str()], folder);
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(outcome.status.success(), "{text}{}", String::from_utf8_lossy(&outcome.stderr));
    // 1,000 allocations and 990 frees by the child, which keeps 10 blocks.
    assert!(text.starts_with("child ended with 0; 1990 events, 0 lost, 10 blocks outstanding"), "{text}");
}
