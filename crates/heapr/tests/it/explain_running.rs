//! `heapr explain PID` on programs that work: sums hold meanwhile, and a healthy program gets no
//! advice.

use std::process::{Child, Command, Stdio};

use heapr_testkit::wait_until;

use crate::explained::{explain, rss_bytes_of_smaps};

/// Program that waits, and is killed with the test.
struct Program(Child);

impl Program {
    fn start(words: &[&str]) -> Option<Self> {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok().map(Self)
    }

    /// Waits until the program has this much memory and stops growing.
    fn wait_for_bytes(&self, least_bytes: u64) {
        let mut last = 0;
        wait_until("it has its memory", || {
            let now = rss_bytes_of_smaps(self.0.id());
            let is_there = now >= least_bytes && now == std::mem::replace(&mut last, now);
            is_there.then_some(())
        });
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn nothing_is_advised_for_healthy_programs() {
    let keeps = "kept = [str(at) * 9 for at in range(300000)]; input()";
    let node = "const kept = Array.from({ length: 200000 }, (_, at) => ({ at })); process.stdin.on('data', () => kept.length)";
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("redis");
    let programs: [(&[&str], u64); 4] = [
        (&["/usr/bin/python3", "-c", keeps], 30 << 20),
        (&["node", "-e", node], 40 << 20),
        (&["redis-server", "--port", "0", "--unixsocket", socket.to_str().unwrap(), "--save", ""], 6 << 20),
        (&["jq", "."], 1 << 20),
    ];
    for (words, least_bytes) in programs {
        let Some(program) = Program::start(words) else {
            heapr_testkit::not_run(format_args!("there is no {}", words[0]));
            continue;
        };
        program.wait_for_bytes(least_bytes);
        let answer = explain(program.0.id(), &["--deep"]);
        assert_eq!(answer["findings"].as_array().unwrap().len(), 0, "{words:?}: {}", answer["findings"]);
        let resident = &answer["resident"];
        let (unknown, all) =
            (resident["unknown_bytes"].as_u64().unwrap(), resident["rss_bytes"].as_u64().unwrap());
        assert!(unknown * 50 <= all, "{words:?}: {unknown} of {all}: {resident}");
    }
}

#[test]
fn the_sum_holds_while_a_program_works() {
    // The program makes and frees objects all the time, in memory that it has from its first round
    // on.
    let works = "import threading\n\
                 def work():\n    kept = [0] * 200000\n    while True:\n        for at in range(len(kept)): kept[at] = at * 1000\n\
                 threading.Thread(target=work, daemon=True).start(); work()";
    let Some(program) = Program::start(&["/usr/bin/python3", "-c", works]) else {
        heapr_testkit::not_run("there is no python3");
        return;
    };
    program.wait_for_bytes(20 << 20);
    for options in [&[][..], &["--deep"]] {
        let before = rss_bytes_of_smaps(program.0.id());
        let answer = explain(program.0.id(), options);
        let after = rss_bytes_of_smaps(program.0.id());
        let lines = answer["resident"]["lines"].as_array().unwrap();
        let sum: u64 = lines.iter().map(|line| line["bytes"].as_u64().unwrap()).sum();
        let (least, most) = (before.min(after), before.max(after));
        assert!(sum * 1000 >= least * 995 && sum * 995 <= most * 1000, "{before}, {sum}, {after}");
    }
}
