//! Tests of the owners of frames.

use super::*;

fn frame<'a>(module: &'a str, symbol: &'a str, file: Option<&'a str>) -> FrameView<'a> {
    FrameView { module: Some(module), symbol: Some(symbol), file, line: None, is_inlined: false, offset: 1 }
}

fn own<'a>(program: &str, frames: &[FrameView<'a>]) -> Option<&'a str> {
    let code = OwnCode::of_programs(std::iter::once(program));
    code.place(frames).and_then(|place| frames[place].symbol)
}

#[test]
fn the_built_in_list_can_be_read() {
    OwnCode::default().add_library_lines("built in", LIBRARY_FRAMES).unwrap();
}

#[test]
fn code_without_a_name_is_told_by_a_near_caller_that_has_one() {
    let lib = "/usr/lib/libfoo.so";
    let nameless = FrameView { symbol: None, ..frame(lib, "", None) };
    let code = OwnCode::of_programs(std::iter::once("/usr/bin/app"));
    let far = [nameless, nameless, nameless, nameless, frame(lib, "foo_read", None)];
    assert_eq!(code.place(&far[2..]), Some(2));
    assert_eq!(code.place(&far), Some(0));
    let other = [nameless, frame("/usr/lib/libc.so.6", "qsort", None), frame("/opt/app", "main", None)];
    assert_eq!(code.place(&other[..2]), Some(0));
}

#[test]
fn innermost_frames_determine_the_own_one_only_where_the_whole_stack_has_the_same() {
    let code = OwnCode::of_programs(std::iter::once("/w/app"));
    let malloc = frame("/usr/lib/libc.so.6", "malloc", None);
    let own = frame("/w/app", "shop::remember", None);
    let nameless = FrameView { symbol: None, ..own };
    let frames = [malloc, own, own, own, own];
    assert_eq!(code.place_of_inner(&frames), Some(1));
    assert_eq!(code.place_of_inner(&frames[..4]), None, "a name may be further out");
    let stripped = [malloc, nameless, nameless, own, own, own, own];
    assert_eq!((code.place_of_inner(&stripped), code.place(&stripped)), (Some(3), Some(3)));
    let library = [frame("/usr/lib/libfoo.so", "foo_read", None); 8];
    assert_eq!(code.place_of_inner(&library), None, "the program may be further out");
}

#[test]
fn the_standard_library_is_passed_to_its_user() {
    let file = Some("/usr/include/c++/12/bits/stl_vector.h");
    let frames = [
        frame("/w/app", "operator new(unsigned long)", None),
        frame("/w/app", "std::_Vector_base<int, std::allocator<int> >::_M_allocate(unsigned long)", file),
        frame("/w/app", "void std::__invoke_impl<void, void (*)()>(std::__invoke_other, void (*&&)())", file),
        frame("/w/app", "shop::SessionCache::remember(std::string const&)", Some("/w/app.cc")),
        frame("/w/app", "main", Some("/w/app.cc")),
    ];
    assert_eq!(own("/w/app", &frames), frames[3].symbol);
}

#[test]
fn the_standard_library_of_rust_and_its_crates_are_passed_too() {
    let frames = [
        frame("/w/app", "<alloc::vec::Vec<T> as core::iter::FromIterator<T>>::from_iter", None),
        frame("/w/app", "serde_json::from_str", Some("/root/.cargo/registry/src/x/serde_json-1/src/de.rs")),
        frame("/w/app", "<app::Store as app::Keep>::keep", Some("src/main.rs")),
    ];
    assert_eq!(own("/w/app", &frames), frames[2].symbol);
}

#[test]
fn a_library_is_named_only_where_the_program_has_no_part() {
    let sqlite = frame("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", "sqlite3_prepare", None);
    let own_frame = frame("/w/app", "load_users", None);
    assert_eq!(own("/w/app", &[sqlite, own_frame]), Some("load_users"));
    assert_eq!(own("/w/app", &[sqlite]), Some("sqlite3_prepare"));
    // The code of the system's own programs lies mostly in its libraries.
    let driver = frame("/usr/bin/clang", "cc1_main", None);
    let ast = frame("/usr/lib/x86_64-linux-gnu/libclang-cpp.so.14", "clang::ASTContext::Allocate", None);
    assert_eq!(own("/usr/bin/clang", &[ast, driver]), ast.symbol);
}

