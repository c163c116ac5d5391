//! Modules that are not what they seem: damaged ELF files, devices, pipes, directories.

use std::fs;

use heapr_symbols::ModuleKey;
use proptest::prelude::*;

use crate::built_program::{Program, must, nothing_else, resolve};

#[test]
fn damaged_modules_never_panic() {
    let program = Program::cpp(&["-g", "-O2"]);
    let good = fs::read(&program.path).unwrap();
    let svmas: Vec<u64> = program.functions().iter().flat_map(|&(start, size)| start..start + size).collect();
    let damaged = program.file("damaged");
    let key = ModuleKey { path: damaged.clone(), build_id: Vec::new() };
    let strategy = (
        0..good.len(),
        proptest::collection::vec((0..good.len(), any::<u8>()), 1..64),
        proptest::collection::vec((0..64_usize, any::<u8>()), 0..3),
    );
    proptest!(ProptestConfig::with_cases(300), |((cut, anywhere, head) in strategy)| {
        let mut bad = good.clone();
        for (at, value) in anywhere.into_iter().chain(head) {
            bad[at] = value;
        }
        fs::write(&damaged, &bad).unwrap();
        let _ = resolve(&key, &svmas, nothing_else());
        fs::write(&damaged, &good[..cut]).unwrap();
        let _ = resolve(&key, &svmas, nothing_else());
    });
}

#[test]
fn what_is_no_file_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    must(std::process::Command::new("mkfifo").arg(&pipe));
    for path in [pipe, folder.path().to_owned(), "/dev/zero".into(), "/dev/stdin".into(), "".into()] {
        let key = ModuleKey { path: path.clone(), build_id: Vec::new() };
        let found = heapr_testkit::within_limit(&path.display().to_string(), move || {
            resolve(&key, &[0x1000], nothing_else())
        });
        assert!(found.is_err(), "{}", path.display());
    }
}
