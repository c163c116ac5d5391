//! Page of the book, in blocks.

use std::path::Path;

/// Command and its output.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) output: String,
}

/// Part of a page.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    /// Lines of text.
    Text(String),
    /// File: the fence's first line, its name, its content.
    File { fence: String, name: String, content: String },
    /// Commands.
    Console { steps: Vec<Step> },
}

/// A page.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) blocks: Vec<Block>,
    needs: Vec<String>,
}

impl Page {
    /// Parses a page.
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let needs = text.lines().find_map(|line| line.strip_prefix("<!-- needs: ")?.strip_suffix(" -->"));
        let needs = needs.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        let mut blocks = Vec::new();
        let mut lines = text.lines();
        let mut plain = String::new();
        while let Some(line) = lines.next() {
            let info = line.strip_prefix("```").unwrap_or_default();
            if info.is_empty() && !line.starts_with("```") {
                plain.push_str(line);
                plain.push('\n');
                continue;
            }
            let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let name = info.split_whitespace().find_map(|word| word.strip_prefix("file="));
            let block = if info == "console" {
                Block::Console { steps: steps(&inside, path) }
            } else if let Some(name) = name {
                let content = inside.iter().map(|line| format!("{line}\n")).collect();
                Block::File { fence: line.to_owned(), name: name.to_owned(), content }
            } else {
                // Commands are run, or have a reason why not.
                let is_command = info.starts_with("console") && !info.starts_with("console not-run: ");
                assert!(
                    !is_command && !["sh", "bash", "shell"].contains(&info),
                    "{}: {line}",
                    path.display()
                );
                plain.push_str(line);
                plain.push('\n');
                inside.iter().chain([&"```"]).for_each(|line| {
                    plain.push_str(line);
                    plain.push('\n');
                });
                continue;
            };
            blocks.push(Block::Text(std::mem::take(&mut plain)));
            blocks.push(block);
        }
        blocks.push(Block::Text(plain));
        Self { blocks, needs }
    }

    /// All blocks of the page.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter()
    }

    /// Returns a program that the page needs and that is not in the path.
    pub(crate) fn missing_tool(&self) -> Option<&str> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |tool: &str| match tool {
            "root" => std::fs::metadata("/proc/self")
                .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0),
            tool => std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()),
        };
        self.needs.iter().map(String::as_str).find(|tool| !is_there(tool))
    }

    /// Writes the page back.
    pub(crate) fn write(&self, path: &Path) {
        let mut text = String::new();
        for block in &self.blocks {
            match block {
                Block::Text(plain) => text.push_str(plain),
                Block::File { fence, content, .. } => text.push_str(&format!("{fence}\n{content}```\n")),
                Block::Console { steps } => {
                    text.push_str("```console\n");
                    for step in steps {
                        text.push_str(&format!("$ {}\n{}", step.command, step.output));
                    }
                    text.push_str("```\n");
                }
            }
        }
        std::fs::write(path, text).unwrap();
    }
}

fn steps(lines: &[&str], path: &Path) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in lines {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), output: String::new() });
        } else {
            let step =
                steps.last_mut().unwrap_or_else(|| panic!("{}: output before a command", path.display()));
            step.output.push_str(&format!("{line}\n"));
        }
    }
    steps
}
