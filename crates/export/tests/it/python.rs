//! Python with packages that read the exports. It is installed once, into the tests' folder.

use std::path::PathBuf;
use std::process::Command;

/// Finds or installs a Python with these packages. Returns `None`, with a message, if that fails.
pub(crate) fn with(packages: &[(&str, &str)]) -> Option<PathBuf> {
    let imports: Vec<String> = packages.iter().map(|(_, module)| format!("import {module}")).collect();
    let has_all = |python: &PathBuf| {
        let tried = Command::new(python).args(["-c", &imports.join("\n")]).output();
        tried.is_ok_and(|tried| tried.status.success())
    };
    let own = std::env::var_os("HEAPR_TEST_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    if has_all(&own) {
        return Some(own);
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = folder.join("bin/python");
    std::fs::create_dir_all(&folder).unwrap();
    // Tests in other processes use the same folder: the lock lets one install at a time.
    let lock = std::fs::File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if has_all(&python) {
        return Some(python);
    }
    let run = |command: &mut Command| command.output().is_ok_and(|ran| ran.status.success());
    if !run(Command::new("python3").args(["-m", "venv"]).arg(&folder)) {
        heapr_testkit::not_run("python3 makes no environments (python3-venv)");
        return None;
    }
    let names = packages.iter().map(|(name, _)| name);
    if !run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(names)) {
        heapr_testkit::not_run("pip cannot install packages here");
        return None;
    }
    Some(python)
}
