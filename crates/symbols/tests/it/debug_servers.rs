//! debuginfod: used only if enabled, through its own client or curl; an answer with another build
//! is rejected.

use std::fs;
use std::process::Command;

use crate::built_program::{build_id, hex, must};

/// Environment variable that marks the child process in which each test runs, because the client's
/// settings are environment variables.
const INNER: &str = "HEAPR_TEST_DEBUG_SERVER";

#[test]
fn a_debug_file_comes_from_a_server() {
    use crate::built_program::{Program, described, nothing_else, resolve};
    use heapr_symbols::{DebugServers, ModuleKey, SymbolOptions};

    if let Some(path) = std::env::var_os(INNER) {
        let svma: u64 = std::env::var("HEAPR_TEST_SVMA").unwrap().parse().unwrap();
        let key = ModuleKey { build_id: build_id(path.as_ref()), path: path.into() };
        let mut names = Vec::new();
        for debug_servers in [DebugServers::Unused, DebugServers::Asked] {
            let options = SymbolOptions { debug_servers, ..nothing_else() };
            names.push(described(&resolve(&key, &[svma], options).unwrap(), svma));
        }
        assert_eq!(names[0], [""; 0], "a server that nobody named is not asked");
        let expected = std::env::var("HEAPR_TEST_EXPECTED").unwrap();
        assert_eq!(names[1].join(" "), expected);
        return;
    }
    let program = Program::cpp(&["-g", "-O1", "-Wl,--build-id"]);
    let svma = program.address_of("plain");
    program.tool("objcopy", &["--only-keep-debug", "program", "program.debug"]);
    program.tool("strip", &["program"]);
    let served = program.file("served/buildid").join(hex(&build_id(&program.path)));
    fs::create_dir_all(&served).unwrap();
    // Case without the client.
    let only_curl = program.file("only-curl");
    fs::create_dir(&only_curl).unwrap();
    std::os::unix::fs::symlink("/usr/bin/curl", only_curl.join("curl")).unwrap();
    let ask_by = |path: Option<&std::path::Path>, cache: &str, expected: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "debug_servers::a_debug_file_comes_from_a_server", "--nocapture"]);
        command.env(INNER, &program.path).env("HEAPR_TEST_SVMA", svma.to_string());
        command.env("HEAPR_TEST_EXPECTED", expected);
        command.env("DEBUGINFOD_URLS", format!("file://{}", program.file("served").display()));
        command.env("DEBUGINFOD_CACHE_PATH", program.file(cache));
        if let Some(path) = path {
            command.env("PATH", path);
        }
        must(&mut command);
    };
    let ask = |cache: &str, expected: &str| {
        ask_by(None, cache, expected);
        ask_by(Some(&only_curl), &format!("{cache}-of-curl"), expected);
    };
    fs::copy(program.file("program.debug"), served.join("debuginfo")).unwrap();
    ask("cache-1", "plain program.cc:19");
    let other = Program::cpp(&["-g", "-O0", "-Wl,--build-id"]);
    fs::copy(&other.path, served.join("debuginfo")).unwrap();
    ask("cache-2", "");
    fs::remove_file(served.join("debuginfo")).unwrap();
    ask("cache-3", "");
    // Downloaded files serve both clients without another request.
    ask_by(Some(&only_curl), "cache-1", "plain program.cc:19");
    ask_by(None, "cache-1-of-curl", "plain program.cc:19");
}
