//! The program under heapr behaves as without it: name, path, arguments, output, status.

use std::fs::{self, Permissions};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heapr_trace::ProcessOrigin;

use heapr_testkit::{Outcome, run};

use crate::recording::{self, HEAPR, Settings};
use crate::victim_build;

/// Builds a victim that allocates 100 blocks of 100 bytes, and copies it to `place`.
pub(crate) fn victim_at(place: &Path) {
    let header = crate::header::Header::read(&victim_build::sources().join("peaks.c"));
    let program = victim_build::build("peaks.c", &header, &["-O1".to_owned()]);
    fs::copy(program, place).unwrap();
}

pub(crate) fn heapr(folder: &Path, words: &[&str]) -> Outcome {
    run(&mut recording::heapr(folder, words))
}

pub(crate) fn has_victim_blocks(folder: &Path, file: &str) -> bool {
    let outcome = heapr(folder, &["report", file, "--frames", "--format", "json"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    outcome.stdout.contains("victim_second")
}

#[test]
fn a_program_with_spaces_in_its_name_is_traced() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a folder: with, odd 'names'");
    fs::create_dir(&inner).unwrap();
    let program = inner.join("my program");
    victim_at(&program);
    let outcome = heapr(folder.path(), &["run", "--quiet", "-o", "t.heapr", "--", program.to_str().unwrap()]);
    assert_eq!((outcome.status, outcome.stdout.as_str(), outcome.stderr.as_str()), (0, "done\n", ""));
    assert!(has_victim_blocks(folder.path(), "t.heapr"));
}

#[test]
fn a_relative_path_and_a_name_in_the_search_path_are_traced() {
    let folder = tempfile::tempdir().unwrap();
    victim_at(&folder.path().join("victim-here"));
    let outcome = heapr(folder.path(), &["run", "--quiet", "-o", "relative.heapr", "./victim-here"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, "done\n"), "{}", outcome.stderr);
    assert!(has_victim_blocks(folder.path(), "relative.heapr"));

    let words = ["run", "--quiet", "-o", "found.heapr", "--", "victim-here"];
    let outcome = run(recording::heapr(folder.path(), &words).env("PATH", folder.path()));
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, "done\n"), "{}", outcome.stderr);
    assert!(has_victim_blocks(folder.path(), "found.heapr"));
}

#[test]
fn a_script_is_traced_through_its_interpreter() {
    let folder = tempfile::tempdir().unwrap();
    victim_at(&folder.path().join("victim-here"));
    let script = folder.path().join("script");
    fs::write(&script, "#! /bin/sh -e\n./victim-here | cat\necho \"$1\"\nexit 9\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = heapr(folder.path(), &["run", "--quiet", "-o", "t.heapr", "--", "./script", "two  words"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (9, "done\ntwo  words\n"), "{}", outcome.stderr);
    assert!(has_victim_blocks(folder.path(), "t.heapr"));
}

#[test]
fn a_pipeline_of_a_shell_is_traced_with_its_own_environment() {
    let folder = tempfile::tempdir().unwrap();
    victim_at(&folder.path().join("victim-here"));
    let line = "MARK='x y' sh -c 'echo $MARK; ./victim-here' | sed s/done/ended/ | sort";
    let outcome = heapr(folder.path(), &["run", "--quiet", "-o", "t.heapr", "--", "sh", "-c", line]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, "ended\nx y\n"), "{}", outcome.stderr);
    assert!(has_victim_blocks(folder.path(), "t.heapr"));
    // A process that a shell forks is that shell until it execs, however late it was sampled.
    let trace = heapr_trace::Trace::open(&folder.path().join("t.heapr")).unwrap();
    let mut fork_count = 0;
    for process in trace.processes() {
        let ProcessOrigin::Fork { parent } = process.origin else { continue };
        assert_eq!(process.name(), trace.processes()[parent.0 as usize].name(), "{:?}", trace.processes());
        fork_count += 1;
    }
    assert!(fork_count >= 3, "{:?}", trace.processes());
    for name in ["sed", "sort", "victim-here"] {
        assert_eq!(trace.processes().iter().filter(|process| process.name() == name).count(), 1, "{name}");
    }
}

#[test]
fn the_preload_of_the_user_stays_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("answer.c");
    fs::write(&source, "unsigned geteuid(void) { return 4711; }\n").unwrap();
    let library = folder.path().join("answer.so");
    let built =
        Command::new("gcc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status().unwrap();
    assert!(built.success());
    let settings = Settings {
        environment: &[("LD_PRELOAD".into(), library.to_str().unwrap().into())],
        ..Settings::default()
    };
    // `id` is left out, because it calls the kernel itself. The shell's list of modules has the
    // preloaded library.
    let command = ["sh", "-c", "echo $LD_PRELOAD | tr : '\\n' | grep -c answer.so"].map(str::to_owned);
    let recording = recording::record(&command, &settings);
    assert_eq!(
        (recording.outcome.status, recording.outcome.stdout.as_str()),
        (0, "1\n"),
        "{}",
        recording.outcome.stderr
    );
}

