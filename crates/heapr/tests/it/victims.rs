//! Every program of `victims/`, against its header.

use std::process::Command;
use std::time::Duration;

use heapr_testkit::run_within;

use crate::header::Header;
use crate::recording::{self, Settings};
use crate::victim_build::{are_only_built, build, is_emulated, sources};

/// Defines one test for each victim, and one that finds victims without a test.
macro_rules! victims {
    ($($name:ident: $file:literal),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                check($file);
            }
        )*

        #[test]
        fn every_victim_has_a_test() {
            let listed = [$($file),*];
            for entry in std::fs::read_dir(sources()).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let is_program = name.rsplit_once('.').is_some_and(|(stem, extension)| {
                    ["c", "cc", "rs", "go", "sh", "js"].contains(&extension) && !["plugin", "inner_plugin"].contains(&stem)
                });
                if !is_program {
                    continue;
                }
                assert!(listed.contains(&name.as_str()), "victims/{name} has no test");
                let text = std::fs::read_to_string(sources().join(&name)).unwrap();
                let words = |line: &str| line.trim_start_matches(['/', '#', '*', ' ']).to_owned();
                let is_expected = text.lines().any(|line| words(line).starts_with("expect"));
                assert!(is_expected, "victims/{name} expects nothing");
            }
        }
    };
}

victims! {
    address_space_full: "address_space_full.c",
    before_and_after_main: "before_and_after_main.cc",
    by_handle: "by_handle.c",
    cancelled: "cancelled.c",
    cgo: "cgo.go",
    changes_root: "changes_root.c",
    changes_user: "changes_user.c",
    cross_thread: "cross_thread.c",
    daemon: "daemon.c",
    debug_frame_only: "debug_frame_only.c",
    deep_stack: "deep_stack.c",
    descriptors_closed: "descriptors_closed.c",
    emptied_environment: "emptied_environment.c",
    ends_by_abort: "ends_by_abort.c",
    ends_by_exit: "ends_by_exit.c",
    ends_by_kill: "ends_by_kill.c",
    entry_points: "entry_points.c",
    entry_points_cpp: "entry_points_cpp.cc",
    errno_kept: "errno_kept.c",
    exceptions: "exceptions.cc",
    exchanged: "exchanged.c",
    exec_by_number: "exec_by_number.c",
    exec_chain: "exec_chain.c",
    exec_storm: "exec_storm.c",
    exec_lists: "exec_lists.c",
    failing_calls: "failing_calls.c",
    float_state: "float_state.c",
    first_thread_ends: "first_thread_ends.c",
    forbids_time: "forbids_time.c",
    fibers: "fibers.c",
    fibers_moved: "fibers_moved.c",
    fork_children: "fork_children.c",
    fork_threads: "fork_threads.c",
    frame_pointer_reused: "frame_pointer_reused.c",
    take_turns: "take_turns.c",
    frame_shapes: "frame_shapes.c",
    frames_of_one_size: "frames_of_one_size.c",
    grows: "grows.c",
    hands_over: "hands_over.c",
    huge_block: "huge_block.c",
    inner_allocator: "inner_allocator.c",
    inner_calls: "inner_calls.c",
    inner_in_library: "inner_in_library.c",
    jit: "jit.js",
    jemalloc_arenas: "jemalloc_arenas.c",
    libc_inside: "libc_inside.c",
    loaded_apart: "loaded_apart.c",
    long_jumps: "long_jumps.c",
    lookaside_pool: "lookaside_pool.c",
    frees_wrong: "frees_wrong.c",
    leaves_ten: "leaves_ten.c",
    mappings_reserved: "mappings_reserved.c",
    maps_itself: "maps_itself.c",
    million_stacks: "million_stacks.c",
    mimalloc_heaps: "mimalloc_heaps.c",
    musl_program: "musl_program.c",
    no_unwind_tables: "no_unwind_tables.c",
    on_jemalloc: "on_jemalloc.cc",
    on_mimalloc: "on_mimalloc.cc",
    on_tcmalloc: "on_tcmalloc.cc",
    own_heaps: "own_heaps.c",
    own_malloc: "own_malloc.c",
    own_operators: "own_operators.cc",
    peaks: "peaks.c",
    pipeline: "pipeline.sh",
    plugins_in_turn: "plugins_in_turn.c",
    plugins_reloaded: "plugins_reloaded.c",
    profiled: "profiled.c",
    raw_forks: "raw_forks.c",
    realloc_forms: "realloc_forms.c",
    realloc_race: "realloc_race.c",
    recorder_stopped: "recorder_stopped.c",
    registered_code: "registered_code.c",
    rust_own_allocator: "rust_own_allocator.rs",
    rust_program: "rust_program.rs",
    sandboxed: "sandboxed.c",
    sandboxed_children: "sandboxed_children.c",
    sandboxed_threads: "sandboxed_threads.c",
    sandboxed_tightly: "sandboxed_tightly.c",
    shared_memory_children: "shared_memory_children.c",
    signal_handler: "signal_handler.c",
    signal_in_hook: "signal_in_hook.c",
    signals_on_stack: "signals_on_stack.c",
    small_stacks: "small_stacks.c",
    spawned: "spawned.c",
    stack_changes: "stack_changes.c",
    stack_overflow: "stack_overflow.c",
    stack_use: "stack_use.c",
    static_program: "static_program.c",
    strict_seccomp: "strict_seccomp.c",
    switched_off: "switched_off.c",
    thread_ends: "thread_ends.c",
    thread_keys: "thread_keys.c",
    threads_at_exit: "threads_at_exit.c",
    threads_idle: "threads_idle.c",
    threads_thousands: "threads_thousands.c",
    vfork_allocates: "vfork_allocates.c",
    vfork_exec: "vfork_exec.c",
    very_deep_stack: "very_deep_stack.c",
}