#[test]
fn an_interpreter_is_no_program_of_its_own() {
    let inside = frame("/usr/bin/python3.11", "PyByteArray_Resize", None);
    assert_eq!(own("/usr/bin/python3.11", &[inside]), None);
    let function = FrameView {
        module: None,
        symbol: Some("remember"),
        file: Some("/w/app.py"),
        line: Some(3),
        is_inlined: false,
        offset: 7,
    };
    let library = FrameView { file: Some("/usr/lib/python3.11/json/decoder.py"), ..function };
    assert_eq!(own("/usr/bin/python3.11", &[inside, library, function]), Some("remember"));
    let code = OwnCode::of_programs(std::iter::once("/usr/bin/python3.11"));
    assert_eq!(code.place(&[inside, library, function]), Some(2));
}

#[test]
fn javascript_is_own_unless_it_is_nodes_or_a_packages() {
    let code = OwnCode::of_programs(std::iter::once("/usr/bin/node"));
    let owner = |symbol| code.owner(None, Some(symbol), None);
    assert_eq!(owner("JS:*remember /w/server.js:12:20"), Owner::Program);
    assert_eq!(owner("JS:^emit node:events:466:44"), Owner::Runtime);
    assert_eq!(owner("JS:*next /w/node_modules/express/lib/router.js:1:1"), Owner::Library);
    assert_eq!(owner("Builtin:InterpreterEntryTrampoline"), Owner::Runtime);
    let native = code.owner(Some("/usr/bin/node"), Some("v8::internal::Heap::AllocateRaw"), None);
    assert_eq!(native, Owner::Runtime);
}

#[test]
fn a_name_as_of_a_standard_library_is_own_where_its_source_is() {
    let code = OwnCode::of_programs(std::iter::once("/w/app"));
    let owner = |file| code.owner(Some("/w/app"), Some("core::Engine::load()"), file);
    assert_eq!(owner(Some("/w/src/engine.cc")), Owner::Program);
    assert_eq!(owner(Some("/rustc/90b35a/library/core/src/ops.rs")), Owner::Runtime);
    assert_eq!(owner(None), Owner::Runtime);
}

#[test]
fn what_the_user_calls_own_is_own() {
    let mut code = OwnCode::of_programs(std::iter::once("/w/app"));
    let frames = [frame("/w/app", "std::vector<int>::push_back(int&&)", None), frame("/w/app", "main", None)];
    assert_eq!(code.place(&frames), Some(1));
    code.add_own(FramePattern::parse("std::vector::push_back").unwrap());
    assert_eq!(code.place(&frames), Some(0));
    code.add_library_lines("mine", "source /w/lib/*\nmain\n").unwrap();
    assert_eq!(code.owner(Some("/w/app"), Some("f"), Some("/w/lib/f.c")), Owner::Runtime);
    assert_eq!(code.owner(Some("/w/app"), Some("main"), None), Owner::Runtime);
}

#[test]
fn who_only_allocates_for_others_is_passed() {
    let passed = |program: &str, module: &str, wrapper: &str, caller: &str| {
        let frames = [frame(module, wrapper, None), frame(module, caller, None)];
        assert_eq!(own(program, &frames), Some(caller), "{wrapper}");
    };
    let redis = "/usr/bin/redis-check-rdb";
    passed(redis, redis, "zmalloc_usable", "hashTypeSet");
    passed(redis, redis, "dictAddRaw", "dbAdd");
    passed(redis, redis, "_sdsMakeRoomFor", "readQueryFromClient");
    let clang = "/usr/lib/libclang-cpp.so.14";
    passed(
        "/usr/bin/clang",
        clang,
        "clang::Decl::operator new(unsigned long)",
        "clang::ParseAST(clang::Sema&)",
    );
    passed("/usr/bin/clang", clang, "llvm::SmallVectorBase<unsigned>::grow_pod(void*)", "clang::ParseAST()");
    passed("/usr/bin/clang", clang, "llvm::BumpPtrAllocatorImpl<llvm::MallocAllocator>::Allocate()", "f()");
    let cc1 = "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus";
    passed(cc1, cc1, "ggc_internal_alloc(unsigned long)", "cgraph_node::expand()");
    passed("/usr/bin/as", "/usr/bin/as", "_obstack_newchunk", "read_a_source_file");
    let sqlite = "/usr/lib/libsqlite3.so.0";
    passed("/usr/bin/sqlite3", sqlite, "sqlite3VdbeMemGrow", "sqlite3VdbeExec");
    passed("/usr/bin/git", "/usr/bin/git", "strbuf_grow", "read_object_file");
    // A program's own table does not belong to a library.
    let app = "/w/app";
    assert_eq!(own(app, &[frame(app, "dictAddRaw", None), frame(app, "main", None)]), Some("dictAddRaw"));
}

