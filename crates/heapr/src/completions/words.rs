//! Words of a command line that is being typed: which command they are of, and which argument the
//! last one is.

use clap::{Arg, Command};

use super::candidates::{Candidate, Candidates, Kind};
use super::values;

/// State behind the words that are complete.
struct Place<'a> {
    command: &'a Command,
    /// Option that may have further values: how many it must have, and how many it may have.
    option: Option<(&'a Arg, usize, usize)>,
    /// Number of positional words.
    positionals: usize,
    /// `--` was typed.
    is_behind_dashes: bool,
}

/// Returns the candidates for the last word. `splits_at_equals`: the shell gives `--a=b` as three
/// words.
pub(super) fn completion(command: &Command, words: &[String], splits_at_equals: bool) -> Candidates {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    if splits_at_equals {
        // A value that is still empty: the last word is the sign itself.
        if words.last() == Some(&"=") {
            words.push("");
        }
        words.retain(|word| *word != "=");
    }
    let Some((typed, before)) = words.split_last() else { return Candidates::new(Kind::Words) };
    if before.first() == Some(&"attach") {
        return values::of_processes(typed);
    }
    let mut place = Place { command, option: None, positionals: 0, is_behind_dashes: false };
    for word in before {
        place.pass(word);
    }
    place.candidates(typed)
}

impl<'a> Place<'a> {
    /// Goes behind a word.
    fn pass(&mut self, word: &str) {
        if let Some((option, must, may)) = self.option.take()
            && may > 0
            && (must > 0 || !word.starts_with('-') && !is_path(word))
        {
            self.option = Some((option, must.saturating_sub(1), may - 1));
            return;
        }
        if self.is_in_program() {
            self.positionals += 1;
        } else if !self.is_behind_dashes && word == "--" {
            self.is_behind_dashes = true;
            self.positionals = 0;
        } else if !self.is_behind_dashes && word.len() > 1 && word.starts_with('-') {
            self.option = self.option_of(word).filter(|_| !word.contains('=')).and_then(with_values);
        } else if let Some(below) =
            self.command.find_subcommand(word).filter(|_| self.positionals == 0 && !self.is_behind_dashes)
        {
            self.command = below;
        } else {
            self.positionals += 1;
        }
    }

    /// True if the words belong to the program that is started.
    fn is_in_program(&self) -> bool {
        let takes_all = |argument: &&Arg| argument.is_trailing_var_arg_set();
        self.positionals > 0 && self.command.get_positionals().any(|argument| takes_all(&argument))
    }

    fn option_of(&self, word: &str) -> Option<&'a Arg> {
        let mut options = self.command.get_arguments().filter(|argument| !argument.is_positional());
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next()?;
            let has_name = |option: &&Arg| {
                option.get_long() == Some(name)
                    || option.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
            };
            return options.find(has_name);
        }
        let letter = word.chars().last()?;
        options.find(|option| option.get_short() == Some(letter))
    }

    fn positional(&self) -> Option<&'a Arg> {
        if self.is_behind_dashes
            && let Some(last) = self.command.get_positionals().find(|one| one.is_last_set())
        {
            return Some(last);
        }
        let mut positionals: Vec<&Arg> =
            self.command.get_positionals().filter(|one| !one.is_last_set()).collect();
        positionals.sort_by_key(|one| one.get_index());
        let last = positionals.last().copied();
        let takes_more = |one: &&Arg| {
            one.is_trailing_var_arg_set() || one.get_num_args().is_some_and(|range| range.max_values() > 1)
        };
        positionals.get(self.positionals).copied().or_else(|| last.filter(takes_more))
    }

    fn candidates(&self, typed: &str) -> Candidates {
        if let Some((option, must, may)) = self.option
            && may > 0
        {
            let mut found = values::of_value(option, typed);
            if must == 0 {
                found.list.extend(self.of_positional(typed).list);
            }
            return found;
        }
        if self.is_in_program() {
            return Candidates::new(Kind::Files);
        }
        if !self.is_behind_dashes && typed.starts_with("--") && typed.contains('=') {
            return self.of_joined(typed);
        }
        if !self.is_behind_dashes && typed.starts_with('-') {
            return self.of_options(typed);
        }
        let mut found = Candidates::new(Kind::Words);
        if self.positionals == 0 && !self.is_behind_dashes {
            for below in self.command.get_subcommands().filter(|below| !below.is_hide_set()) {
                let about = below.get_about().map(ToString::to_string).unwrap_or_default();
                found.add(typed, below.get_name(), about);
            }
        }
        if found.list.is_empty() { self.of_positional(typed) } else { found }
    }

    fn of_positional(&self, typed: &str) -> Candidates {
        self.positional().map_or_else(
            || Candidates::new(Kind::Words),
            |argument| match values::of_value(argument, typed) {
                // A program is named by its path, or found in PATH.
                found if found.kind == Kind::Commands && is_path(typed) => Candidates::new(Kind::Files),
                found => found,
            },
        )
    }

    fn of_options(&self, typed: &str) -> Candidates {
        let mut found = Candidates::new(Kind::Words);
        for option in crate::help::options(self.command) {
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            if let Some(long) = option.get_long() {
                found.add(typed, format!("--{long}"), help);
            }
        }
        found
    }

    /// Returns the candidates of `--option=value`.
    fn of_joined(&self, typed: &str) -> Candidates {
        let none = Candidates::new(Kind::Words);
        let Some((name, value)) = typed.split_once('=') else { return none };
        let Some(option) = self.option_of(name) else { return none };
        let mut found = values::of_value(option, value);
        for Candidate { word, .. } in &mut found.list {
            *word = format!("{name}={word}");
        }
        found
    }
}

