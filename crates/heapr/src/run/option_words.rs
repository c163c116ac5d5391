//! Options of `heapr run` whose value may be the next word, for code that parses the command line
//! without allocating.

/// Options with their dashes. A test compares them with the command line's own.
pub(crate) const OPTIONS_WITH_VALUES: &[&str] = &[
    "-o",
    "--output",
    "--fail-on",
    "--buffer-size",
    "--min-buffers",
    "--max-buffers",
    "--flush-timer",
    "--on-full",
    "--stack-events",
    "--stacks",
    "--stackwalk",
    "--buffersize",
    "--minbuffers",
    "--maxbuffers",
    "--flushtimer",
    "--maxfile",
    "--max-frames",
    "--allocator",
    "--lang",
    "--sample",
    "--full-on-growth",
    "--for",
    "--mode",
    "--memory",
    "--max-file",
    "--rotate",
    "--keep",
    "--snapshot-every",
    "--contents",
    "--at-rss",
    "--on-growth",
    "--snapshot-signal",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    #[test]
    fn the_words_are_those_of_the_options() {
        let command = crate::Arguments::command();
        let run = command.find_subcommand("run").unwrap();
        let mut expected = BTreeSet::new();
        let takes_next_word =
            |option: &&clap::Arg| option.get_action().takes_values() && !option.is_require_equals_set();
        for option in run.get_opts().filter(takes_next_word) {
            let longs = option.get_long().into_iter().chain(option.get_all_aliases().into_iter().flatten());
            expected.extend(longs.map(|long| format!("--{long}")));
            expected.extend(
                option.get_short_and_visible_aliases().into_iter().flatten().map(|short| format!("-{short}")),
            );
        }
        let words: BTreeSet<String> =
            super::OPTIONS_WITH_VALUES.iter().map(|&word| word.to_owned()).collect();
        assert_eq!(words, expected);
        // Options of all commands stand before the command, and have no value.
        assert!(!command.get_opts().any(|option| option.get_action().takes_values()));
    }
}
