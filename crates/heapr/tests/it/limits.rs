//! Resource limits and missing features: whatever heapr lacks, the program runs as it would without
//! heapr.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use heapr_testkit::{Outcome, run};

use crate::recording::HEAPR;

/// Runs a shell script, in which `$0` is heapr.
fn script(folder: &Path, text: &str) -> Outcome {
    let mut command = Command::new("sh");
    command.args(["-c", text, HEAPR]).current_dir(folder);
    run(&mut command)
}

/// Builds a C program in a folder that all users may enter.
fn built(folder: &Path, name: &str, code: &str) {
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("program.c"), code).unwrap();
    let mut command = Command::new("gcc");
    command.args(["-g", "-O1", "-pthread", "program.c", "-o", name]).current_dir(folder);
    assert!(command.status().unwrap().success());
}

/// Prints the limits that it sees, allocates, and ends with 7.
const SHOWS_LIMITS: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
int main(void) {
    struct rlimit limit;
    for (int kind = 0; kind < 16; kind++) {
        getrlimit(kind, &limit);
        printf("%d: %ld %ld\n", kind, (long)limit.rlim_cur, (long)limit.rlim_max);
    }
    for (int stream = 0; stream < 3; stream++) fprintf(stdout, "%d: %d\n", stream, fcntl(stream, F_GETFL));
    for (int i = 0; i < 1000; i++) free(malloc(i));
    return 7;
}
"#;

#[test]
fn a_program_under_limits_runs_as_without_heapr() {
    let folder = tempfile::tempdir().unwrap();
    built(folder.path(), "shows", SHOWS_LIMITS);
    for lack in [
        "ulimit -f 100",
        "ulimit -f 20000",
        "ulimit -Sf 100",
        "ulimit -n 4",
        "ulimit -n 5",
        "ulimit -n 9",
        "ulimit -n 12",
        "ulimit -Sn 4",
        "ulimit -s 128",
        "ulimit -s unlimited",
        "ulimit -v 80000",
        "ulimit -v 150000",
        "ulimit -v 210000",
        "ulimit -v 400000",
        "ulimit -d 20000",
        "ulimit -t 1000",
        "ulimit -c 0",
        "exec 0<&-",
        "exec 0<&- 2>&-",
        "mkdir -p gone; p=$PWD; cd gone; rmdir $p/gone",
        "unset HOME XDG_RUNTIME_DIR XDG_CACHE_HOME HEAPR_RUNTIME_DIR",
    ] {
        let program = folder.path().join("shows");
        let program = program.display();
        let bare = script(folder.path(), &format!("{lack}; exec {program}"));
        assert_eq!(bare.status, 7, "{lack}: {}", bare.stderr);
        let traced = script(folder.path(), &format!("{lack}; exec \"$0\" run -q -- {program}"));
        assert_eq!((traced.status, traced.stdout), (bare.status, bare.stdout), "{lack}: {}", traced.stderr);
        let is_ours = traced.stderr.lines().all(|line| line.starts_with("heapr:"));
        assert!(is_ours && traced.stderr.lines().count() <= 1, "{lack}: {}", traced.stderr);
    }
}

/// Below the least memory its own loader fails, which heapr cannot prevent.
#[test]
fn a_program_runs_where_heapr_itself_has_hardly_any_memory() {
    /// KiB that the loader needs besides mapping the files.
    const LOADER_KIB: u64 = 600;
    let folder = tempfile::tempdir().unwrap();
    built(folder.path(), "shows", SHOWS_LIMITS);
    let program = folder.path().join("shows");
    let is_loaded = |lack: &str| {
        let line = format!("{lack}; LD_TRACE_LOADED_OBJECTS=1 exec \"$0\"");
        script(folder.path(), &line).status == 0
    };
    let mut untraced_count = 0;
    for kind in ["-v", "-d"] {
        let (mut low, mut high) = (0, 1 << 20);
        while high - low > 50 {
            let middle = u64::midpoint(low, high);
            let is_enough = is_loaded(&format!("ulimit {kind} {middle}"));
            if is_enough { high = middle } else { low = middle }
        }
        let steps = (0..30).map(|step| step * 100).chain([4000, 7000]);
        for more in steps {
            let lack = format!("ulimit {kind} {}", high + LOADER_KIB + more);
            let bare = script(folder.path(), &format!("{lack}; exec {}", program.display()));
            let line = format!("{lack}; exec \"$0\" run -q -f -o t.heapr -- {}", program.display());
            let traced = script(folder.path(), &line);
            assert_eq!((traced.status, traced.stdout), (7, bare.stdout), "{lack}: {}", traced.stderr);
            assert!(traced.stderr.lines().count() <= 1, "{lack}: {}", traced.stderr);
            untraced_count += u32::from(traced.stderr.contains("untraced"));
        }
    }
    assert!(untraced_count > 0);
}

