//! Parses the table of programs.

use anyhow::{Context as _, bail};

/// Built-in table.
const TABLE: &str = include_str!("programs.txt");

/// Program with its commands, and the kind that it is an example of.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) packages: Vec<String>,
    /// Command that must be found in the path.
    pub(super) needs: String,
    pub(super) is_small: bool,
    /// Command that is run from its beginning.
    pub(super) run: Option<String>,
    /// Command that is attached to.
    pub(super) serve: Option<String>,
    /// Command that is run during the attach.
    pub(super) load: Option<String>,
}

/// Returns all rows.
pub(super) fn programs() -> anyhow::Result<Vec<Program>> {
    let mut programs: Vec<Program> = Vec::new();
    for (number, line) in TABLE.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "program" {
            programs.push(Program { name: rest.to_owned(), ..Program::default() });
            continue;
        }
        let Some(program) = programs.last_mut() else { continue };
        match word {
            "" if line.is_empty() => {}
            "kind" => rest.clone_into(&mut program.kind),
            "package" => program.packages = rest.split(' ').map(str::to_owned).collect(),
            "needs" => rest.clone_into(&mut program.needs),
            "small" => program.is_small = true,
            "run" => program.run = Some(rest.to_owned()),
            "serve" => program.serve = Some(rest.to_owned()),
            "load" => program.load = Some(rest.to_owned()),
            // Continuation of the last line.
            _ => {
                let last = [&mut program.load, &mut program.serve, &mut program.run];
                let Some(text) = last.into_iter().find_map(|text| text.as_mut()) else {
                    bail!("programs.txt, line {}: {line}", number + 1);
                };
                text.push('\n');
                text.push_str(line);
            }
        }
    }
    let unnamed = programs.iter().find(|program| program.needs.is_empty());
    unnamed.map_or(Ok(()), |program| Err(anyhow::anyhow!("{} needs nothing", program.name)))?;
    programs.first().context("programs.txt is empty")?;
    Ok(programs)
}
