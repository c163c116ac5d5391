//! Words of the command line before they are parsed: lists in xperf's spelling, short forms, and
//! tips for words that other tools have.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use heapr_findings::quoted;

/// Options in xperf's spelling, which take lists of words.
const LISTS_OF_XPERF: [&str; 3] = ["--requireframes", "--cullframes", "--culllists"];
/// Commands whose words may belong to another program.
const COMMANDS_WITH_PROGRAMS: [&str; 3] = ["run", "start", "node"];

/// Commands of other tools, and what is typed here. `…` stands for the words that follow.
const TIPS: [(&str, &str); 21] = [
    ("record", "heapr run …"),
    ("trace", "heapr run …"),
    ("profile", "heapr run …"),
    ("exec", "heapr run …"),
    ("live", "heapr top …"),
    ("monitor", "heapr top …"),
    ("tree", "heapr report … --invert"),
    ("table", "heapr report … --frames"),
    ("stats", "heapr report … --totals"),
    ("summary", "heapr report … --totals"),
    ("script", "heapr report … --format json"),
    ("flamegraph", "heapr export … --to flamegraph -o flamegraph.svg"),
    ("convert", "heapr export … --to FORMAT -o FILE"),
    ("pprof", "heapr export … --to pprof -o FILE.pb.gz"),
    ("leaks", "heapr explain …"),
    ("analyze", "heapr explain …"),
    ("compare", "heapr diff …"),
    ("detach", "heapr stop …"),
    ("dump", "heapr snapshot take …"),
    ("gui", "heapr view …"),
    ("version", "heapr --version"),
];

/// Returns the words in the form that is parsed.
pub(crate) fn normal(words: Vec<OsString>) -> Vec<OsString> {
    let Some(command) = words.get(1).and_then(|word| word.to_str()).map(str::to_owned) else { return words };
    if command == "attach" {
        return attaching(words);
    }
    if COMMANDS_WITH_PROGRAMS.contains(&command.as_str()) {
        return words;
    }
    let mut normal: Vec<OsString> = Vec::with_capacity(words.len());
    // Option of xperf whose list is being read, and whether it has a value yet.
    let mut list: Option<(&OsStr, bool)> = None;
    let mut is_options = true;
    for word in &words {
        let is_option = is_options && word.as_encoded_bytes().starts_with(b"-");
        if is_option || is_trace(word) {
            if let Some((option, false)) = list.take() {
                // The parser says that the value is missing.
                normal.push(option.to_owned());
            }
            is_options &= word != "--";
        }
        if is_option && word == "--json" {
            normal.push("--format=json".into());
        } else if is_option && LISTS_OF_XPERF.iter().any(|list| word == *list) {
            list = Some((word.as_os_str(), false));
        } else if let Some((option, has_value)) = &mut list {
            normal.push(joined(option, word));
            *has_value = true;
        } else {
            normal.push(word.clone());
        }
    }
    if let Some((option, false)) = list {
        normal.push(option.to_owned());
    }
    normal
}

/// True for the name of a trace, which no list of frames has.
fn is_trace(word: &OsStr) -> bool {
    Path::new(word).extension().is_some_and(|extension| extension == "heapr")
}

/// `--option=value`.
fn joined(option: &OsStr, value: &OsStr) -> OsString {
    let mut word = option.to_owned();
    word.push("=");
    word.push(value);
    word
}

/// `heapr attach PID …` as `heapr start --pid PID …`.
fn attaching(words: Vec<OsString>) -> Vec<OsString> {
    let mut rest = words.into_iter();
    let (heapr, _) = (rest.next(), rest.next());
    let mut normal: Vec<OsString> = heapr.into_iter().chain(["start".into()]).collect();
    let (mut takes_value, mut is_program) = (false, false);
    for word in rest {
        let is_option = !is_program && word.as_encoded_bytes().starts_with(b"-");
        if !is_program && !takes_value && !is_option {
            normal.push("--pid".into());
        }
        is_program |= word.as_os_str() == "--";
        takes_value = is_option
            && word.to_str().is_some_and(|text| {
                ["-p", "--pid", "--pids"].contains(&text) || crate::run::OPTIONS_WITH_VALUES.contains(&text)
            });
        normal.push(word);
    }
    normal
}

