//! Builds victims with the machine's compilers into the target directory, if the source is newer.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::header::Header;

/// Folder of the victims' sources.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims").canonicalize().unwrap()
}

/// Flags of every C and C++ victim, which keep each call. They prevent an optimised built-in
/// malloc, tail calls that remove a frame, and functions cloned or inlined under another name.
const C_FLAGS: &[&str] = &[
    "-g",
    "-Wall",
    "-Wno-unused-result",
    "-fno-builtin",
    "-fno-allocation-dce",
    "-fno-optimize-sibling-calls",
    "-fno-inline-functions-called-once",
    "-fno-ipa-icf",
    "-D_GNU_SOURCE",
];

/// Prefix of the compilers for another processor, under whose emulation `cargo xtask emulated` runs
/// the victims.
fn processor() -> Option<String> {
    std::env::var("HEAPR_TEST_PROCESSOR").ok()
}

/// True if victims are built and not run: `cargo xtask vm` runs them in a machine of their
/// processor.
pub(crate) fn are_only_built() -> bool {
    std::env::var_os("HEAPR_TEST_BUILDS").is_some()
}

/// True if the victims run under emulation.
pub(crate) fn is_emulated() -> bool {
    processor().is_some()
}

/// Builds victim `name` with the optimisation flags `level`, and returns the program's path.
pub(crate) fn build(name: &str, header: &Header, level: &[String]) -> PathBuf {
    let source = sources().join(name);
    let stem = source.file_stem().and_then(|stem| stem.to_str()).unwrap();
    let label: String =
        level.iter().flat_map(|flag| flag.chars()).filter(char::is_ascii_alphanumeric).collect();
    let victims = format!("victims{}", processor().map(|name| format!("-{name}")).unwrap_or_default());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(victims).join(format!("{stem}-{label}"));
    std::fs::create_dir_all(&folder).unwrap();
    for (library_source, flags, output) in &header.libraries {
        let library_source = sources().join(library_source);
        compile(
            &library_source,
            &folder.join(output),
            level,
            &[&["-shared".into(), "-fPIC".into()], &flags[..]].concat(),
        );
    }
    let program = folder.join(stem);
    match source.extension().and_then(|extension| extension.to_str()) {
        // Scripts run as they are.
        Some("sh" | "js" | "py") => source,
        _ => {
            let in_folder = |flag: &String| flag.replace("{folder}", folder.to_str().unwrap());
            let flags: Vec<String> = header.build.iter().map(in_folder).collect();
            compile(&source, &program, level, &flags);
            program
        }
    }
}

fn compile(source: &Path, output: &Path, level: &[String], flags: &[String]) {
    // One test builds a file at a time: a program that is replaced while it runs has no names.
    let lock = File::create(output.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let modified = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    let source_time = modified(source).unwrap_or_else(|| panic!("{} is missing", source.display()));
    if modified(output).is_some_and(|time: SystemTime| time > source_time) {
        return;
    }
    // A build that was ended in the middle leaves no file under the program's name.
    let thread: String =
        format!("{:?}", std::thread::current().id()).chars().filter(char::is_ascii_digit).collect();
    let partial = output.with_extension(format!("{}-{thread}.partial", std::process::id()));
    let extension = source.extension().and_then(|extension| extension.to_str());
    let replaced = flags.iter().find_map(|flag| flag.strip_prefix("compiler=")).map(str::to_owned);
    let flags = flags.iter().filter(|flag| !flag.starts_with("compiler="));
    let mut command;
    match extension {
        Some("rs") => {
            command = Command::new("rustc");
            command.args(["--edition", "2024", "-C", "debuginfo=2", "-C", "opt-level=1"]).args(flags);
            if let Some(processor) = processor() {
                command.args(["--target", &processor.replacen("-linux", "-unknown-linux", 1)]);
                command.args(["-C", &format!("linker={processor}-gcc")]);
            }
            command.arg(source);
        }
        Some("go") => {
            command = Command::new("go");
            command
                .env("CGO_ENABLED", "1")
                .env("GOFLAGS", "-mod=mod")
                .env("GOTOOLCHAIN", "local")
                .arg("build");
            if let Some(processor) = processor() {
                command.env("CC", format!("{processor}-gcc"));
            }
            command.args(flags).arg("-o").arg(&partial).arg(source);
        }
        extension => {
            let compiler = if extension == Some("cc") { "g++" } else { "gcc" };
            command = match (replaced, processor()) {
                (Some(replaced), _) => Command::new(replaced),
                (None, Some(processor)) => Command::new(format!("{processor}-{compiler}")),
                (None, None) => Command::new(compiler),
            };
            command.args(C_FLAGS).args(level).arg(source).args(flags);
        }
    }
    if extension != Some("go") {
        command.arg("-o").arg(&partial);
    }
    let result = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        result.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&result.stdout),
        String::from_utf8_lossy(&result.stderr)
    );
    std::fs::rename(&partial, output).unwrap();
}
