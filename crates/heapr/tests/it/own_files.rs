//! Files that heapr creates, and those that it refuses to read.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use heapr_testkit::{Outcome, run};

use crate::recording::{Recording, Settings, record};

fn recorded() -> Recording {
    let recording = record(&["/bin/ls".to_owned(), "/".to_owned()], &Settings::default());
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    recording
}

fn heapr(folder: &Path, words: &str, variables: &[(&str, &Path)]) -> Outcome {
    let words: Vec<&str> = words.split(' ').collect();
    run(crate::recording::heapr(folder, &words).envs(variables.iter().copied()))
}

#[test]
fn reports_and_exports_are_for_their_user_alone_and_replace_links() {
    let recording = recorded();
    let folder = recording.folder();
    std::fs::write(folder.join("victim"), "mine").unwrap();
    for (words, output) in [
        ("report trace.heapr", "o.report"),
        ("report trace.heapr --format json", "o.json"),
        ("export trace.heapr --to pprof", "o.pprof"),
        ("export trace.heapr --to collapsed", "o.collapsed"),
        ("explain trace.heapr", "o.explain"),
        ("report trace.heapr --free-stacks", "o.frees"),
    ] {
        let written = heapr(folder, &format!("{words} -o {output}"), &[]);
        assert_eq!(written.status, 0, "{words}: {}", written.stderr);
        let mode = || folder.join(output).symlink_metadata().unwrap().permissions().mode();
        assert_eq!(mode() & 0o7777, 0o600, "{words}");
        let again = heapr(folder, &format!("{words} -o {output}"), &[]);
        assert_eq!(again.status, 2, "{words}: {}", again.stderr);
        std::fs::remove_file(folder.join(output)).unwrap();
        symlink(folder.join("victim"), folder.join(output)).unwrap();
        let forced = heapr(folder, &format!("{words} -f -o {output}"), &[]);
        assert_eq!(forced.status, 0, "{words}: {}", forced.stderr);
        assert!(folder.join(output).symlink_metadata().unwrap().is_file(), "{words}");
        assert_eq!(std::fs::read_to_string(folder.join("victim")).unwrap(), "mine", "{words}");
    }
    // A descriptor is written to as it is, whatever it leads to.
    let printed = heapr(folder, "report trace.heapr --totals -f -o /dev/stdout", &[]);
    assert!(printed.status == 0 && printed.stdout.contains("Outstanding"), "{printed:?}");
    assert!(Path::new("/dev/stdout").is_symlink());
}

#[test]
fn links_and_pipes_in_the_cache_do_no_harm() {
    let recording = recorded();
    let folder = recording.folder();
    let cache = folder.join("cache");
    let report = |variables: &[(&str, &Path)]| {
        let outcome = heapr(folder, "report trace.heapr", variables);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    };
    report(&[("XDG_CACHE_HOME", cache.as_path())]);
    let symbols = cache.join("heapr/symbols");
    let entries = || std::fs::read_dir(&symbols).unwrap().map(|entry| entry.unwrap().path());
    assert!(entries().count() > 0);
    std::fs::write(folder.join("victim"), "mine").unwrap();
    for (number, entry) in entries().enumerate().collect::<Vec<_>>() {
        std::fs::remove_file(&entry).unwrap();
        match number % 2 {
            0 => symlink(folder.join("victim"), &entry).unwrap(),
            _ => assert!(Command::new("mkfifo").arg(&entry).status().unwrap().success()),
        }
    }
    report(&[("XDG_CACHE_HOME", cache.as_path())]);
    assert_eq!(std::fs::read_to_string(folder.join("victim")).unwrap(), "mine");
    // A file that other users may write is not used as a cache.
    std::fs::set_permissions(&symbols, std::fs::Permissions::from_mode(0o777)).unwrap();
    let before = entries().count();
    entries().for_each(|entry| std::fs::remove_file(entry).unwrap());
    report(&[("XDG_CACHE_HOME", cache.as_path())]);
    assert!(before > 0 && entries().count() == 0);
}

#[test]
fn what_has_no_end_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    for words in [
        "report /dev/zero",
        "info /dev/zero",
        "explain /dev/zero",
        "explain pipe",
        "snapshot summary /dev/zero",
        "snapshot summary pipe",
        "snapshot check /dev/zero",
        "snapshot suspects /dev/zero /dev/zero",
        "snapshot diff pipe pipe",
        "snapshot graph --core /dev/zero -o core.heapr",
        "view --static page.html /dev/zero",
        "symbolize /dev/zero",
        "report --cull-lists /dev/zero -- /dev/null",
    ] {
        let outcome = heapr(folder.path(), words, &[]);
        assert_eq!(outcome.status, 2, "{words}: {} {}", outcome.stdout, outcome.stderr);
    }
}

/// Flips a bit in each chunk in turn, and in the processes with what depends on them: damage is a
/// value.
#[test]
fn a_changed_bit_in_any_table_makes_no_command_panic() {
    let recording = recorded();
    let sound = std::fs::read(recording.file()).unwrap();
    let word = |at: usize| u32::from_le_bytes(sound[at..at + 4].try_into().unwrap()) as usize;
    let mut at = 16;
    while sound[at..].starts_with(b"HPCK") {
        let (kind, stored) = (word(at + 4) & 0xffff, word(at + 8));
        let mut changed = sound.clone();
        changed[at + 48 + stored / 2] ^= 1;
        std::fs::write(recording.folder().join("changed.heapr"), changed).unwrap();
        for words in ["report changed.heapr --stacks", "explain changed.heapr", "info changed.heapr"] {
            let outcome = heapr(recording.folder(), words, &[]);
            assert!((0..3).contains(&outcome.status), "kind {kind}: {words}: {}", outcome.stderr);
            assert!(!outcome.stderr.contains("panicked"), "kind {kind}: {words}: {}", outcome.stderr);
        }
        at += 48 + stored;
    }
}

#[test]
fn of_a_file_that_nothing_fits_into_nothing_is_said_to_be_readable() {
    let folder = tempfile::tempdir().unwrap();
    let full = heapr(folder.path(), "run -f -o /dev/full -- /bin/ls /", &[]);
    assert_eq!(full.status, 0, "{}", full.stderr);
    assert!(full.stdout.contains("proc"), "{}", full.stdout);
    assert!(full.stderr.contains("No space left on device"), "{}", full.stderr);
    assert!(!full.stderr.contains("can be read"), "{}", full.stderr);
}