/// Returns the command to type in place of these words, if their meaning is known.
pub(crate) fn tip(words: &[OsString]) -> Option<String> {
    let command = words.get(1)?.to_str()?;
    let rest: Vec<String> = words.iter().skip(2).map(|word| quoted(&word.to_string_lossy())).collect();
    let is_number = |word: Option<&String>| word.is_some_and(|word| word.parse::<u32>().is_ok());
    let command_line = match command {
        "snapshot" if is_number(rest.first()) => format!("heapr snapshot take {}", rest.join(" ")),
        "start" if is_number(rest.first()) && !words.iter().any(is_target) => {
            let is_other = |word: &String| !is_number(Some(word));
            let (pids, others) = rest.split_at(rest.iter().position(is_other).unwrap_or(rest.len()));
            format!("heapr start --pid {} {}", pids.join(","), others.join(" "))
        }
        _ => {
            let (_, typed) = TIPS.iter().find(|(known, _)| *known == command)?;
            // A snapshot of JavaScript has a summary of its own.
            let is_snapshot = rest.first().is_some_and(|file| file.contains(".heapsnapshot"));
            let typed = if is_snapshot {
                typed.replace("report … --totals", "snapshot summary …")
            } else {
                (*typed).to_owned()
            };
            typed.replace('…', &rest.join(" "))
        }
    };
    Some(command_line.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Whether a word of `heapr start` gives a target.
fn is_target(word: &OsString) -> bool {
    let text = word.to_string_lossy();
    ["-p", "--pid", "--pids", "--flagged", "--"].iter().any(|target| text == *target)
        || text.starts_with("--pid=")
        || (text.starts_with("-p") && !text.starts_with("--"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn lists_of_xperf_become_options_with_one_value_each() {
        let normal = |line: &str| {
            normal(words(line)).iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            normal("heapr report a.heapr --cullframes a b --stacks --culllists c"),
            "heapr report a.heapr --cullframes=a --cullframes=b --stacks --culllists=c"
        );
        assert_eq!(
            normal("heapr report --require-frames a a.heapr"),
            "heapr report --require-frames a a.heapr"
        );
        assert_eq!(
            normal("heapr report --cullframes a b c.heapr d"),
            "heapr report --cullframes=a --cullframes=b c.heapr d"
        );
        assert_eq!(normal("heapr report --culllists --stacks"), "heapr report --culllists --stacks");
        assert_eq!(normal("heapr report --culllists"), "heapr report --culllists");
        assert_eq!(normal("heapr report -- --culllists a"), "heapr report -- --culllists a");
        assert_eq!(normal("heapr info --json a"), "heapr info --format=json a");
        assert_eq!(normal("heapr info -- --json"), "heapr info -- --json");
        for line in ["heapr", "heapr run ls --json --cullframes a b", "heapr start -- ls --json"] {
            assert_eq!(normal(line), line);
        }
        assert_eq!(normal("heapr attach 7 -o x"), "heapr start --pid 7 -o x");
        assert_eq!(normal("heapr attach -q 7 8"), "heapr start -q --pid 7 --pid 8");
        assert_eq!(normal("heapr attach -o x -p 7"), "heapr start -o x -p 7");
        assert_eq!(normal("heapr attach"), "heapr start");
    }

    #[test]
    fn words_of_other_tools_have_a_command_to_type() {
        for (line, typed) in [
            ("heapr record ./a b", "heapr run ./a b"),
            ("heapr live 7", "heapr top 7"),
            ("heapr tree a.heapr", "heapr report a.heapr --invert"),
            ("heapr tree", "heapr report --invert"),
            ("heapr summary a.heapsnapshot", "heapr snapshot summary a.heapsnapshot"),
            ("heapr summary a.heapr", "heapr report a.heapr --totals"),
            ("heapr version", "heapr --version"),
            ("heapr snapshot 1234", "heapr snapshot take 1234"),
            ("heapr start 1234", "heapr start --pid 1234"),
            ("heapr start 7 8 -q", "heapr start --pid 7,8 -q"),
            ("heapr leaks a$b", "heapr explain 'a$b'"),
        ] {
            assert_eq!(tip(&words(line)).as_deref(), Some(typed), "{line}");
        }
        for line in
            ["heapr", "heapr report", "heapr snapshot take 1", "heapr start 12 -p 7", "heapr start 12 -- ls"]
        {
            assert_eq!(tip(&words(line)), None, "{line}");
        }
    }
}
