//! Output that packages get from the program itself: completions, the manual, the version.

use std::process::Command;

use heapr_testkit::{Outcome, run};

use crate::recording::HEAPR;

fn heapr(arguments: &[&str], folder: &std::path::Path) -> Outcome {
    run(&mut crate::recording::heapr(folder, arguments))
}

#[test]
fn bash_completes_commands_and_options_of_commands() {
    let scratch = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let made = heapr(&["completions", shell], scratch.path());
        // Scripts of the first three ask heapr itself.
        let has_words = made.stdout.contains("complete-for-shell") || made.stdout.contains("suspects");
        assert!(made.status == 0 && has_words, "{shell}: {}", made.stderr);
        assert!(!made.stdout.contains("recorder-of-session"), "{shell}");
        std::fs::write(scratch.path().join(shell), made.stdout).unwrap();
    }
    let complete = |line: &str| {
        let script = format!(
            ". ./bash; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _heapr {HEAPR} \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &script]).current_dir(scratch.path());
        run(&mut bash).stdout
    };
    assert_eq!(complete("heapr sna"), "snapshot\n");
    assert_eq!(complete("heapr snapshot susp"), "suspects\n");
    assert_eq!(complete("heapr report --requ"), "--require-frames\n");
}

#[test]
fn the_manual_has_a_page_for_each_command_that_help_names() {
    let scratch = tempfile::tempdir().unwrap();
    let made = heapr(&["man", "--into", "pages"], scratch.path());
    assert_eq!(made.status, 0, "{}", made.stderr);
    let page = |name: &str| std::fs::read_to_string(scratch.path().join("pages").join(name)).unwrap();
    for (words, file) in
        [(&["man"][..], "heapr.1"), (&["man", "snapshot", "take"][..], "heapr-snapshot-take.1")]
    {
        assert_eq!(heapr(words, scratch.path()).stdout, page(file), "{words:?}");
    }
    let take = page("heapr-snapshot-take.1");
    assert!(take.contains("heapr snapshot take"), "the synopsis has the words that are typed");
    for section in ["EXAMPLES", "EXIT STATUS", "FILES", "ENVIRONMENT", "VERSION"] {
        assert!(
            take.contains(&format!("\n.SH \"{section}\"\n")) || take.contains(&format!("\n.SH {section}\n")),
            "{section}: {take}"
        );
    }
    let version = concat!("heapr ", env!("CARGO_PKG_VERSION"));
    assert!(take.lines().last().is_some_and(|line| line.starts_with(version)), "{take}");
    assert!(take.lines().any(|line| line.starts_with(".TH") && line.contains(version)), "{take}");
    // The commands that `--help` lists, without hidden ones.
    let help = heapr(&["--help"], scratch.path()).stdout;
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let listed = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let listed: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(listed.len() > 10, "{help}");
    for command in listed.into_iter().filter(|command| *command != "help") {
        assert!(page(&format!("heapr-{command}.1")).contains(".TH"), "{command}");
    }
    assert!(!scratch.path().join("pages/heapr-recorder-of-session.1").exists());
    let again = heapr(&["man", "--into", "pages"], scratch.path());
    assert!(again.status == 2 && again.stderr.contains("exists"), "{}", again.stderr);
    assert_eq!(heapr(&["man", "--into", "pages", "-f"], scratch.path()).status, 0);
    let unknown = heapr(&["man", "snapshot", "tak"], scratch.path());
    assert!(unknown.status == 2 && unknown.stderr.contains("suspects"), "{}", unknown.stderr);
}

#[test]
fn the_version_says_what_is_built_in() {
    let scratch = tempfile::tempdir().unwrap();
    let long = heapr(&["--version"], scratch.path()).stdout;
    assert!(long.starts_with(concat!("heapr ", env!("CARGO_PKG_VERSION"))), "{long}");
    for word in ["x86_64", "agent       built in", "page"] {
        assert!(long.contains(word), "{word}: {long}");
    }
    assert_eq!(heapr(&["-V"], scratch.path()).stdout.lines().count(), 1);
}

#[test]
fn helpers_for_tests_of_node_programs_find_what_grows() {
    if Command::new("node").arg("--version").output().is_err() {
        heapr_testkit::not_run("there is no node");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../../node");
    std::fs::create_dir(scratch.path().join("node_modules")).unwrap();
    std::os::unix::fs::symlink(package, scratch.path().join("node_modules/heapr")).unwrap();
    let test = scratch.path().join("growth.test.js");
    std::fs::copy(format!("{package}/test/growth.test.js"), &test).unwrap();
    let mut node = Command::new("node");
    node.arg("--test").arg(&test).env("HEAPR", HEAPR).current_dir(scratch.path());
    let outcome = run(&mut node);
    assert_eq!(outcome.status, 0, "{}{}", outcome.stdout, outcome.stderr);
}
