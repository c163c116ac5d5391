//! A program with a known heap, and the tools that record it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program allocates 1,000 blocks of 100 to 1,099 bytes and frees half of them. It also
/// allocates 1,000 blocks of 5,000 bytes and frees each at once.
const SOURCE: &str = r"
#include <stdlib.h>
char *kept[1000];
__attribute__((noinline)) void *leaf(size_t bytes) { return malloc(bytes); }
__attribute__((noinline)) void round_of(int i) { kept[i] = leaf(100 + i); free(leaf(5000)); }
int main(void) {
    for (int i = 0; i < 1000; i++) round_of(i);
    for (int i = 0; i < 500; i++) free(kept[i]);
    return 0;
}
";

pub(crate) const KEPT_BYTES: u64 = 599_500;
pub(crate) const END_BYTES: u64 = 424_750;
pub(crate) const PASSING_BYTES: u64 = 5_000;

/// Builds the program into `folder`; returns its path.
pub(crate) fn build(folder: &Path) -> Option<PathBuf> {
    let (source, program) = (folder.join("heap.c"), folder.join("heap"));
    std::fs::write(&source, SOURCE).unwrap();
    let built = run("gcc", |command| {
        command.args(["-g", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-o"]);
        command.arg(&program).arg(&source);
    })?;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(program)
}

/// Runs a tool; prints a message and returns `None` if it is not installed.
pub(crate) fn run(tool: &str, with: impl FnOnce(&mut Command)) -> Option<Output> {
    let mut command = Command::new(tool);
    with(&mut command);
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            heapr_testkit::not_run(format!("{tool} is not installed"));
            None
        }
        Err(error) => panic!("{tool}: {error}"),
    }
}