#[test]
fn what_cannot_be_started_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("data"), "no program\n").unwrap();
    for (program, status) in
        [("./missing", 127), ("no-such-program-anywhere", 127), ("./data", 126), ("/", 126)]
    {
        let outcome = heapr(folder.path(), &["run", "-o", "t.heapr", "--", program]);
        assert_eq!(outcome.status, status, "{program}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{program}: {}", outcome.stderr);
        assert!(
            outcome.stderr.starts_with("heapr:") && outcome.stderr.contains(program),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn an_output_that_cannot_be_written_stops_before_the_program_starts() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("there.heapr"), "mine").unwrap();
    symlink("elsewhere", folder.path().join("link.heapr")).unwrap();
    for (output, force) in
        [("there.heapr", false), ("no/folder/t.heapr", false), ("link.heapr", true), (".", true)]
    {
        let mut words = vec!["run", "-o", output];
        words.extend(force.then_some("-f"));
        words.extend(["--", "sh", "-c", "echo started"]);
        let outcome = heapr(folder.path(), &words);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{output}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(output), "{output}: {}", outcome.stderr);
    }
    assert_eq!(fs::read_to_string(folder.path().join("there.heapr")).unwrap(), "mine");
    assert!(!folder.path().join("elsewhere").exists());
}

#[test]
fn a_file_that_is_overwritten_gives_way_to_a_private_one_and_stays_for_who_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there.heapr");
    fs::write(&there, "mine").unwrap();
    fs::set_permissions(&there, Permissions::from_mode(0o644)).unwrap();
    let mut reader = fs::File::open(&there).unwrap();
    let outcome = heapr(folder.path(), &["run", "--quiet", "-f", "-o", "there.heapr", "--", "true"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let made = fs::metadata(&there).unwrap();
    assert!(made.len() > 4 && made.permissions().mode() & 0o777 == 0o600, "{made:?}");
    let mut read = String::new();
    reader.read_to_string(&mut read).unwrap();
    assert_eq!(read, "mine");
    // An output that is not a regular file is written to.
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let end = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    let outcome = heapr(folder.path(), &["run", "--quiet", "-f", "-o", "pipe", "--", "true"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let came = end.wait_with_output().unwrap().stdout;
    assert!(came.starts_with(b"HEAPRTRC") && fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_trace_is_private_to_its_owner() {
    let recording = recording::record(&["true".to_owned()], &Settings::default());
    let mode = fs::metadata(recording.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_setuid_program_runs_and_is_named_as_untraceable() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("setuid-victim");
    victim_at(&program);
    let own = |owner: &str| Command::new("chown").arg(owner).arg(&program).status().unwrap().success();
    if !own("65534") {
        heapr_testkit::not_run("changing the owner of a file needs root");
        return;
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = heapr(folder.path(), &["run", "--quiet", "-o", "t.heapr", "--", "./setuid-victim"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, "done\n"), "{}", outcome.stderr);
    let lines: Vec<_> = outcome.stderr.lines().collect();
    assert!(lines.len() == 1 && lines[0].contains("setuid"), "{}", outcome.stderr);
}

#[test]
fn the_summary_goes_to_stderr_and_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    victim_at(&folder.path().join("victim-here"));
    let mut command = recording::heapr(folder.path(), &["run", "--", "./victim-here"]);
    let outcome = run(command.env("COLUMNS", "80"));
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, "done\n"), "{}", outcome.stderr);
    let file = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path: &PathBuf| path.extension().is_some_and(|extension| extension == "heapr"))
        .expect("a trace in the current folder");
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("heapr.victim-here."), "{name}");
    for word in [name, "heapr report", "victim_second", "peak", "outstanding"] {
        assert!(outcome.stderr.contains(word), "no {word:?} in {}", outcome.stderr);
    }
    // A command is printed whole.
    for line in outcome.stderr.lines().filter(|line| !line.trim_start().starts_with("heapr report ")) {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
}

/// Shells and version managers around a program are counted, and do not hide it.
#[test]
fn the_process_with_the_memory_comes_before_its_wrappers() {
    let folder = tempfile::tempdir().unwrap();
    let program = "perl -e 'my @kept = map { \"x\" x 1000 } 1 .. 3000'";
    let script = format!(
        "for n in 1 2 3; do sh -c 'exit 0'; done; sh -c \"{}; exit 0\"; exit 0",
        program.replace('"', "\\\"")
    );
    let script = script.as_str();
    let outcome = heapr(folder.path(), &["run", "-o", "t 1.heapr", "--", "sh", "-c", script]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    // A long line goes on in the next one.
    let words = outcome.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = words.split(" processes perl (").nth(1).and_then(|rest| rest.split(" resident ").next());
    let told = told.unwrap_or_default();
    assert!(told.contains(" had the most, ") && told.contains(" others ("), "{}", outcome.stderr);
    assert_eq!(told.matches(" sh)").count(), 1, "{told}");
    // The file's name has a space: a shell must read it as one word.
    assert!(outcome.stderr.contains("\n  heapr view 't 1.heapr'\n"), "{}", outcome.stderr);
}

/// The path of the recording comes on a terminal before anything that the program says.
#[test]
fn a_terminal_is_told_the_file_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    victim_at(&folder.path().join("victim-here"));
    let line = format!("'{HEAPR}' run -o t.heapr -- ./victim-here");
    let shown = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(folder.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let [told, done, peak] = ["heapr: recording into t.heapr", "done", "  peak "].map(|word| text.find(word));
    assert!(told.is_some() && told < done && done < peak, "{text}");
    let quiet = heapr(folder.path(), &["run", "-f", "-o", "t.heapr", "--", "./victim-here"]);
    assert!(!quiet.stderr.contains("recording into"), "{}", quiet.stderr);
}

#[test]
fn the_environment_is_as_it_was_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new("env");
        command.args(["-i", "ZEBRA=1", "PATH=/usr/bin:/bin", "HOME=/nowhere", "B=", "A=2 3"]).args(words);
        command.current_dir(folder.path());
        run(&mut command)
    };
    let bare = run(&["env"]);
    let traced = run(&[HEAPR, "run", "--quiet", "-o", "t.heapr", "--", "env"]);
    let ours = |line: &&str| !line.starts_with("LD_PRELOAD=") && !line.starts_with("HEAPR_SESSION=");
    assert_eq!((traced.status, traced.stderr.as_str()), (0, ""));
    assert_eq!(
        traced.stdout.lines().filter(ours).collect::<Vec<_>>(),
        bare.stdout.lines().collect::<Vec<_>>()
    );
    assert_eq!(traced.stdout.lines().count(), bare.stdout.lines().count() + 2);
}

/// Pid namespace whose /proc still shows the processes outside, with other pids.
#[test]
fn what_runs_in_a_process_namespace_without_a_proc_of_its_own_is_traced() {
    let folder = tempfile::tempdir().unwrap();
    victim_at(&folder.path().join("victim-here"));
    let script = "\"$0\" run --quiet -o t.heapr -- sh -c './victim-here | cat; sleep 0.5; exit 3'";
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "sh", "-c", script, HEAPR]).current_dir(folder.path());
    let outcome = run(&mut command);
    if outcome.stderr.contains("unshare") {
        heapr_testkit::not_run("a process namespace needs root");
        return;
    }
    assert_eq!((outcome.status, outcome.stdout.as_str(), outcome.stderr.as_str()), (3, "done\n", ""));
    assert!(has_victim_blocks(folder.path(), "t.heapr"));
    let trace = heapr_trace::Trace::open(&folder.path().join("t.heapr")).unwrap();
    assert_eq!(trace.processes()[0].exit_status, Some(3 << 8), "{:?}", trace.processes());
    assert_eq!(trace.processes()[0].name(), "sh");
}

