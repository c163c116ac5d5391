//! Examples of all commands, from `examples.txt`. A line with the command's words is followed by
//! pairs: a command line behind two spaces, and its effect behind four.

const EXAMPLES: &str = include_str!("examples.txt");

/// Command line and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Example {
    pub(crate) line: &'static str,
    pub(crate) meaning: &'static str,
}

/// Returns the examples of a command, by its words without `heapr`; `""` is heapr itself.
pub(super) fn of(path: &str) -> Vec<Example> {
    let name = if path.is_empty() { "heapr" } else { path };
    let lines = EXAMPLES.lines().skip_while(|line| *line != name).skip(1);
    let mut found: Vec<Example> = Vec::new();
    for line in lines.take_while(|line| line.starts_with(' ')) {
        let text = line.trim_start();
        match (line.len() - text.len(), found.last_mut()) {
            (2, _) => found.push(Example { line: text, meaning: "" }),
            (_, Some(last)) => last.meaning = text,
            (_, None) => {}
        }
    }
    found
}

/// Returns the commands that have examples.
#[cfg(test)]
pub(super) fn commands() -> impl Iterator<Item = &'static str> {
    EXAMPLES.lines().filter(|line| !line.starts_with(' '))
}
