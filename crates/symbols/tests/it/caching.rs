//! Cache on disk: used while nothing has changed, discarded after any change.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use heapr_symbols::{SymbolOptions, Symbolizer};
use proptest::prelude::*;

use crate::built_program::{Program, build_id, by_build_id, copy, described, nothing_else};

fn cache_file(directory: &std::path::Path) -> PathBuf {
    let files: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn a_second_question_is_answered_from_the_cache_and_adds_to_it() {
    let program = Program::cpp(&["-g", "-O1"]);
    let (plain, main) = (program.address_of("plain"), program.address_of("main"));
    let cache = tempfile::tempdir().unwrap();
    let directory = cache.path().join("heapr/symbols");
    let options = SymbolOptions { cache_dir: Some(directory.clone()), ..nothing_else() };
    let resolve = |svma| Symbolizer::new(options.clone()).resolve(&program.key(), &[svma]).unwrap();
    let first = described(&resolve(plain), plain);
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    let file = cache_file(&directory);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(described(&resolve(plain), plain), first);
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written, "nothing new, nothing written");
    let both = resolve(main);
    assert_eq!(described(&both, plain), first, "answers are added up");
    assert_eq!(resolve(plain).len(), 2);
}

#[test]
fn debug_information_that_is_installed_later_is_picked_up() {
    let program = Program::cpp(&["-g", "-O1", "-Wl,--build-id"]);
    let svma = program.address_of("plain");
    program.tool("objcopy", &["--only-keep-debug", "program", "program.debug"]);
    program.tool("strip", &["program"]);
    let symbols = tempfile::tempdir().unwrap();
    let options = SymbolOptions {
        cache_dir: Some(program.file("cache")),
        symbol_paths: vec![symbols.path().to_owned()],
        ..nothing_else()
    };
    let resolve = || Symbolizer::new(options.clone()).resolve(&program.key(), &[svma]).unwrap();
    assert!(described(&resolve(), svma).is_empty());
    assert!(described(&resolve(), svma).is_empty());
    copy(&program.file("program.debug"), &by_build_id(symbols.path(), &build_id(&program.path)));
    assert_eq!(described(&resolve(), svma), ["plain program.cc:19"]);
    fs::remove_dir_all(symbols.path().join(".build-id")).unwrap();
    assert!(described(&resolve(), svma).is_empty());
}

#[test]
fn a_module_that_is_built_anew_is_read_anew() {
    let program = Program::cpp(&["-g", "-O1", "-Wl,--build-id=none"]);
    let options = SymbolOptions { cache_dir: Some(program.file("cache")), ..nothing_else() };
    let svma = program.address_of("plain");
    let resolve = || Symbolizer::new(options.clone()).resolve(&program.key(), &[svma]).unwrap();
    assert_eq!(described(&resolve(), svma), ["plain program.cc:19"]);
    let source = fs::read_to_string(program.file("program.cc")).unwrap();
    fs::write(program.file("program.cc"), format!("\n\n{source}")).unwrap();
    program.tool("g++", &["-g", "-O1", "-Wl,--build-id=none", "program.cc", "-o", "program"]);
    assert_eq!(program.address_of("plain"), svma);
    assert_eq!(described(&resolve(), svma), ["plain program.cc:21"]);
}

#[test]
fn a_cache_that_cannot_be_written_is_no_error() {
    let program = Program::cpp(&["-g", "-O1"]);
    let svma = program.address_of("plain");
    for directory in ["/proc/no/such", "/dev/null/no"] {
        let options = SymbolOptions { cache_dir: Some(directory.into()), ..nothing_else() };
        let table = Symbolizer::new(options).resolve(&program.key(), &[svma]).unwrap();
        assert_eq!(described(&table, svma), ["plain program.cc:19"]);
    }
}

#[test]
fn damaged_cache_files_are_read_as_none() {
    let program = Program::cpp(&["-g", "-O1"]);
    let svma = program.address_of("plain");
    let directory = program.file("cache");
    let options = SymbolOptions { cache_dir: Some(directory.clone()), ..nothing_else() };
    let resolve = || Symbolizer::new(options.clone()).resolve(&program.key(), &[svma]).unwrap();
    resolve();
    let file = cache_file(&directory);
    let good = fs::read(&file).unwrap();
    proptest!(ProptestConfig::with_cases(200), |(cut in 0..good.len(), at in 0..good.len(), bit in 0..8_u32)| {
        let mut bad = good.clone();
        bad[at] ^= 1 << bit;
        fs::write(&file, &bad).unwrap();
        prop_assert_eq!(described(&resolve(), svma), ["plain program.cc:19"]);
        fs::write(&file, &good[..cut]).unwrap();
        prop_assert_eq!(described(&resolve(), svma), ["plain program.cc:19"]);
    });
}
