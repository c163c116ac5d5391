//! Measures the cost of an agent that is loaded and disabled. It is below the machine's noise, so
//! that many short rounds are needed.

use super::inputs;
use super::measured_run::Cost;
use super::overhead::{Mode, Options, cost_of, under};
use super::spread::Spread;
use super::table::markdown;

/// Measures and returns the table. The order in each round is bare, disabled, disabled, bare, so
/// that a steady drift cancels out.
pub(crate) fn run(options: &Options) -> anyhow::Result<String> {
    let agent = crate::check_agent::built_agent()?.display().to_string();
    let folder = inputs::folder()?;
    let mut rows = Vec::new();
    for program in inputs::programs()? {
        if !options.wants(program.name) {
            continue;
        }
        let mut ratios = Vec::new();
        let mut bare = Vec::new();
        for _ in 0..options.rounds {
            let run = |mode| {
                let (command, environment) = under(mode, &program, "", &agent, &folder);
                cost_of(&command, &environment, program.client.as_ref(), &folder.join("log"))
            };
            let [first, off, off_again, last] =
                [run(Mode::Bare)?, run(Mode::Disabled)?, run(Mode::Disabled)?, run(Mode::Bare)?];
            let ratio = |number: fn(&Cost) -> f64| {
                (number(&off) + number(&off_again)) / (number(&first) + number(&last)).max(f64::MIN_POSITIVE)
            };
            ratios.push((ratio(|cost| cost.wall_s), ratio(|cost| cost.cpu_s)));
            bare.extend([first.wall_s, last.wall_s]);
        }
        let wall = Spread::of(ratios.iter().map(|(wall, _)| *wall));
        let cpu = Spread::of(ratios.iter().map(|(_, cpu)| *cpu));
        eprintln!("{}: wall {wall:.3}, CPU {cpu:.3}", program.name);
        rows.push(vec![
            program.name.into(),
            format!("{:.3}", Spread::of(bare).median),
            format!("{wall:.3}"),
            format!("{cpu:.3}"),
        ]);
    }
    Ok(format!(
        "## The agent loaded and switched off\n\nAgainst no agent: medians of {} rounds of two runs each, and between what they lie in 19 of 20 \
         cases.\n\n{}",
        options.rounds,
        markdown(&["program", "bare s", "wall ÷ bare", "CPU ÷ bare"], &rows)
    ))
}
