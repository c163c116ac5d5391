//! Actions (`--stacks so --frames st --images …`), in the order in which they were given.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use heapr_query::{Action, FramePattern, GroupBy, Metric};
use heapr_table::SortRows as _;

/// Action as it was given. Its value stays text until the trace file is known: in `--stacks FILE`
/// the value is the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenAction {
    option: &'static str,
    values: Vec<String>,
}

/// Actions of a command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActionArguments {
    given: Vec<GivenAction>,
}

/// Sorted actions: option, alias, help.
const SORTED: [(&str, &str, &str); 8] = [
    ("stacks", "stack", "Rank by whole stack"),
    ("frames", "frame", "Rank by innermost frame"),
    ("functions", "function", "Rank functions, each with all that it calls; recursion counts once"),
    ("function-lines", "function-line", "Rank lines of functions, each with all that is called from it"),
    ("lines", "line", "Rank by source line of the innermost frame"),
    ("images", "image", "Rank by module of the innermost frame"),
    ("by-thread", "threads", "Rank by allocating thread"),
    ("invert", "top-down", "Print the tree of calls from the start down"),
];
const CALLERS: &str = "callers";
const BY: &str = "by";
/// Values of `--by`, and their actions.
const KINDS: [(&str, &str); 7] = [
    ("stack", "stacks"),
    ("frame", "frames"),
    ("function", "functions"),
    ("function-line", "function-lines"),
    ("line", "lines"),
    ("image", "images"),
    ("thread", "by-thread"),
];

/// Parser of a sort key.
pub(crate) fn sort_key() -> impl TypedValueParser<Value = Metric> {
    let values = Metric::sort_keys().map(|metric| PossibleValue::new(metric.key()).help(metric.words()));
    PossibleValuesParser::new(values).try_map(|key| Metric::of_key(&key).ok_or("it is no sort key"))
}

impl Args for ActionArguments {
    fn augment_args(mut command: Command) -> Command {
        for (name, alias, help) in SORTED {
            command = command.arg(
                Arg::new(name)
                    .long(name)
                    .alias(alias)
                    .help(help)
                    .long_help(format!("{help}, sorted by KEY (see --sort)"))
                    .value_name("KEY")
                    .num_args(0..=1)
                    .default_missing_value("")
                    .action(ArgAction::Append)
                    .help_heading("Actions"),
            );
        }
        command = command.arg(
            Arg::new(BY)
                .long(BY)
                .help("Rank by stack, frame, function, function-line, line, image or thread; a sort key may follow")
                .value_names(["KIND", "KEY"])
                .num_args(1..=2)
                .action(ArgAction::Append)
                .help_heading("Actions"),
        );
        command.arg(
            Arg::new(CALLERS)
                .long(CALLERS)
                .help("Print the tree of callers of a frame; a sort key may follow")
                .value_names(["FRAME", "KEY"])
                .num_args(1..=2)
                .action(ArgAction::Append)
                .help_heading("Actions"),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ActionArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut placed: Vec<(usize, GivenAction)> = Vec::new();
        for option in SORTED.iter().map(|&(name, _, _)| name).chain([CALLERS, BY]) {
            let Some(occurrences) = matches.get_occurrences::<String>(option) else { continue };
            let mut indices = matches.indices_of(option).into_iter().flatten();
            for values in occurrences {
                let mut values: Vec<String> = values.cloned().collect();
                let index = indices.by_ref().take(values.len().max(1)).min().unwrap_or(usize::MAX);
                let option = if option == BY { kind(&values.remove(0))? } else { option };
                placed.push((index, GivenAction { option, values }));
            }
        }
        placed.sort_rows_by_key(|&(index, _)| index);
        Ok(Self { given: placed.into_iter().map(|(_, given)| given).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl ActionArguments {
    /// Removes the last value that is not a sort key: in `heapr report --stacks FILE` this is the
    /// file.
    pub(crate) fn take_file(&mut self) -> Option<String> {
        let given = self.given.iter_mut().rev().find(|given| {
            given.sort_value().is_some_and(|value| !value.is_empty() && Metric::of_key(value).is_none())
        })?;
        given.values.pop()
    }

    /// Parses the actions. `sort` is the key of actions that are given without one.
    ///
    /// # Errors
    /// A sort key or a frame pattern cannot be parsed.
    pub(crate) fn actions(&self, sort: Metric) -> anyhow::Result<Vec<Action>> {
        self.given.iter().map(|given| given.action(sort)).collect()
    }
}

/// Returns the action of `--by KIND`.
fn kind(text: &str) -> Result<&'static str, clap::Error> {
    let known = KINDS.iter().find(|(kind, action)| text == *kind || text == *action);
    known.map(|&(_, action)| action).ok_or_else(|| {
        let kinds = KINDS.map(|(kind, _)| kind).join(", ");
        clap::Error::raw(clap::error::ErrorKind::InvalidValue, format!("--by {text}: it is one of {kinds}\n"))
    })
}

impl GivenAction {
    fn sort_value(&self) -> Option<&str> {
        let at = usize::from(self.option == CALLERS);
        self.values.get(at).map(String::as_str)
    }

    fn action(&self, sort: Metric) -> anyhow::Result<Action> {
        let sort = match self.sort_value() {
            None | Some("") => sort,
            Some(text) => Metric::of_key(text).ok_or_else(|| {
                anyhow::anyhow!("--{} {text}: {text:?} is no sort key: {}", self.option, Metric::key_list())
            })?,
        };
        let ranking = |by| Action::Ranking { by, sort };
        Ok(match self.option {
            "stacks" => ranking(GroupBy::Stacks),
            "frames" => ranking(GroupBy::Frames),
            "lines" => ranking(GroupBy::Lines),
            "images" => ranking(GroupBy::Images),
            "by-thread" => ranking(GroupBy::Threads),
            "functions" => Action::Functions { sort, by_line: false },
            "function-lines" => Action::Functions { sort, by_line: true },
            "invert" => Action::TopDown { sort },
            _ => Action::Callers {
                of: FramePattern::parse(self.values.first().map_or("", String::as_str))?,
                sort,
            },
        })
    }
}
