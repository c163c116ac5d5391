//! Names of functions, lines and files, and what of them reaches a terminal.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use heapr_testkit::{Outcome, run};
use serde_json::Value;

/// Program that allocates on two lines of one function. The function's name is long, and the
/// thread's name has characters that a terminal would interpret.
const SOURCE: &str = r#"
#include <cstdlib>
#include <sys/prctl.h>
namespace a_company_of_some_size { namespace billing_and_invoices { namespace {
struct Aggregator {
  void* kept[8];
  __attribute__((noinline)) void aggregate_all_lines_of_all_invoices(unsigned long first_of_them, char** words) {
    kept[0] = malloc(10000);
    for (int number = 1; number < 4; number++) kept[number] = malloc(100000);
    asm volatile("" : : "r"(first_of_them), "r"(words), "r"(kept) : "memory");
  }
};
} } }
a_company_of_some_size::billing_and_invoices::Aggregator aggregator;
int main(int count, char** words) {
  prctl(PR_SET_NAME, "\033[2Jred\n\x9b");
  aggregator.aggregate_all_lines_of_all_invoices(count, words);
}
"#;
const FUNCTION: &str = "a_company_of_some_size::billing_and_invoices::(anonymous namespace)::Aggregator::\
                        aggregate_all_lines_of_all_invoices(unsigned long, char**)";

struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    /// Builds the program as `name` and records it into `trace.heapr`.
    fn new(name: &OsStr, flags: &[&str]) -> (Self, Outcome) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("program.cc"), SOURCE).unwrap();
        let program = folder.path().join(name);
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        let mut compiler = Command::new("g++");
        compiler.current_dir(folder.path()).args(flags).arg("program.cc").arg("-o").arg(&program);
        assert!(compiler.status().unwrap().success());
        let stage = Self { folder };
        let mut heapr = stage.heapr(&["run", "-o", "trace.heapr", "--"]);
        heapr.arg(program);
        let outcome = stage.run(heapr);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        (stage, outcome)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn heapr(&self, words: &[&str]) -> Command {
        let mut heapr = crate::recording::heapr(self.path(), words);
        heapr.env_remove("COLUMNS").env("XDG_CACHE_HOME", self.path()).env_remove("DEBUGINFOD_URLS");
        heapr
    }

    fn run(&self, mut heapr: Command) -> Outcome {
        run(&mut heapr)
    }

    fn text(&self, words: &[&str]) -> String {
        let outcome = self.run(self.heapr(words));
        assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
        outcome.stdout
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[words, &["--format", "json"]].concat())).unwrap()
    }
}

/// Returns the line of the innermost frame and the live bytes, for each group of the function.
fn lines_of(report: &Value) -> Vec<(u64, u64)> {
    let groups = report["groups"].as_array().unwrap().iter();
    let ours = groups.filter(|group| group["frames"][0]["symbol"] == FUNCTION);
    let mut lines: Vec<(u64, u64)> = ours
        .map(|group| {
            let line = group["frames"][0]["line"].as_u64().unwrap_or(0);
            (line, group["outstanding_bytes"].as_u64().unwrap())
        })
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_line_that_is_shown_holds_its_own_bytes() {
    let (stage, _) = Stage::new("program".as_ref(), &["-g", "-O1"]);
    let apart = [(8, 10_000), (9, 300_000)];
    assert_eq!(lines_of(&stage.json(&["report", "trace.heapr", "--stacks"])), apart);
    assert_eq!(lines_of(&stage.json(&["report", "trace.heapr", "--by", "line"])), apart);
    // A function has no line.
    assert_eq!(lines_of(&stage.json(&["report", "trace.heapr", "--frames"])), [(0, 310_000)]);
    let tree = stage.text(&["report", "trace.heapr", "--invert"]);
    assert!(tree.contains("program.cc:8") && tree.contains("program.cc:9"), "{tree}");
    let required = ["report", "trace.heapr", "--totals", "--require-frames", FUNCTION];
    assert_eq!(stage.json(&required)["totals"]["outstanding_bytes"], 310_000);
    // Stacks without lines differ by their functions alone.
    let collapsed = stage.text(&["export", "trace.heapr", "--to", "collapsed"]);
    assert_eq!(collapsed.matches("aggregate_all_lines_of_all_invoices").count(), 1, "{collapsed}");
}

#[test]
fn no_name_is_shortened_where_nobody_reads_at_a_screen() {
    let (stage, outcome) = Stage::new("program".as_ref(), &["-g", "-O1"]);
    assert!(outcome.stderr.contains(FUNCTION), "{}", outcome.stderr);
    for words in [
        &["report", "trace.heapr"][..],
        &["report", "trace.heapr", "--frames"],
        &["report", "trace.heapr", "--invert"],
        &["report", "trace.heapr", "--by", "line"],
    ] {
        assert!(stage.text(words).contains(FUNCTION), "{words:?}");
        let mut narrow = stage.heapr(words);
        narrow.env("COLUMNS", "80");
        let narrow = stage.run(narrow).stdout;
        assert!(!narrow.contains(FUNCTION) && narrow.contains('…'), "{narrow}");
        let mut wide = stage.heapr(words);
        wide.arg("--wide").env("COLUMNS", "80");
        assert!(stage.run(wide).stdout.contains(FUNCTION), "{words:?}");
    }
}

#[test]
fn what_a_terminal_would_act_on_is_not_printed() {
    let (stage, outcome) = Stage::new("pro\u{1b}[31m\u{202e}gram\n".as_ref(), &["-O1"]);
    let harmful = |character: char| {
        character.is_control() && character != '\n' || ('\u{202a}'..='\u{202e}').contains(&character)
    };
    assert!(!outcome.stderr.contains(harmful), "{:?}", outcome.stderr);
    for words in [
        &["report", "trace.heapr", "--by-thread"][..],
        &["report", "trace.heapr", "--images"],
        &["report", "trace.heapr", "--layout", "xperf"],
        &["info", "trace.heapr"],
    ] {
        let text = stage.text(words);
        assert!(!text.contains(harmful), "{words:?}: {text:?}");
        assert!(words.contains(&"xperf") || text.contains('\u{fffd}'), "{words:?}: {text:?}");
    }
    // JSON escapes what it must, and is exact.
    let report = stage.json(&["report", "trace.heapr", "--images"]);
    let images = report["groups"].as_array().unwrap().iter();
    let mut images = images.filter_map(|group| group["frames"][0]["module"].as_str());
    assert!(images.any(|image| image.ends_with("pro\u{1b}[31m\u{202e}gram\n")), "{report}");
}

#[test]
fn a_program_whose_path_is_no_text_has_names() {
    let name = PathBuf::from(OsStr::from_bytes(b"caf\xe9/program"));
    let (stage, _) = Stage::new(name.as_os_str(), &["-g", "-O1"]);
    assert_eq!(lines_of(&stage.json(&["report", "trace.heapr", "--stacks"])), [(8, 10_000), (9, 300_000)]);
}

#[test]
fn a_module_without_names_is_told_with_what_would_help() {
    let (stage, outcome) = Stage::new("program".as_ref(), &["-O1", "-s"]);
    let advice = "no names of functions for program (it is stripped): a debug package";
    let report = stage.text(&["report", "trace.heapr"]);
    for said in [&outcome.stderr, &report] {
        assert_eq!(said.matches(advice).count(), 1, "{said}");
    }
    let (stage, outcome) = Stage::new("program".as_ref(), &["-O1"]);
    assert!(!outcome.stderr.contains("no names"), "{}", outcome.stderr);
    assert!(!stage.text(&["report", "trace.heapr"]).contains("no names"));
}