#[test]
fn where_nothing_can_be_traced_it_is_said_and_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    victim_at(&folder.path().join("victim-here"));
    let script = "mount -t tmpfs none /proc 2>/dev/null || exit 77; exec \"$0\" run --quiet -- ./victim-here";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, HEAPR]).current_dir(folder.path());
    let outcome = run(&mut command);
    if outcome.status == 77 || outcome.stderr.contains("unshare") {
        heapr_testkit::not_run("mounting needs root");
        return;
    }
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, "done\n"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("ran untraced") && outcome.stderr.contains("doctor"),
        "{}",
        outcome.stderr
    );
}

/// Returns standard output and error of a recording on a disk of `size_kib`, in a mount namespace
/// of its own. The namespace ends with its last process. Returns `None` if mounting needs root. The
/// program's events take 60 KiB for each eight of its rounds.
fn on_a_small_disk(size_kib: u32, rounds: u32, options: &str) -> Option<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    victim_at(&folder.path().join("victim-here"));
    let script = "mkdir small && mount -t tmpfs -o size=${2}k none small 2>/dev/null || exit 77; \
                  \"$0\" run $1 -o small/t.heapr -- sh -c \
                  'for i in $(seq '$3'); do find / -xdev -maxdepth 3 >/dev/null 2>&1; done; ./victim-here'; \
                  echo status $?; \"$0\" info small/t.heapr >/dev/null 2>&1; echo status $?";
    let mut command = Command::new("unshare");
    let numbers = [size_kib, rounds].map(|number| number.to_string());
    command.args(["--mount", "sh", "-c", script, HEAPR, options]).args(numbers).current_dir(folder.path());
    let outcome = run(&mut command);
    if outcome.status == 77 || outcome.stderr.contains("unshare") {
        heapr_testkit::not_run("mounting a small disk needs root");
        return None;
    }
    Some((outcome.stdout, outcome.stderr))
}