/// The program's filter forbids the clock; it waits for buffers all the same, and loses no event.
#[test]
fn sandboxed_waits_for_buffers() {
    check_with_few_buffers("sandboxed.c");
}

/// All buffers belong to ended processes. New processes wait until the recorder has read these,
/// however long it is stopped.
#[test]
fn recorder_stopped_with_few_buffers() {
    check_with_few_buffers("recorder_stopped.c");
}

fn check_with_few_buffers(file: &str) {
    let header = Header::read(&sources().join(file));
    let program = build(file, &header, &["-O1".to_owned()]);
    let settings = Settings {
        options: &["--quiet", "--max-buffers", "16", "--buffer-size", "4"],
        limit: Duration::from_secs(header.seconds),
        ..Settings::default()
    };
    let recording = recording::record(&[program.to_str().unwrap().to_owned()], &settings);
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    let totals = &recording.json(&["report", "--totals"])["totals"];
    assert_eq!(totals["lost_events"].as_u64(), Some(0), "{totals}");
    recording.check(&header.expectations[0], false, "with few buffers");
}

/// Builds the victim, runs it without heapr and with it, and compares.
fn check(file: &str) {
    let header = Header::read(&sources().join(file));
    if let Some(missing) = header.needs.iter().find(|need| !is_there(need)) {
        heapr_testkit::not_run(format_args!("{file} needs {missing}"));
        return;
    }
    let mut levels = vec![vec!["-O1".to_owned()]];
    levels.extend(header.variants.iter().cloned());
    for level in &levels {
        let program = build(file, &header, level);
        if are_only_built() {
            continue;
        }
        check_program(&format!("{file} {}", level.join(" ")), &header, program.to_str().unwrap());
    }
}

pub(crate) fn is_there(need: &str) -> bool {
    let test =
        |script: &str| Command::new("sh").args(["-c", script]).output().is_ok_and(|out| out.status.success());
    match need {
        "root" => test("test $(id -u) = 0"),
        need if need.ends_with(".h") || need.ends_with(".so") => test(&format!(
            "echo 'int main(){{}}' | gcc -x c -include {need} - -o /dev/null || ldconfig -p | grep -q {need}"
        )),
        command => test(&format!("command -v {command}")),
    }
}

fn check_program(label: &str, header: &Header, program: &str) {
    let command: Vec<String> = if header.wrap.is_empty() {
        [&[program.to_owned()], &header.arguments[..]].concat()
    } else {
        header.wrap.iter().map(|word| word.replace("{}", program)).collect()
    };
    let limit = Duration::from_secs(header.seconds);
    let mut bare = Command::new(&command[0]);
    bare.args(&command[1..]).envs(header.environment.iter().cloned());
    let bare = run_within(&mut bare, limit);
    assert_eq!(bare.status, header.exit, "{label} without heapr: {}", bare.stderr);

    let settings = Settings {
        verify_every: header.verify,
        environment: &header.environment,
        limit,
        ..Settings::default()
    };
    let recording = recording::record(&command, &settings);
    assert_eq!(recording.outcome.status, bare.status, "{label}: {}", recording.outcome.stderr);
    assert_eq!(recording.outcome.stdout, bare.stdout, "{label}: the program's output changed");
    if let Some(word) = &header.untraced {
        let lines: Vec<_> =
            recording.outcome.stderr.lines().filter(|line| line.starts_with("heapr:")).collect();
        assert!(
            lines.len() == 1 && lines[0].contains(word.as_str()),
            "{label}: {}",
            recording.outcome.stderr
        );
        return;
    }
    assert_eq!(recording.outcome.stderr, bare.stderr, "{label}: the program's error output changed");
    let totals = &recording.json(&["report", "--totals"])["totals"];
    assert!(totals["alloc_count"].as_u64() > Some(0), "{label}: the hooks did not run: {totals}");
    assert_eq!(totals["lost_events"].as_u64(), Some(0), "{label}: {totals}");
    if let Some(claim) = &header.unmatched {
        claim.check(totals["unmatched_frees"].as_u64(), label, totals);
    }
    for expectation in &header.expectations {
        recording.check(expectation, header.is_by_frame, label);
    }
    let info = recording.json(&["info"]);
    if let Some(claim) = &header.processes {
        claim.check(info["processes"].as_array().map(|list| list.len() as u64), label, &info);
    }
    let mut notices: Vec<_> =
        info["notices"].as_array().unwrap().iter().map(|notice| notice["text"].as_str().unwrap()).collect();
    if is_emulated() {
        // The emulator has memory of its own in the process.
        notices.retain(|text| !text.contains("mapped without the C library"));
    }
    let is_as_said = match &header.notice {
        Some(word) if notices.len() == 1 => notices[0].contains(word.as_str()),
        Some(_) => notices.is_empty() && !header.is_notice_certain,
        None => notices.is_empty(),
    };
    assert!(is_as_said, "{label}: {notices:?}");
    assert_eq!(info["loss"]["processes_refused"].as_u64(), Some(header.refused), "{label}");
    recording::assert_verified(&info, header.verify, label);
}
