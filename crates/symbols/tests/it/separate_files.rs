//! Separate debug files: each location in which they are found, and files that must be rejected.

use std::fs;
use std::path::PathBuf;

use heapr_symbols::{ModuleKey, SymbolOptions, Unresolved};

use crate::built_program::{Program, build_id, by_build_id, copy, described, nothing_else, resolve};

/// A program whose debug information is in `program.debug`, and the address of `plain`.
fn split(has_link: bool) -> (Program, u64) {
    let program = Program::cpp(&["-g", "-O1", "-Wl,--build-id"]);
    let svma = program.address_of("plain");
    program.tool("objcopy", &["--only-keep-debug", "program", "program.debug"]);
    program.tool("strip", &["program"]);
    if has_link {
        program.tool("objcopy", &["--add-gnu-debuglink=program.debug", "program"]);
    }
    (program, svma)
}

fn names(key: &ModuleKey, svma: u64, options: SymbolOptions) -> Vec<String> {
    described(&resolve(key, &[svma], options).unwrap(), svma)
}

const FOUND: [&str; 1] = ["plain program.cc:19"];

#[test]
fn a_stripped_module_without_a_debug_file_has_no_names() {
    let (program, svma) = split(false);
    assert_eq!(names(&program.key(), svma, nothing_else()), [""; 0]);
}

#[test]
fn a_debug_link_is_found_beside_the_module_and_in_its_debug_folder() {
    let (program, svma) = split(true);
    assert_eq!(names(&program.key(), svma, nothing_else()), FOUND);
    copy(&program.file("program.debug"), &program.file(".debug/program.debug"));
    fs::remove_file(program.file("program.debug")).unwrap();
    assert_eq!(names(&program.key(), svma, nothing_else()), FOUND);
}

#[test]
fn a_debug_link_is_found_in_the_tree_of_debug_files_below_the_sysroot() {
    let (program, svma) = split(true);
    let sysroot = tempfile::tempdir().unwrap();
    let below = |path: PathBuf| path.strip_prefix("/").unwrap().to_owned();
    copy(&program.path, &sysroot.path().join(below(program.path.clone())));
    let debug = sysroot.path().join("usr/lib/debug").join(below(program.file("program.debug")));
    copy(&program.file("program.debug"), &debug);
    let key = program.key();
    drop(program);
    let options = SymbolOptions { sysroot: Some(sysroot.path().to_owned()), ..nothing_else() };
    assert_eq!(names(&key, svma, options), FOUND);
}

#[test]
fn a_debug_link_with_another_checksum_is_not_believed() {
    let (program, svma) = split(true);
    // Another build of the same source, so that all but the contents matches.
    let other = Program::cpp(&["-g", "-O0", "-Wl,--build-id"]);
    other.tool("objcopy", &["--only-keep-debug", "program", "program.debug"]);
    fs::copy(other.file("program.debug"), program.file("program.debug")).unwrap();
    assert_eq!(names(&program.key(), svma, nothing_else()), [""; 0]);
}

#[test]
fn a_debug_file_is_found_by_its_build_id_below_a_symbol_path() {
    let (program, svma) = split(false);
    let symbols = tempfile::tempdir().unwrap();
    copy(&program.file("program.debug"), &by_build_id(symbols.path(), &build_id(&program.path)));
    let options = SymbolOptions { symbol_paths: vec![symbols.path().to_owned()], ..nothing_else() };
    assert_eq!(names(&program.key(), svma, options.clone()), FOUND);
    // The module itself may be missing.
    let key = program.key();
    fs::remove_file(&program.path).unwrap();
    assert_eq!(names(&key, svma, options), FOUND);
}

#[test]
fn an_unstripped_copy_in_a_symbol_path_goes_before_the_stripped_module() {
    let unstripped = Program::cpp(&["-g", "-O1", "-Wl,--build-id"]);
    let svma = unstripped.address_of("plain");
    let installed = tempfile::tempdir().unwrap();
    let path = installed.path().join("program");
    fs::copy(&unstripped.path, &path).unwrap();
    unstripped.tool("strip", &[path.to_str().unwrap()]);
    let key = ModuleKey { build_id: build_id(&path), path };
    let options = SymbolOptions { symbol_paths: vec![unstripped.folder.path().to_owned()], ..nothing_else() };
    assert_eq!(names(&key, svma, options), FOUND);
}

#[test]
fn another_build_at_the_recorded_path_is_refused() {
    let program = Program::cpp(&["-g", "-O1", "-Wl,--build-id"]);
    let svma = program.address_of("plain");
    let key = ModuleKey { build_id: vec![7; 20], ..program.key() };
    assert_eq!(resolve(&key, &[svma], nothing_else()).unwrap_err(), Unresolved::BuildIdMismatch);
    let without_id = Program::cpp(&["-g", "-O1", "-Wl,--build-id=none"]);
    let key = ModuleKey { build_id: vec![7; 20], path: without_id.path.clone() };
    assert_eq!(resolve(&key, &[svma], nothing_else()).unwrap_err(), Unresolved::BuildIdMismatch);
}

#[test]
fn a_module_that_is_gone_says_so() {
    let key = ModuleKey { path: "/nowhere/libgone.so".into(), build_id: vec![1, 2, 3] };
    assert_eq!(resolve(&key, &[1], nothing_else()).unwrap_err(), Unresolved::NoFile);
}

#[test]
fn a_module_without_a_build_id_is_named_by_its_path() {
    let program = Program::cpp(&["-g", "-O1", "-Wl,--build-id=none"]);
    let svma = program.address_of("plain");
    assert!(program.key().build_id.is_empty());
    assert_eq!(names(&program.key(), svma, nothing_else()), FOUND);
}