/// The kernel maps writable memory before the first instruction, which must fit a low limit. Memory
/// that is read-only after relocation does not count: a debug build has more of it.
#[test]
fn variables_of_heapr_itself_take_little_memory() {
    let image = fs::read(HEAPR).unwrap();
    let word = |at: usize, bytes: usize| {
        image[at..at + bytes].iter().rev().fold(0, |word, &byte| word << 8 | usize::from(byte))
    };
    let (headers, header_bytes, count) = (word(32, 8), word(54, 2), word(56, 2));
    let headers = (0..count).map(|number| headers + number * header_bytes);
    const LOAD: usize = 1;
    const READ_ONLY_ONCE_RELOCATED: usize = 0x6474_e552;
    let bytes_of = |kind: usize| -> usize {
        let is_writable = |at: &usize| word(*at, 4) == kind && (kind != LOAD || word(*at + 4, 4) & 2 != 0);
        headers.clone().filter(is_writable).map(|at| word(at + 40, 8)).sum()
    };
    let variable_bytes = bytes_of(LOAD) - bytes_of(READ_ONLY_ONCE_RELOCATED);
    assert!(variable_bytes < 100 << 10, "{variable_bytes} B");
}

#[test]
fn what_a_limit_keeps_from_being_recorded_is_said() {
    let folder = tempfile::tempdir().unwrap();
    built(folder.path(), "shows", SHOWS_LIMITS);
    for (lack, words) in [("ulimit -f 2000", "ulimit -f"), ("mkdir gone; cd gone; rmdir ../gone", "untraced")]
    {
        let program = folder.path().join("shows");
        let line = format!("{lack}; exec \"$0\" run -- {}", program.display());
        let outcome = script(folder.path(), &line);
        assert_eq!(outcome.status, 7, "{lack}: {}", outcome.stderr);
        assert!(outcome.stderr.lines().count() == 1 && outcome.stderr.contains(words), "{}", outcome.stderr);
    }
}

#[test]
fn a_program_locks_its_memory_as_without_heapr() {
    let folder = tempfile::tempdir().unwrap();
    let code = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(int count, char **words) {
    int flags = atoi(words[1]);
    printf("locked %d\n", mlockall(flags));
    void *block = malloc(100000);
    void *area = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%d %d\n", block != 0, area != MAP_FAILED);
    return 0;
}
"#;
    built(folder.path(), "locks", code);
    fs::create_dir(folder.path().join("home")).unwrap();
    fs::set_permissions(folder.path().join("home"), Permissions::from_mode(0o777)).unwrap();
    let other = "setpriv --reuid 65534 --regid 65534 --clear-groups env -u HEAPR_RUNTIME_DIR -u XDG_CACHE_HOME \
                 -u XDG_RUNTIME_DIR HOME=$PWD/home";
    // MCL_CURRENT, MCL_FUTURE, both, and MCL_ONFAULT.
    for flags in [1, 2, 3, 7] {
        for limit in ["65536", "6000000", "16000000"] {
            let line = format!("prlimit --memlock={limit}:{limit} {other} ./locks {flags}");
            let bare = script(folder.path(), &line);
            if bare.status != 0 {
                println!("not run: becoming another user needs root and setpriv");
                return;
            }
            let line = format!(
                "prlimit --memlock={limit}:{limit} {other} \"$0\" run -q -f -o home/t.heapr -- ./locks {flags}"
            );
            let traced = script(folder.path(), &line);
            assert_eq!(traced.stdout, bare.stdout, "{flags}, {limit}: {}", traced.stderr);
        }
    }
}

