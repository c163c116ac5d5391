//! Small programs, built by the machine's compilers in temporary folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use heapr_symbols::{DebugServers, ModuleKey, SymbolOptions, SymbolTable, Symbolizer, Unresolved};
use object::{Object, ObjectSymbol, SymbolKind};
use tempfile::TempDir;

/// C++ with inlined functions, templates, a namespace and an overloaded operator.
pub(crate) const CPP: &str = r#"
#include <cstdlib>
#include <vector>
namespace shapes {
struct Box { int width; Box operator+(const Box& other) const; };
__attribute__((noinline)) Box Box::operator+(const Box& other) const { return Box{width + other.width * std::rand()}; }
inline __attribute__((always_inline)) int twice(int value) {
    return value * 2 + std::rand();
}
inline __attribute__((always_inline)) int four_times(int value) {
    return twice(value) + twice(value + 1);
}
template <typename T> __attribute__((noinline)) T sum(const std::vector<T>& values) {
    T total = 0;
    for (T value : values) total += four_times(value);
    return total;
}
}
extern "C" __attribute__((noinline)) int plain(int value) { return std::rand() + value; }
int main(int count, char**) {
    std::vector<int> values(count, 3);
    shapes::Box box = shapes::Box{count} + shapes::Box{2};
    return shapes::sum(values) + plain(box.width);
}
"#;

/// Rust with generics, closures and inlined functions.
pub(crate) const RUST: &str = r#"
use std::collections::HashMap;
trait Shape { fn area(&self) -> u64; }
struct Square(u64);
impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 { self.0 * twice(self.0) }
}
#[inline(always)]
fn twice(value: u64) -> u64 { std::hint::black_box(value) * 2 }
#[inline(never)]
fn largest<T: Ord + Copy>(values: &[T]) -> Option<T> { values.iter().copied().max() }
fn main() {
    let mut areas = HashMap::new();
    for side in 0..std::env::args().count() as u64 { areas.insert(side, Square(side).area()); }
    let values: Vec<u64> = areas.values().map(|area| area + 1).collect();
    println!("{:?}", largest(&values));
}
"#;

/// A program on disk.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Program {
    /// Builds C++.
    pub(crate) fn cpp(flags: &[&str]) -> Self {
        Self::build("g++", "program.cc", CPP, flags)
    }

    /// Builds Rust.
    pub(crate) fn rust(flags: &[&str]) -> Self {
        Self::build("rustc", "program.rs", RUST, &[&["--edition=2021", "-g"], flags].concat())
    }

    /// Builds `source`, stored under `name`.
    pub(crate) fn build(compiler: &str, name: &str, source: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), source).unwrap();
        let path = folder.path().join("program");
        let mut command = Command::new(compiler);
        command.current_dir(folder.path()).args(flags).arg(name).arg("-o").arg(&path);
        must(&mut command);
        Self { folder, path }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a tool in the program's folder.
    pub(crate) fn tool(&self, program: &str, arguments: &[&str]) {
        must(Command::new(program).current_dir(self.folder.path()).args(arguments));
    }

    /// The module as a trace names it.
    pub(crate) fn key(&self) -> ModuleKey {
        ModuleKey { path: self.path.clone(), build_id: build_id(&self.path) }
    }

    /// (start, size) of each function that has a size.
    pub(crate) fn functions(&self) -> Vec<(u64, u64)> {
        let bytes = fs::read(&self.path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let functions =
            file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
        functions.map(|symbol| (symbol.address(), symbol.size())).collect()
    }

    /// Address of a function by its name in the symbol table.
    pub(crate) fn address_of(&self, name: &str) -> u64 {
        let bytes = fs::read(&self.path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address()
    }
}

/// Build-id of a file.
pub(crate) fn build_id(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    object::File::parse(&*bytes).unwrap().build_id().unwrap().unwrap_or_default().to_vec()
}

/// Hexadecimal digits, as in file names.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Path of a build-id's debug file in a `.build-id` directory.
pub(crate) fn by_build_id(root: &Path, build_id: &[u8]) -> PathBuf {
    let text = hex(build_id);
    root.join(".build-id").join(&text[..2]).join(format!("{}.debug", &text[2..]))
}

/// Copies a file, and creates the folders above it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
}

/// Options without cache, servers and other directories.
pub(crate) fn nothing_else() -> SymbolOptions {
    SymbolOptions {
        symbol_paths: Vec::new(),
        sysroot: None,
        debug_servers: DebugServers::Unused,
        cache_dir: None,
        files: Default::default(),
    }
}

/// Resolves with `options`.
pub(crate) fn resolve(
    key: &ModuleKey,
    svmas: &[u64],
    options: SymbolOptions,
) -> Result<SymbolTable, Unresolved> {
    Symbolizer::new(options).resolve(key, svmas)
}

/// Frames at an address as `symbol file-name:line`, inlined ones marked.
pub(crate) fn described(table: &SymbolTable, svma: u64) -> Vec<String> {
    let frames = table.frames(svma).unwrap();
    let describe = |frame| {
        let symbol = table.symbol(frame).unwrap_or("?");
        let file = table.file(frame).map(|file| file.rsplit('/').next().unwrap().to_owned());
        let place = file.map(|file| format!(" {file}:{}", frame.line())).unwrap_or_default();
        format!("{symbol}{place}{}", if frame.is_inlined() { " inlined" } else { "" })
    };
    frames.iter().map(describe).collect()
}

/// Runs a command that has to succeed.
pub(crate) fn must(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