/// Returns an option with the numbers of values that it must and may have; `None` if it takes none.
fn with_values(option: &Arg) -> Option<(&Arg, usize, usize)> {
    if !option.get_action().takes_values() || option.is_require_equals_set() {
        return None;
    }
    let range = option.get_num_args()?;
    Some((option, range.min_values(), range.max_values()))
}

/// True for a word that can only be a file.
fn is_path(word: &str) -> bool {
    word.contains(['/', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(line: &str, splits: bool) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut command = crate::described();
        command.build();
        let found = completion(&command, &words, splits);
        found.list.into_iter().map(|candidate| candidate.word).collect()
    }

    fn kind_of(line: &str) -> Kind {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut command = crate::described();
        command.build();
        completion(&command, &words, false).kind
    }

    #[test]
    fn words_are_completed_by_their_place() {
        assert_eq!(words_of("sna", false), ["snapshot"]);
        assert_eq!(words_of("snapshot susp", false), ["suspects"]);
        assert_eq!(words_of("--wide snapshot susp", false), ["suspects"]);
        assert_eq!(words_of("report --requ", false), ["--require-frames"]);
        assert_eq!(words_of("report --format j", false), ["json"]);
        assert_eq!(words_of("report --format=j", false), ["--format=json"]);
        assert_eq!(words_of("report --format = j", true), ["json"]);
        assert_eq!(words_of("report --format =", true), ["text", "json", "csv"]);
        assert_eq!(words_of("report --stacks st", false), ["st", "stc"]);
        assert_eq!(words_of("export a.heapr --to coll", false), ["collapsed"]);
        assert_eq!(words_of("recorder", false), [""; 0], "an internal command");
        assert_eq!(words_of("complete-for", false), [""; 0], "an internal command");
        assert_eq!(words_of("start web --pid x --", false).first().map(String::as_str), Some("--pid"));
        for (line, kind) in [
            ("run ", Kind::Commands),
            ("run ./a", Kind::Files),
            ("run -o ", Kind::Files),
            ("run -q ls ", Kind::Files),
            ("run ls --x", Kind::Files),
            ("start -- ", Kind::Commands),
            ("report no-such-folder/", Kind::Files),
            ("mcp --folder ", Kind::Directories),
            ("top ", Kind::Described),
            ("attach ", Kind::Described),
            ("start --pid ", Kind::Described),
            ("status ", Kind::Described),
        ] {
            assert_eq!(kind_of(line), kind, "{line}");
        }
        let own = std::os::unix::process::parent_id().to_string();
        assert!(!words_of("top ", false).contains(&own));
    }
}
