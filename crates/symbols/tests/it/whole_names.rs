//! Functions without a linkage name from g++: their scope is in the debug information, and in the
//! symbol table.

use std::collections::BTreeSet;

use crate::built_program::{Program, nothing_else, resolve};

/// Each function calls `taken` with a number of its own.
const SOURCE: &str = r#"
#include <string>
#define NOINLINE __attribute__((noinline))
extern "C" NOINLINE int taken(int value) { asm volatile("" : "+r"(value)); return value; }
namespace net { namespace { struct Session { int held = 1; NOINLINE int open() const { return taken(held) + 1; } }; }
NOINLINE int go() { Session session; return session.open() + 1; } }
namespace db { namespace { struct Session { int held = 2; NOINLINE int open() { return taken(held) + 1; } }; }
NOINLINE int go() { Session session; return session.open() + 1; } }
static NOINLINE int same(int value) { return taken(value) + 1; }
static NOINLINE int same(const std::string& value, unsigned long* other) { return taken(value.size() + *other) + 1; }
namespace { inline __attribute__((always_inline)) int inlined(char** words, long count) { return taken(count + **words) + 1; } }
int main(int count, char** words) {
    struct Local { int held; NOINLINE int read() { return taken(held) + 1; } } local{count};
    auto one = [&](int value) NOINLINE { return taken(value) + count; };
    auto two = [&](int value) NOINLINE { return taken(value) * count; };
    unsigned long other = 3;
    return net::go() + db::go() + same(count) + same(std::string(words[0]), &other) + local.read() + one(1) + two(2)
        + inlined(words, count);
}
"#;

fn names(program: &Program) -> BTreeSet<String> {
    let svmas: Vec<u64> = program.functions().iter().flat_map(|&(start, size)| start..start + size).collect();
    let table = resolve(&program.key(), &svmas, nothing_else()).unwrap();
    let frames = svmas.iter().flat_map(|&svma| table.frames(svma).unwrap_or_default());
    frames.filter_map(|frame| table.symbol(frame).map(str::to_owned)).collect()
}

#[test]
fn functions_without_a_linkage_name_are_told_apart_by_their_scope() {
    let expected = [
        "net::(anonymous namespace)::Session::open() const",
        "db::(anonymous namespace)::Session::open()",
        "same(int)",
        "same(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&, unsigned long*)",
        "(anonymous namespace)::inlined(char**, long)",
        "main::Local::read()",
        "main::{lambda(int)#1}::operator()(int) const",
        "main::{lambda(int)#2}::operator()(int) const",
        "main",
        "taken",
    ];
    let program = Program::build("g++", "program.cc", SOURCE, &["-g", "-O1"]);
    let by_both = names(&program);
    // The debug information alone gives the same names, as for functions that are inlined
    // everywhere.
    let lines = svmas_without_symbols(program);
    for name in expected {
        assert!(by_both.contains(name), "{name}: {by_both:#?}");
        assert!(lines.contains(name), "{name}: {lines:#?}");
    }
    for bare in ["open", "same", "read", "operator()"] {
        assert!(!by_both.contains(bare) && !lines.contains(bare), "{bare}");
    }
}

fn svmas_without_symbols(program: Program) -> BTreeSet<String> {
    let svmas: Vec<u64> = program.functions().iter().flat_map(|&(start, size)| start..start + size).collect();
    program.tool("strip", &["--strip-unneeded", "--keep-section=.debug*", "-K", "nothing", "program"]);
    let table = resolve(&program.key(), &svmas, nothing_else()).unwrap();
    let frames = svmas.iter().flat_map(|&svma| table.frames(svma).unwrap_or_default());
    frames.filter_map(|frame| table.symbol(frame).map(str::to_owned)).collect()
}
