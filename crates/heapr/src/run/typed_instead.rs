//! Command to type in place of `heapr run` with words that are no program.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use heapr_findings::quoted;

/// Commands that run scripts, each after the ending of their names.
const COMMANDS_BY_ENDING: &str =
    "py=python3 js=node mjs=node cjs=node rb=ruby php=php pl=perl lua=lua sh=sh jar=java java=java";

/// Returns the command that runs scripts of this ending.
fn interpreter_of(ending: &str) -> Option<&'static str> {
    let known = COMMANDS_BY_ENDING.split(' ').filter_map(|pair| pair.split_once('='));
    let command = known.into_iter().find(|(known, _)| *known == ending)?.1;
    Some(if ending == "jar" { "java -jar" } else { command })
}

/// Returns advice for a word that is no program, or for a file that the kernel does not execute.
pub(super) fn advice(words: &[OsString]) -> Option<String> {
    let (name, rest) = words.split_first()?;
    if let Some((option, value)) = joined_value(name) {
        let rest: String = rest.iter().map(|word| format!(" {}", quoted(&word.to_string_lossy()))).collect();
        return Some(format!("type  heapr run {option} {}{rest}", quoted(value)));
    }
    if name.as_bytes().starts_with(b"-") {
        return Some(format!(
            "heapr run has no option {}; those it has stand before the program: heapr run -h",
            name.to_string_lossy()
        ));
    }
    let path = Path::new(name);
    if !path.is_file() {
        return None;
    }
    let rest: String = rest.iter().map(|word| format!(" {}", quoted(&word.to_string_lossy()))).collect();
    let shown = quoted(&name.to_string_lossy());
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let interpreter = interpreter_of(ending);
    let is_executable = path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    let is_known = is_executable && has_known_beginning(path);
    match interpreter {
        Some(interpreter) if !is_known => Some(format!("type  heapr run {interpreter} {shown}{rest}")),
        _ if is_known && !name.as_bytes().contains(&b'/') => Some(format!("type  heapr run ./{shown}{rest}")),
        _ => None,
    }
}

/// Splits `-o=FILE`: a value behind the only short option with one stands without the sign.
fn joined_value(word: &OsStr) -> Option<(&str, &str)> {
    let (option, value) = word.to_str()?.split_once('=')?;
    (option == "-o" && !value.is_empty()).then_some((option, value))
}

/// Whether the kernel executes the file: an ELF file, or a script that names its interpreter.
fn has_known_beginning(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut head));
    read.is_ok_and(|count| head[..count].starts_with(b"#!") || head[..count].starts_with(b"\x7fELF"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_typed_with_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str, mode: u32| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path.into_os_string()
        };
        let script = file("load.py", "print(1)", 0o644);
        let shown = script.to_string_lossy().into_owned();
        let words = [script, "a b".into()];
        assert_eq!(advice(&words), Some(format!("type  heapr run python3 {shown} 'a b'")));
        assert!(advice(&[file("b.py", "print(1)", 0o755)]).is_some(), "no shebang");
        assert_eq!(advice(&[file("c.py", "#!/usr/bin/python3", 0o755)]), None);
        assert_eq!(advice(&[file("text", "a", 0o644)]), None);
        assert!(advice(&["--verbose".into(), "./a".into()]).unwrap().contains("no option --verbose"));
        let joined: [OsString; 3] = ["-o=b.heapr".into(), "ls".into(), "-l".into()];
        assert_eq!(advice(&joined).as_deref(), Some("type  heapr run -o b.heapr ls -l"));
        assert!(advice(&["-x=1".into(), "ls".into()]).unwrap().contains("no option -x=1"));
        assert_eq!(advice(&["no-such".into()]), None);
    }
}
