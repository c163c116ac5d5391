//! Frames of Ruby, PHP, Perl and Lua in stacks: the programs print the function and line of each of
//! their blocks. `HEAPR_RUBIES`, `HEAPR_PHPS`, `HEAPR_PERLS` and `HEAPR_LUAS` name other
//! interpreters than the installed ones.

use std::path::Path;

use crate::recording::{Settings, assert_verified, record};
use crate::telling_programs::Telling;
use crate::victim_build::sources;

const RUBY: Telling = Telling {
    variable: "HEAPR_RUBIES",
    usual: "/usr/bin/ruby",
    program: "ruby/lines.rb",
    module: "rb",
    required: "rb!",
    environment: &[],
    verify_every: 10,
    sizes: 14,
    is_library: |_| false,
};
const PHP: Telling = Telling {
    variable: "HEAPR_PHPS",
    usual: "/usr/bin/php",
    program: "php/lines.php",
    module: "php",
    required: "php!",
    environment: &[("USE_ZEND_ALLOC", "0")],
    verify_every: 10,
    sizes: 12,
    is_library: |_| false,
};
const PERL: Telling = Telling {
    variable: "HEAPR_PERLS",
    usual: "/usr/bin/perl",
    program: "perl/lines.pl",
    module: "pl",
    required: "pl!",
    environment: &[],
    verify_every: 10,
    sizes: 10,
    is_library: |_| false,
};
const LUA: Telling = Telling {
    variable: "HEAPR_LUAS",
    usual: "/usr/bin/lua5.1:/usr/bin/lua5.3:/usr/bin/lua5.4:/usr/bin/luajit",
    program: "lua/lines.lua",
    module: "lua",
    required: "lua!",
    environment: &[],
    verify_every: 10,
    sizes: 18,
    is_library: |_| false,
};

#[test]
fn each_block_of_a_ruby_program_has_its_method_and_line() {
    for ruby in RUBY.interpreters() {
        RUBY.check_from_start(&ruby, 50);
        RUBY.check_attached(&ruby);
    }
}

#[test]
fn each_block_of_a_php_program_has_its_function_and_line() {
    for php in PHP.interpreters() {
        PHP.check_from_start(&php, 50);
        PHP.check_attached(&php);
    }
}

#[test]
fn each_block_of_a_perl_program_has_its_subroutine_and_line() {
    for perl in PERL.interpreters() {
        PERL.check_from_start(&perl, 50);
        PERL.check_attached(&perl);
    }
}

#[test]
fn each_block_of_a_lua_program_has_its_function_and_line() {
    let luas = LUA.interpreters();
    for lua in &luas {
        LUA.check_from_start(lua, 50);
    }
    // Attaching does not depend on the version.
    for lua in luas.iter().filter(|lua| lua.ends_with("lua5.4") || lua.ends_with("luajit")) {
        LUA.check_attached(lua);
    }
}

/// System calls of the agent, which the programs themselves rarely use.
const CALLS: &str = "trace=openat,ioctl,close,pread64,process_vm_readv,msync,getpid,rt_sigprocmask";
/// Number of pairs of runs of which one must keep the bound. Calls of equal work depend on the
/// layout of memory: twelve runs of Ruby made 17,234 to 20,195.
const PAIRS: usize = 3;

/// Returns the largest number of calls of a run with four times the events: a tenth more, for
/// memory that is new to it. A call at each event would make four times as many. Lua's threads are
/// searched again when the words that named them change. On some memory layouts that is once in a
/// thousand events, with thirty calls (1 in 26 was the most).
fn may_have(is_lua: bool, (calls, events): (usize, u64), more_events: u64) -> usize {
    let searches = if is_lua { more_events.saturating_sub(events) / 10 } else { 0 };
    calls + calls / 10 + 50 + searches as usize
}

/// Returns a program's system calls in a recording, and the recording's events.
fn calls_and_events(interpreter: &Path, program: &str, rounds: u32) -> (usize, u64) {
    let scratch = tempfile::tempdir().unwrap();
    let calls = scratch.path().join("calls");
    let program = sources().join(program);
    let words = ["strace", "-f", "-qq", "-e", CALLS, "-o"].map(str::to_owned).into_iter();
    let paths = [&calls, interpreter, &program].map(|path| path.display().to_string());
    let command: Vec<String> = words.chain(paths).chain([rounds.to_string()]).collect();
    let environment = [("USE_ZEND_ALLOC".to_owned(), "0".to_owned())];
    let recording = record(&command, &Settings { environment: &environment, ..Settings::default() });
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    let calls = std::fs::read_to_string(&calls).unwrap().lines().count();
    (calls, recording.json(&["info"])["event_count"].as_u64().unwrap())
}

#[test]
fn frames_cost_system_calls_for_new_memory_and_new_code_alone() {
    let programs = [
        (&RUBY, "loops/loop.rb"),
        (&PHP, "loops/loop.php"),
        (&PERL, "loops/loop.pl"),
        (&LUA, "loops/loop.lua"),
    ];
    for (language, program) in programs {
        for interpreter in language.interpreters() {
            let mut seen = Vec::new();
            let is_kept = (0..PAIRS).any(|_| {
                let [less, more] = [1000, 4000].map(|rounds| calls_and_events(&interpreter, program, rounds));
                // LuaJIT allocates its blocks elsewhere.
                let has_events = more.1 > less.1 + 40_000 || interpreter.ends_with("luajit");
                assert!(has_events, "{}: {less:?}, {more:?}", interpreter.display());
                seen.push((less, more));
                more.0 <= may_have(language.module == LUA.module, less, more.1)
            });
            assert!(is_kept, "{}: {seen:?}", interpreter.display());
        }
    }
}

#[test]
fn frames_that_come_and_go_are_those_of_whole_readings() {
    let programs = [
        (&RUBY, "loops/turns.rb"),
        (&PHP, "loops/turns.php"),
        (&PERL, "loops/turns.pl"),
        (&LUA, "loops/turns.lua"),
    ];
    let environment = [("USE_ZEND_ALLOC".to_owned(), "0".to_owned())];
    for (language, program) in programs {
        for interpreter in language.interpreters() {
            // A comparison reads everything anew, so that little is cached then. LuaJIT has few
            // stacks.
            let often = if interpreter.ends_with("luajit") { 0..1 } else { 0..3 };
            for verify_every in [1, 7, 53][often].iter().copied() {
                let paths = [&interpreter, &sources().join(program)].map(|path| path.display().to_string());
                let command = [paths.to_vec(), vec!["60".to_owned()]].concat();
                let settings = Settings { environment: &environment, verify_every, ..Settings::default() };
                let recording = record(&command, &settings);
                assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
                let info = recording.json(&["info"]);
                assert_verified(&info, verify_every, program);
            }
        }
    }
}
