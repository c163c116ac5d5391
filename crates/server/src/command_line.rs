//! Command lines for copying, quoted for a POSIX shell.

use heapr_filters::FilterArguments;

use crate::trace_file::TraceFile;

/// Builds `heapr` with its arguments.
pub(crate) fn command(words: &[&str]) -> String {
    let quoted: Vec<String> = std::iter::once("heapr").chain(words.iter().copied()).map(quoted).collect();
    quoted.join(" ")
}

/// Builds `heapr report FILE …`.
pub(crate) fn report_command(file: &TraceFile, action: &[&str], filter: &FilterArguments) -> String {
    let path = file.path.display().to_string();
    let words = filter.words();
    let all =
        ["report", &path].into_iter().chain(action.iter().copied()).chain(words.iter().map(String::as_str));
    command(&all.collect::<Vec<_>>())
}

fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(&byte) || byte >= 0x80;
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gives_the_words_back() {
        let words =
            ["report", "/tmp/a b.heapr", "libc.so.6!", "it's", "", "$(reboot)", "é", "a\nb", "--x=~*"];
        let line = command(&words);
        assert!(line.starts_with("heapr report '/tmp/a b.heapr' 'libc.so.6!' "));
        let script = format!("heapr() {{ printf '%s\\0' \"$@\"; }}; {line}");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let back: Vec<String> =
            String::from_utf8(output.stdout).unwrap().split_terminator('\0').map(str::to_owned).collect();
        assert_eq!(back, words);
    }
}