/// The loader in the other root does not find the agent, and would print that on its standard
/// error.
#[test]
fn a_program_in_another_root_directory_is_recorded_from_its_first_call_on() {
    let folder = tempfile::tempdir().unwrap();
    built(
        folder.path(),
        "program",
        "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 100; i++) { void *volatile b = malloc(321); if (!b) return 1; } return 4; }",
    );
    let script_text = "mkdir -p root/lib64 root/lib/x86_64-linux-gnu && cp program root/ \
        && cp -L /lib64/ld-linux-x86-64.so.2 root/lib64/ \
        && cp -L $(ldd ./program | awk '/libc.so/ { print $3 }') root/lib/x86_64-linux-gnu/ && mkdir root/etc root/proc && $(PATH=$PATH:/sbin command -v ldconfig) -r root && chroot root /program";
    if script(folder.path(), script_text).status != 4 {
        println!("not run: chroot needs root");
        return;
    }
    built(folder.path(), "contain", include_str!("../../../../victims/contained/contain.c"));
    let contained = "./contain root /program";
    let has_namespaces = script(folder.path(), contained).status == 4;
    let launchers =
        ["chroot root /program", "sh -c 'chroot root /program'", "env -i $(command -v chroot) root /program"];
    for launcher in launchers.into_iter().chain(has_namespaces.then_some(contained)) {
        let line = format!("\"$0\" run -q -f -o t.heapr -- {launcher}");
        let outcome = script(folder.path(), &line);
        let seen = (outcome.status, outcome.stdout.as_str(), outcome.stderr.as_str());
        assert_eq!(seen, (4, "", ""), "{launcher}");
        let report = script(folder.path(), "\"$0\" report --totals --format json t.heapr");
        let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
        let heaps = report["heaps"].as_array().unwrap();
        let bytes = |heap: &serde_json::Value| heap["outstanding_bytes"].as_u64().unwrap_or(0);
        let is_it = |heap: &&serde_json::Value| heap["process"] == "program";
        let held: u64 = heaps.iter().filter(is_it).map(bytes).sum();
        assert!(held >= 32_100, "{launcher}: {report}");
    }
    // A process that cannot determine its pid cannot be held; the message names it.
    if has_namespaces {
        let line = format!("WITHOUT_PROC=1 \"$0\" run -f -o t.heapr -- {contained}");
        let outcome = script(folder.path(), &line);
        let is_said = outcome.stderr.contains("program, which it started, runs untraced: where it runs");
        assert!(outcome.status == 4 && is_said, "{outcome:?}");
    }
    // Without the loader's last call there is no point between it and the program.
    let line = "rm root/etc/ld.so.cache; \"$0\" run -f -o t.heapr -- chroot root /program";
    let outcome = script(folder.path(), line);
    assert_eq!(outcome.status, 4);
    assert!(outcome.stderr.contains("what it allocates first is not recorded"), "{outcome:?}");
}

/// A terminal's signals reach the whole process group: heapr must not pass them on to the program.
#[test]
fn a_terminal_interrupts_the_program_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = "trap 'echo got' INT; echo ready; read line; read line; echo end; exit 3";
    // A shell in between would end by the signal itself. A shell cannot trap an ignored signal.
    let line = format!("exec env --default-signal=INT {HEAPR} run -q -o t.heapr -- sh -c \"{text}\"");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(folder.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut keyboard = child.stdin.take().unwrap();
    let mut screen = BufReader::new(child.stdout.take().unwrap());
    let mut seen = String::new();
    while !seen.contains("ready") {
        assert_ne!(screen.read_line(&mut seen).unwrap(), 0, "{seen}");
    }
    keyboard.write_all(b"\x03").unwrap();
    while !seen.contains("got") {
        assert_ne!(screen.read_line(&mut seen).unwrap(), 0, "{seen}");
    }
    keyboard.write_all(b"\n\n\n").unwrap();
    screen.read_to_string(&mut seen).unwrap();
    assert_eq!((child.wait().unwrap().code(), seen.matches("got").count()), (Some(3), 1), "{seen}");
}

/// Both stop and both continue: a program would wait for a recorder that is stopped alone.
#[test]
fn a_stop_and_a_continue_sent_to_heapr_hold_for_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        state() { sed 's/.*) //' "/proc/$1/stat" | cut -c1; }
        "$0" run -q -o t.heapr -- sh -c 'echo $$ > pid; until [ -e go ]; do sleep 0.02; done; echo on; exit 3' &
        until [ -s pid ]; do sleep 0.02; done
        kill -TSTP $!
        until [ "$(state $(cat pid))$(state $!)" = TT ]; do sleep 0.02; done
        kill -CONT $!
        until [ "$(state $(cat pid))" != T ]; do sleep 0.02; done
        touch go
        wait $!"#;
    let outcome = script(folder.path(), text);
    assert_eq!((outcome.status, outcome.stdout.as_str(), outcome.stderr.as_str()), (3, "on\n", ""));
}
