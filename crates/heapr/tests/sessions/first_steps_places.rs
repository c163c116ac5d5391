//! The first steps on a terminal, in the places where new users stand. These are this user,
//! another user, a process without ptrace, and namespaces as a container has them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::first_steps::{STEPS, Step, TIPS, write_files};
use crate::stage::{HEAPR, Stage, steady_program};
use crate::terminal::OnTerminal;

/// Program that runs another one without the call of ptrace, as a sandbox does.
const WITHOUT_PTRACE: &str = r#"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 99;
    execvp(words[1], words + 1);
    return 98;
}
"#;

/// Steps with a process that runs, whose number is in `$pid`, where it can be attached to.
const WITH_A_PROCESS: &[Step] = &[
    ("top $pid --once --all", 0, &["live ", "steady_alloc"]),
    ("top $name --once --all", 0, &["live ", "steady_alloc"]),
    ("attach $pid -q -o attached.heapr", 0, &[]),
    ("status", 0, &["default"]),
    ("stop", 0, &["attached.heapr"]),
    ("explain $pid", 0, &["$name"]),
    ("doctor", 0, &["attaching"]),
    ("run -q -o quiet.heapr true", 0, &[]),
    ("run -o told.heapr true", 0, &["recording into told.heapr", "told.heapr"]),
];

/// Step where no process can be traced.
const WITHOUT_PTRACE_AT_ALL: &[Step] = &[("doctor", 1, &["not even a child may be traced", "seccomp"])];

/// Steps where it cannot.
const WITHOUT_LEAVE: &[Step] = &[
    ("top $pid --once", 2, &["ptrace"]),
    ("attach $pid -q -o attached.heapr", 2, &["ptrace"]),
    ("explain $pid", 0, &["$name"]),
    ("top $name --once", 2, &["not allowed to trace"]),
    ("run -o told.heapr true", 0, &["recording into told.heapr"]),
];

/// Steps in a folder that cannot be written.
const IN_A_LOCKED_FOLDER: &[Step] = &[
    ("run true", 0, &["this folder cannot be written", ".cache/heapr/traces/heapr.true."]),
    ("run -o a.heapr true", 2, &["cannot write a.heapr"]),
    ("start x -- true", 0, &["this folder cannot be written", ".cache/heapr/traces/heapr.x."]),
];

/// Folder in which the steps are played, and which another user may enter.
struct Place {
    stage: Stage,
    folder: PathBuf,
}

impl Place {
    fn new() -> Self {
        let stage = Stage::new();
        let folder = stage.path("home");
        for made in ["home", "home/locked", "home/run"] {
            fs::create_dir(stage.path(made)).unwrap();
        }
        write_files(&folder);
        Self { stage, folder }
    }

    /// Gives all files to another user.
    fn give_to(&self, user: &str) {
        let parents = self.folder.ancestors().take_while(|folder| folder.starts_with(std::env::temp_dir()));
        for folder in parents.filter(|folder| *folder != std::env::temp_dir()) {
            let status = Command::new("chmod").arg("a+x").arg(folder).status().unwrap();
            assert!(status.success());
        }
        assert!(Command::new("chown").args(["-R", user]).arg(&self.folder).status().unwrap().success());
    }

