//! Every byte of small programs is named as `llvm-symbolizer` names it: function, file, line, and
//! the inlined frames.

use std::io::Write;
use std::process::{Command, Stdio};

use heapr_symbols::SymbolTable;
use serde_json::Value;

use crate::built_program::{Program, nothing_else, resolve};

/// Function, file, line.
type Place = (String, String, u64);

fn ours(table: &SymbolTable, svma: u64) -> Vec<Place> {
    let place = |frame| {
        let symbol = table.symbol(frame).unwrap_or_default();
        let file = table.file(frame).unwrap_or_default();
        (comparable(symbol), file.to_owned(), u64::from(frame.line()))
    };
    table.frames(svma).unwrap().iter().map(place).collect()
}

fn llvm(program: &Program, svmas: &[u64]) -> Vec<Vec<Place>> {
    let mut child = Command::new("llvm-symbolizer")
        .args(["--output-style=JSON", "--inlining", "--demangle", "--functions=linkage", "--obj"])
        .arg(&program.path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let questions: String = svmas.iter().map(|svma| format!("{svma:#x}\n")).collect();
    let asking = std::thread::spawn(move || stdin.write_all(questions.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    asking.join().unwrap();
    let place = |symbol: &Value| {
        let text = |name: &str| symbol[name].as_str().unwrap_or_default().to_owned();
        let line = symbol["Line"].as_u64().unwrap_or(0);
        // Without debug information llvm names the object file of the symbol, which is not a source
        // file.
        let file = text("FileName");
        let file = if line == 0 && !file.contains('/') { String::new() } else { file };
        (comparable(&text("FunctionName")), file, line)
    };
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            answer["Symbol"].as_array().unwrap().iter().map(place).collect()
        })
        .collect()
}

/// Form in which two demanglers agree: without spaces, and without the hash of Rust's older names,
/// which only one prints. Names that llvm leaves escaped (`$LT$`) are not compared, and neither are
/// marks of the compiler's own copies (`.llvm.123`, `.cold`).
fn comparable(name: &str) -> String {
    let name = match name.find(".llvm.") {
        Some(place) => name.get(..place).unwrap_or(name).trim_end_matches(['(', ' ']),
        None => name,
    };
    let name = match name.rsplit_once("::h") {
        Some((before, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            before
        }
        _ => name,
    };
    name.split_whitespace().collect()
}

/// Compares every byte of the program's functions, and returns how many addresses had inlined
/// frames.
fn agrees(program: &Program) -> usize {
    let mut svmas: Vec<u64> =
        program.functions().iter().flat_map(|&(start, size)| start..start + size.min(4096)).collect();
    svmas.sort_unstable();
    svmas.dedup();
    // Standard libraries are linked into Rust programs: a sample of them is enough.
    let step = svmas.len().div_ceil(60_000);
    let svmas: Vec<u64> = svmas.into_iter().step_by(step).collect();
    let table = resolve(&program.key(), &svmas, nothing_else()).unwrap();
    let expected = llvm(program, &svmas);
    assert_eq!(expected.len(), svmas.len());
    let mut inlined = 0;
    for (&svma, expected) in svmas.iter().zip(&expected) {
        let mut found = ours(&table, svma);
        let mut expected = expected.clone();
        inlined += usize::from(found.len() > 1);
        for (found, expected) in found.iter_mut().zip(&mut expected) {
            // Equal functions of the standard library (some without debug information) are merged
            // and have several names, all of them right.
            let is_library = expected.1.starts_with("/rustc/") || expected.1.is_empty();
            if is_library || expected.0.contains('$') {
                expected.0.clear();
                found.0.clear();
            }
        }
        assert_eq!(found, expected, "at {svma:#x}");
    }
    inlined
}

#[test]
fn cpp_is_named_as_llvm_names_it() {
    for flags in [&["-g", "-O2"][..], &["-g", "-O0"], &["-gdwarf-4", "-O2"], &["-g", "-O2", "-gz=zlib"]] {
        let inlined = agrees(&Program::cpp(flags));
        assert!(inlined > 50 || flags.contains(&"-O0"), "{flags:?}: {inlined}");
    }
}

#[test]
fn rust_is_named_as_llvm_names_it() {
    // By default the program has the older mangling; the standard library may have the newer.
    for flags in [&["-O"][..], &["-O", "-Csymbol-mangling-version=v0"]] {
        let inlined = agrees(&Program::rust(flags));
        assert!(inlined > 50, "{flags:?}: {inlined}");
    }
}

#[test]
fn split_debug_information_is_found_beside_the_program_and_in_a_package() {
    let program = Program::cpp(&["-g", "-O2", "-gsplit-dwarf"]);
    assert!(agrees(&program) > 50);
    program.tool("llvm-dwp", &["-e", "program", "-o", "program.dwp"]);
    for entry in std::fs::read_dir(program.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "dwo") {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert!(agrees(&program) > 50);
}

/// A temporary in an expression, and a destructor that allocates at the closing brace.
const BRACES: &str = r#"
#include <cstdlib>
struct Guard { ~Guard(); };
__attribute__((noinline)) Guard::~Guard() { std::free(std::malloc(7)); }
struct Part { std::string text; };
static Part *last;
void keep(int count) {
    Part *part = new Part{std::string(count, 'x')};
    last = part;
}
void guard() {
    Guard guarded;
    last = nullptr;
}
int main(int count, char **) { keep(count); guard(); }
"#;

#[test]
fn a_call_of_a_temporary_at_the_closing_brace_is_told_with_its_statement() {
    let source = BRACES.replace("<cstdlib>", "<cstdlib>\n#include <string>");
    let line_of = |text: &str| 1 + source.lines().position(|line| line.contains(text)).unwrap() as u64;
    let program = Program::build("g++", "braces.cc", &source, &["-g", "-O1", "-fno-inline"]);
    let mut svmas: Vec<u64> =
        program.functions().iter().flat_map(|&(start, size)| start..start + size).collect();
    svmas.sort_unstable();
    let table = resolve(&program.key(), &svmas, nothing_else()).unwrap();
    let expected = llvm(&program, &svmas);
    let mut moved = Vec::new();
    for (&svma, expected) in svmas.iter().zip(&expected) {
        let found = ours(&table, svma);
        if found[0].2 != expected[0].2 {
            moved.push((expected[0].2, found[0].2));
        }
    }
    // The compiler puts the string's call on the line of `}`.
    assert_eq!(moved, [(line_of("last = part;") + 1, line_of("new Part{"))]);
}