#[test]
fn an_extension_of_an_interpreter_is_no_program_either() {
    let python = "/opt/python/bin/python3.11";
    let json = frame("/opt/python/lib/python3.11/lib-dynload/_json.so", "scanstring", Some("/b/_json.c"));
    let numpy = frame("/w/venv/lib/python3.11/site-packages/numpy/core.so", "PyArray_New", None);
    let function = FrameView { module: Some("py"), ..frame("", "remember", Some("/w/app.py")) };
    assert_eq!(own(python, &[json, numpy, function]), Some("remember"));
    let mine = frame("/w/fast.so", "fast_table", Some("/w/fast.c"));
    assert_eq!(own(python, &[json, mine, function]), Some("fast_table"));
    let php = frame("/usr/bin/php8.2", "zend_execute", None);
    let load = FrameView { module: Some("php"), ..frame("", "load", Some("/w/a.php")) };
    assert_eq!(own("/usr/bin/php8.2", &[php, load]), Some("load"));
}

#[test]
fn modules_of_debians_packages_are_no_part_of_the_interpreter() {
    let owner = |program: &str, module: &str| {
        OwnCode::of_programs(std::iter::once(program)).owner(Some(module), Some("f"), None)
    };
    let perl = |module: &str| owner("/usr/bin/perl", &format!("/usr/lib/x86_64-linux-gnu/{module}"));
    assert_eq!(perl("perl5/5.36/auto/JSON/XS/XS.so"), Owner::Library);
    assert_eq!(perl("perl/5.36/auto/List/Util/Util.so"), Owner::Runtime);
    assert_eq!(perl("perl-base/auto/List/Util/Util.so"), Owner::Runtime);
    assert_eq!(perl("libperl.so.5.36"), Owner::Runtime);
    let ruby = |module: &str| owner("/usr/bin/ruby3.1", &format!("/usr/lib/x86_64-linux-gnu/{module}"));
    assert_eq!(ruby("ruby/vendor_ruby/3.1.0/nokogiri/nokogiri.so"), Owner::Library);
    assert_eq!(ruby("ruby/3.1.0/stringio.so"), Owner::Runtime);
    assert_eq!(ruby("libruby-3.1.so.3.1"), Owner::Runtime);
    let php = |module: &str| owner("/usr/bin/php8.2", module);
    assert_eq!(php("/usr/lib/php/20220829/msgpack.so"), Owner::Library);
    assert_eq!(php("/usr/lib/php/20220829/dom.so"), Owner::Runtime);
    assert_eq!(php("/usr/lib/php/20220829/pdo_mysql.so"), Owner::Runtime);
    assert_eq!(php("/opt/php/lib/php/extensions/no-debug-non-zts-20220829/redis.so"), Owner::Library);
}

#[test]
fn packages_are_named_only_where_the_program_has_no_part() {
    let python = "/opt/python/bin/python3.11";
    let packages = "/w/venv/lib/python3.11/site-packages";
    let etree = format!("{packages}/lxml/etree.so");
    let fetch = format!("{packages}/urllib3/pool.py");
    let inner = frame(&etree, "xmlDictLookup", None);
    let library = FrameView { module: Some("py"), ..frame("", "Pool.urlopen", Some(&fetch)) };
    let standard =
        FrameView { module: Some("py"), ..frame("", "Pool.map", Some("/opt/python/lib/python3.11/pool.py")) };
    let user = FrameView { module: Some("py"), ..frame("", "parse", Some("/w/app.py")) };
    assert_eq!(own(python, &[inner, library, standard, user]), Some("parse"));
    assert_eq!(own(python, &[inner, library, standard]), Some("xmlDictLookup"));
    assert_eq!(own(python, &[standard]), None);
    let deflate =
        FrameView { module: Some("java"), ..frame("", "java.util.zip.Deflater.init", Some("Deflater.java")) };
    let compress = FrameView { module: Some("java"), ..frame("", "Main.compressMessage", Some("prog.java")) };
    assert_eq!(own("/usr/lib/jvm/java-17/bin/java", &[deflate, compress]), compress.symbol);
    // An addon of Node belongs to its package, and not to the program.
    let addon = frame("/w/node_modules/@napi-rs/canvas/skia.node", "decode", None);
    let decode = FrameView { module: Some("js"), ..frame("", "decodeImage", Some("/w/prog.js")) };
    assert_eq!(own("/usr/bin/node", &[addon, decode]), decode.symbol);
}

#[test]
fn who_loads_code_is_known_in_languages_and_in_the_code_of_v8() {
    let code = OwnCode::default();
    assert!(code.is_loader(Some("py"), Some("_find_and_load"), Some("<frozen importlib._bootstrap>")));
    assert!(code.is_loader(None, Some("JS:~Module._load node:internal/modules/cjs/loader:1:2"), None));
    assert!(!code.is_loader(Some("/w/app"), Some("_find_and_load"), Some("<frozen importlib._bootstrap>")));
    assert!(!code.is_loader(None, Some("JS:~load /w/internal/modules/a.js:1:2"), None));
}