    /// Plays steps on a terminal, one after the other, and returns what each printed, with its
    /// status. `before` are the words of the program that runs the shell.
    fn play(&self, before: &[&str], setup: &str, steps: &[Step]) -> Vec<(i32, String)> {
        let mut script = format!(
            "cd {}\nexport HOME=$PWD HEAPR_RUNTIME_DIR=$PWD/run TMPDIR=$PWD\nunset XDG_CACHE_HOME XDG_RUNTIME_DIR\n\
             heapr() {{ {HEAPR} \"$@\"; }}\n{setup}\n",
            self.folder.display()
        );
        for (number, (line, ..)) in steps.iter().enumerate() {
            script += &format!("echo '<step {number}>'\nheapr {line}\necho \"<status $?>\"\n");
        }
        script += "echo '<end of all>'\n";
        let file = self.folder.join("steps.sh");
        fs::write(&file, script).unwrap();
        let words: Vec<&str> = [before, &["sh", file.to_str().unwrap()]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        let mut terminal = OnTerminal::start(&command, 200, 50);
        terminal.wait();
        let shown = terminal.shown().replace('\r', "");
        assert!(shown.contains("<end of all>"), "{shown}");
        let played = shown.split("<step ").skip(1).map(|part| {
            let (said, rest) = part.split_once("<status ").unwrap_or((part, "99>"));
            (rest.split('>').next().unwrap().parse().unwrap(), said.to_owned())
        });
        played.collect()
    }

    fn check(&self, name: &str, before: &[&str], setup: &str, steps: &[Step]) {
        let played = self.play(before, setup, steps);
        assert_eq!(played.len(), steps.len(), "{name}");
        let mut wrong = Vec::new();
        for ((line, status, texts), (ended, said)) in steps.iter().zip(played) {
            let named = texts.iter().map(|text| text.replace("$name", &program_name(name)));
            if ended != *status || named.into_iter().any(|text| !said.contains(&text)) {
                wrong.push(format!("heapr {line}: {ended}, expected {status} and {texts:?}\n{said}"));
            }
        }
        assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    }

    /// Plays all steps.
    fn check_all(&self, name: &str, before: &[&str], with_process: &[Step]) {
        let traces = format!("{HEAPR} run -q -o old.heapr true; {HEAPR} run -q -o new.heapr true");
        // Two terminals, each with a time limit of its own: a debug build on a busy machine is
        // slow.
        self.check(name, before, &traces, TIPS);
        self.check(name, before, "", STEPS);
        let process = format!(
            "name={}; cp {} $name\n./$name $PWD/release 2000 > steady.out & pid=$!\nuntil grep -q heap /proc/$pid/maps; do sleep 0.1; done\n\
             trap 'kill $pid' EXIT",
            program_name(name),
            steady_program().display()
        );
        self.check(name, before, &process, with_process);
    }
}

/// Name of the program in a place: the tests of all places run at the same time.
fn program_name(place: &str) -> String {
    format!("{place}{}", std::process::id())
}

/// Whether Linux lets a process attach to others of its user.
fn may_attach() -> bool {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    scope.trim().is_empty() || scope.trim() == "0"
}

fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").unwrap()) == 0
}

#[test]
fn first_steps_as_this_user() {
    if !is_root() && !may_attach() {
        Place::new().check_all("own", &["env"], WITHOUT_LEAVE);
        return;
    }
    Place::new().check_all("own", &["env"], WITH_A_PROCESS);
}

#[test]
fn first_steps_as_another_user() {
    const USER: &str = "65534";
    const BEFORE: &[&str] = &["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"];
    let mut asked = Command::new(BEFORE[0]);
    let can_run = asked.args(&BEFORE[1..]).args([HEAPR, "-V"]).output();
    if !is_root() || !can_run.is_ok_and(|outcome| outcome.status.success()) {
        heapr_testkit::cannot_run_here(
            "first steps as another user: this is not root, or another user cannot run heapr here",
        );
        return;
    }
    let place = Place::new();
    place.give_to(USER);
    let locked = place.folder.join("locked");
    assert!(Command::new("chown").arg("root").arg(&locked).status().unwrap().success());
    place.check_all("user", BEFORE, if may_attach() { WITH_A_PROCESS } else { WITHOUT_LEAVE });
    place.check("user", BEFORE, "cd locked", IN_A_LOCKED_FOLDER);
    assert_eq!(fs::read_dir(locked).unwrap().count(), 0);
}

#[test]
fn first_steps_without_ptrace() {
    let place = Place::new();
    let without = place.stage.compile("without_ptrace", WITHOUT_PTRACE, &[]);
    place.check_all("refused", &[&without], WITHOUT_LEAVE);
    place.check("refused", &[&without], "", WITHOUT_PTRACE_AT_ALL);
}

#[test]
fn first_steps_in_namespaces() {
    let root: &[&str] =
        &["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "--ipc", "--net"];
    let user: &[&str] = &[root, &["--user", "--map-root-user"]].concat();
    let before = if is_root() { root } else { user };
    let can_run = Command::new(before[0]).args(&before[1..]).arg("true").status();
    if !can_run.is_ok_and(|status| status.success()) {
        heapr_testkit::cannot_run_here("first steps in namespaces: unshare is refused here");
        return;
    }
    Place::new().check_all("inside", before, WITH_A_PROCESS);
}

#[test]
fn the_steps_are_fifty() {
    assert!(TIPS.len() + STEPS.len() >= 50, "{}", TIPS.len() + STEPS.len());
}
