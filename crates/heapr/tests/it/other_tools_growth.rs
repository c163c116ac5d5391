//! Growth in files of other tools: reported if they have enough moments, unknown if not.

use std::path::Path;

use crate::recording::with_sessions;

/// Returns the first lines of a file's explanation.
fn said(folder: &Path, text: &str) -> String {
    let file = folder.join("massif.out.1");
    std::fs::write(&file, text).unwrap();
    let told = with_sessions(folder, &["explain", file.to_str().unwrap()]);
    assert_eq!(told.status, 0, "{}", told.stderr);
    told.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a massif file with these bytes at each snapshot; the snapshots in `told` have their
/// stack.
fn massif(unit: &str, bytes: &[u64], told: &[usize]) -> String {
    let mut text = format!("desc: (none)\ncmd: ./srv\ntime_unit: {unit}\n");
    for (number, bytes) in bytes.iter().enumerate() {
        let tree = match told.contains(&number) {
            false => "heap_tree=empty".to_owned(),
            true => format!(
                "heap_tree=detailed\nn1: {bytes} (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n \
                 n0: {bytes} 0x109151: remember (srv.c:4)"
            ),
        };
        text += &format!(
            "#-----------\nsnapshot={number}\n#-----------\ntime={}\nmem_heap_B={bytes}\nmem_heap_extra_B=0\n\
             mem_stacks_B=0\n{tree}\n",
            number * 100
        );
    }
    text
}

fn rising(count: u64) -> Vec<u64> {
    (0..count).map(|at| at * 100_000).collect()
}

#[test]
fn a_massif_file_that_grows_is_said_to_grow() {
    let folder = tempfile::tempdir().unwrap();
    let said = |text: &str| said(folder.path(), text);
    // Files without stacks, with stacks at three moments, and at all of them.
    let bare = said(&massif("ms", &rising(40), &[]));
    assert!(bare.contains("Memory grows: 3.72 MiB are live after 3.900 s"), "{bare}");
    assert!(bare.contains("which function makes it grow is not told"), "{bare}");
    assert!(bare.contains("whose it is is told at no moment"), "{bare}");
    let some = said(&massif("ms", &rising(40), &[2, 20, 38]));
    assert!(some.contains("Memory grows: 3.72 MiB are live"), "{some}");
    assert!(some.contains("remember (srv.c:4) holds 3.62 MiB more at 3.800 s than at 0 ns"), "{some}");
    assert!(some.contains("whose it is is told at 3 of 40 moments"), "{some}");
    let all: Vec<usize> = (0..40).collect();
    let all = said(&massif("ms", &rising(40), &all));
    assert!(all.contains("Memory grows: remember (srv.c:4) holds 3.72 MiB"), "{all}");
    for told in [bare, some, all] {
        assert!(!told.contains("Nothing grows"), "{told}");
    }
}

#[test]
fn what_does_not_grow_is_not_said_to_and_few_moments_tell_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let said = |text: &str| said(folder.path(), text);
    let level: Vec<u64> = (0..40).map(|at: u64| at.min(5) * 700_000).collect();
    let told = said(&massif("ms", &level, &[39]));
    assert!(told.contains("Nothing grows") && !told.contains("Memory grows"), "{told}");
    let told = said(&massif("ms", &rising(3), &[2]));
    assert!(told.contains("Whether memory grows is not known: the file tells 3 moments."), "{told}");
    assert!(!told.contains("Nothing grows"), "{told}");
}

#[test]
fn instructions_are_no_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let told = said(folder.path(), &massif("i", &rising(40), &[]));
    assert!(told.contains("are live at the end"), "{told}");
    assert!(!told.contains("a second") && !told.contains("an hour"), "{told}");
}
