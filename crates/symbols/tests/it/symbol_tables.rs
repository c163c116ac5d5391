//! Names without debug information: from the symbol table, and the dynamic one.

use heapr_symbols::ModuleKey;

use crate::built_program::{Program, build_id, described, nothing_else, resolve};

#[test]
fn without_debug_information_the_symbol_table_names_functions() {
    let program = Program::cpp(&["-O1"]);
    let svma = program.address_of("plain");
    let operator = program.address_of("_ZNK6shapes3BoxplERKS0_");
    let table = resolve(&program.key(), &[svma, svma + 1, operator], nothing_else()).unwrap();
    assert_eq!(described(&table, svma), ["plain"]);
    assert_eq!(described(&table, svma + 1), ["plain"]);
    assert_eq!(described(&table, operator), ["shapes::Box::operator+(shapes::Box const&) const"]);
    assert_eq!(table.frames(svma + 2), None, "it was not asked for");
}

#[test]
fn a_stripped_library_is_named_by_its_dynamic_symbols() {
    let library = Program::cpp(&["-O1", "-shared", "-fPIC"]);
    let svma = library.address_of("plain");
    library.tool("strip", &["program"]);
    let table = resolve(&library.key(), &[svma], nothing_else()).unwrap();
    assert_eq!(described(&table, svma), ["plain"]);
}

/// Functions in assembly without a size, before one that is exported by no name.
const UNSIZED: &str = r#"
#include <cstdlib>
asm(".pushsection .text\n.globl unsized_one\n.type unsized_one, @function\nunsized_one:\n.skip 32, 0x90\n.popsection");
extern "C" __attribute__((visibility("hidden"), noinline)) int hidden_one(int value) { return std::rand() + value; }
extern "C" int plain(int value) { return hidden_one(value) * 3; }
"#;

#[test]
fn a_name_without_a_size_covers_no_code_that_it_is_not_proven_for() {
    use object::{Object, ObjectSection};
    let library = Program::build("g++", "program.cc", UNSIZED, &["-O1", "-shared", "-fPIC"]);
    let [begin, hidden] = ["unsized_one", "hidden_one"].map(|name| library.address_of(name));
    let bytes = std::fs::read(&library.path).unwrap();
    let stubs = object::File::parse(&*bytes).unwrap().section_by_name(".plt").unwrap().address();
    let svmas = [begin, begin + 8, hidden + 4, stubs + 4];
    let names = || {
        let table = resolve(&library.key(), &svmas, nothing_else()).unwrap();
        svmas.map(|svma| described(&table, svma).first().cloned().unwrap_or_default())
    };
    // (`_init`, which has no size either, is in the section before the stubs.)
    assert_eq!(names(), ["unsized_one", "unsized_one", "hidden_one", ""]);
    library.tool("strip", &["program"]);
    assert_eq!(names(), ["unsized_one", "", "", ""]);
}

#[test]
fn the_file_of_a_cpp_library_on_this_machine_is_named() {
    // malloc of the C library has the same name, stripped or with Debian's debug package.
    let path = std::fs::read_to_string("/proc/self/maps")
        .unwrap()
        .lines()
        .find_map(|line| line.split_whitespace().nth(5).filter(|path| path.ends_with("/libc.so.6")))
        .unwrap()
        .to_owned();
    let bytes = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let mut svmas = Vec::new();
    let expected = ["malloc", "strdup", "fopen", "puts", "getline", "asprintf", "qsort", "realloc", "calloc"];
    for name in expected {
        use object::{Object, ObjectSymbol};
        let symbol = file
            .dynamic_symbols()
            .filter(|symbol| symbol.name() == Ok(name) && symbol.size() > 0)
            .max_by_key(ObjectSymbol::address);
        svmas.push(symbol.unwrap().address());
    }
    let key = ModuleKey { build_id: build_id(path.as_ref()), path: path.into() };
    let table = resolve(&key, &svmas, nothing_else()).unwrap();
    for (name, svma) in expected.iter().zip(svmas) {
        let frames = table.frames(svma).unwrap();
        assert_eq!(frames.last().and_then(|frame| table.symbol(frame)), Some(*name));
    }
}

#[test]
fn what_is_packed_into_a_stripped_program_names_its_functions() {
    let program = Program::cpp(&["-O2"]);
    let functions = program.functions();
    let svmas: Vec<u64> = functions.iter().map(|&(start, _)| start).collect();
    let whole = resolve(&program.key(), &svmas, nothing_else()).unwrap();
    program.tool("objcopy", &["--only-keep-debug", "program", "mini"]);
    program.tool("xz", &["mini"]);
    program.tool("strip", &["--strip-all", "program"]);
    let stripped = resolve(&program.key(), &svmas, nothing_else()).unwrap();
    assert!(stripped.named_count() < whole.named_count());
    program.tool("objcopy", &["--add-section", ".gnu_debugdata=mini.xz", "program"]);
    let mini = resolve(&program.key(), &svmas, nothing_else()).unwrap();
    assert_eq!(mini.named_count(), whole.named_count());
}
