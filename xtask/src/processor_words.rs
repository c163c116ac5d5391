//! Checks that only folders named `arch` know the processor: names of registers, of the processor
//! and of the assembler, and numbers of system calls. `ARCHITECTURE.md` lists the exceptions, each
//! with its reason.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;

use crate::sources::rust_files;

/// Heading of the list in `ARCHITECTURE.md`, whose rows begin with a file's path in backticks.
const HEADING: &str = "## 7. Files outside of `arch/` that know the processor";

/// Words that only code for one processor has.
const WORDS: &[&str] = &[
    "rax",
    "rbx",
    "rcx",
    "rdx",
    "rsi",
    "rdi",
    "rbp",
    "rsp",
    "rip",
    "eax",
    "ebx",
    "ecx",
    "edx",
    "esi",
    "edi",
    "r8",
    "r9",
    "r10",
    "r11",
    "r12",
    "r13",
    "r14",
    "r15",
    "r8d",
    "r9d",
    "r10d",
    "r11d",
    "orig_rax",
    "fs_base",
    "gs_base",
    "eflags",
    "rflags",
    "xmm0",
    "xmm1",
    "ymm0",
    "rdtsc",
    "rdtscp",
    "iced_x86",
    "asm",
    "naked_asm",
    "global_asm",
];

/// Returns the files outside of such folders that know the processor and are not in the list, with
/// a word of each. Rows of the list whose file does not know it follow.
pub(crate) fn breaches(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let mut listed = listed(&text);
    let mut found = Vec::new();
    for path in [rust_files(&root.join("crates"))?, rust_files(&root.join("xtask"))?].concat() {
        let is_of_arch = path.components().any(|part| part.as_os_str() == "arch");
        if is_of_arch || path.ends_with(file!()) {
            continue;
        }
        let source = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let Some(word) = known_word(&source) else { continue };
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if !listed.remove(&shown) {
            found.push(format!("{shown} knows the processor ({word}), and is not in a folder arch"));
        }
    }
    let stale = listed.into_iter();
    found.extend(stale.map(|row| format!("ARCHITECTURE.md lists {row}, which does not know the processor")));
    Ok(found)
}

/// Paths in the first column of the list.
fn listed(text: &str) -> BTreeSet<String> {
    let behind = text.split_once(HEADING).map_or("", |(_, behind)| behind);
    let section = behind.split("\n## ").next().unwrap_or("");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
}

/// First word by which a source knows the processor.
fn known_word(source: &str) -> Option<&str> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut rest = source;
    while let Some(start) = rest.find(is_letter) {
        rest = &rest[start..];
        let end = rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let is_macro = word.ends_with("asm");
        // Folders of Debian and names of targets do not depend on code.
        let is_name = behind.starts_with("-linux") || behind.starts_with("-unknown");
        let is_processor = word.to_ascii_lowercase().contains("x86_64") && !is_name
            || word == "x86" && behind.starts_with("-64");
        if WORDS.contains(&word) && (!is_macro || behind.starts_with('!')) || is_processor {
            return Some(word);
        }
        rest = behind;
    }
    source.lines().find(|line| is_call_number(line)).map(str::trim)
}

/// True if a line gives a system call a number.
fn is_call_number(line: &str) -> bool {
    let line = line.trim_start();
    let begins_with_digit =
        |text: &str| text.trim_start().starts_with(|letter: char| letter.is_ascii_digit());
    let declared = line.split_once("const SYS_").and_then(|(_, rest)| rest.split_once('='));
    let listed = line.split_once("Call::new(\"").or_else(|| line.split_once("Call::of_start(\""));
    let listed = listed.and_then(|(_, rest)| rest.split_once(','));
    declared.is_some_and(|(_, value)| begins_with_digit(value))
        || listed.is_some_and(|(_, value)| begins_with_digit(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_names_and_numbers_of_calls_are_found() {
        assert_eq!(known_word("let a = registers.rsp;"), Some("rsp"));
        assert_eq!(known_word("// in x86-64's order"), Some("x86"));
        assert_eq!(known_word("const SYS_MUNMAP: u64 = 11;"), Some("const SYS_MUNMAP: u64 = 11;"));
        assert!(known_word("    Call::new(\"mmap\", 9, [0; 6]),").is_some());
        assert!(known_word("unsafe { core::arch::asm!(\"nop\") }").is_some());
        for line in [
            "\"/lib/x86_64-linux-gnu/libc.so.6\"",
            "let asm = 1;",
            "const CAP_SYS_PTRACE: u32 = 19;",
            "Call::new(\"mmap\", libc::SYS_mmap as u32, [0; 6])",
            "word of strip or rsps",
        ] {
            assert_eq!(known_word(line), None, "{line}");
        }
    }

    #[test]
    fn the_list_is_the_first_column_of_the_section() {
        let text = format!(
            "| `no` | a |\n{HEADING}\n\n| file | reason |\n|---|---|\n| `a/b.rs` | c `d` |\n## 8\n| `e` |"
        );
        assert_eq!(listed(&text).into_iter().collect::<Vec<_>>(), ["a/b.rs"]);
    }
}