#[test]
fn a_full_disk_harms_only_the_file() {
    let Some((stdout, stderr)) = on_a_small_disk(64, 8, "--quiet") else { return };
    assert_eq!(stdout, "done\nstatus 0\nstatus 0\n", "{stderr}");
    assert_eq!(stderr.lines().filter(|line| line.starts_with("heapr:")).count(), 1, "{stderr}");
}

/// The totals cover the whole run, the stacks only the contents of the file.
#[test]
fn a_summary_says_that_its_stacks_end_with_the_file() {
    let Some((_, stderr)) = on_a_small_disk(256, 60, "") else { return };
    assert!(stderr.contains("\n  largest at the peak where the file ends:\n"), "{stderr}");
    assert!(stderr.contains("did not end in order"), "{stderr}");
}

#[test]
fn a_program_for_another_processor_runs_and_is_named_as_untraceable() {
    let folder = tempfile::tempdir().unwrap();
    // `exit(5)` for i386: it builds without a library, and the kernel runs it beside 64-bit
    // programs.
    let code = ".globl _start\n_start: mov $1, %eax\nmov $5, %ebx\nint $0x80\n";
    fs::write(folder.path().join("small.s"), code).unwrap();
    let script = "as --32 small.s -o small.o && ld -m elf_i386 small.o -o small";
    let built = Command::new("sh").args(["-c", script]).current_dir(folder.path()).status().unwrap();
    assert!(built.success());
    let bare = Command::new(folder.path().join("small")).status();
    if bare.ok().and_then(|status| status.code()) != Some(5) {
        heapr_testkit::cannot_run_here("this kernel runs no 32-bit programs");
        return;
    }
    let outcome = heapr(folder.path(), &["run", "--quiet", "-o", "t.heapr", "--", "./small"]);
    assert_eq!(outcome.status, 5, "{}", outcome.stderr);
    let lines: Vec<_> = outcome.stderr.lines().collect();
    assert!(lines.len() == 1 && lines[0].contains("small"), "{}", outcome.stderr);
}

/// The other user may load the agent but not open the buffers of root's session, so the process is
/// attached to.
#[test]
fn a_program_that_goes_on_as_another_user_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    victim_at(&folder.path().join("victim-here"));
    fs::set_permissions(folder.path().join("victim-here"), fs::Permissions::from_mode(0o755)).unwrap();
    let other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    if !Command::new(other[0])
        .args(&other[1..])
        .arg("./victim-here")
        .current_dir(folder.path())
        .output()
        .is_ok_and(|output| output.status.success())
    {
        heapr_testkit::not_run("becoming another user needs root, setpriv, and a folder that all may enter");
        return;
    }
    let mut words = vec!["run", "--quiet", "-o", "t.heapr", "--"];
    words.extend(other);
    words.extend(["sh", "-c", "./victim-here; ./victim-here | cat; exit 4"]);
    let outcome = heapr(folder.path(), &words);
    assert_eq!((outcome.status, outcome.stdout.as_str(), outcome.stderr.as_str()), (4, "done\ndone\n", ""));
    assert!(has_victim_blocks(folder.path(), "t.heapr"));
    let trace = heapr_trace::Trace::open(&folder.path().join("t.heapr")).unwrap();
    assert_eq!(trace.processes()[0].name(), "setpriv", "{:?}", trace.processes());
}

#[test]
fn a_line_on_a_terminal_tells_how_far_a_recording_is_unless_it_is_to_be_quiet() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    // `script` gives the program a terminal; it ends once the line was seen, or with heapr quiet.
    for (words, is_shown) in [("", true), ("-q", false)] {
        let waits = if is_shown {
            format!("until grep -q 'events  live' {}; do sleep 0.1; done", seen.display())
        } else {
            "sleep 1".to_owned()
        };
        let program = folder.path().join("waits.sh");
        fs::write(&program, waits).unwrap();
        let line =
            format!("'{HEAPR}' run {words} -f -o trace.heapr -- sh '{}' > /dev/null", program.display());
        let mut script = Command::new("script");
        script.args(["-qefc", &line]).arg(&seen).current_dir(folder.path());
        let outcome = run(&mut script);
        assert_eq!(outcome.status, 0, "{}{}", outcome.stdout, outcome.stderr);
        let text = fs::read_to_string(&seen).unwrap();
        assert_eq!(text.contains("events  live"), is_shown, "{text}");
    }
}
