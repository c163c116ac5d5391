//! Options that make a recording take snapshots of the live heap by itself.

use std::time::Duration;

use anyhow::ensure;
use heapr_session::{GraphContents, SNAPSHOT_INTERVAL_MIN, SnapshotRule, SnapshotWhen};

use crate::graph_contents::{Contents, contents};
use heapr_filters::quantity::{parse_bytes, parse_seconds};

/// Times at which snapshots are taken.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(
    next_help_heading = "Snapshots of the live heap",
    group = clap::ArgGroup::new("graphs").multiple(true).args(["graph", "graph_at_exit"])
)]
pub(crate) struct SnapshotRuleArguments {
    /// Take one every so many seconds (or `5m`, `1h`)
    #[arg(long, value_name = "SECONDS", value_parser = parse_interval)]
    snapshot_every: Option<Duration>,
    /// Take one of each process when it ends or is killed
    #[arg(long)]
    snapshot_at_exit: bool,
    /// Take one of each process that ends by exit, with the references between the blocks. It shows
    /// the leaks after all that the program does at its end
    #[arg(long)]
    pub(crate) graph_at_exit: bool,
    /// Also write the references between the blocks at an interval, at a size and on growth; the
    /// processes stand still meanwhile
    #[arg(long)]
    graph: bool,
    /// Contents of blocks that are written with the references [default: no contents]
    #[arg(long, value_enum, value_name = "WHAT", requires = "graphs")]
    contents: Option<Contents>,
    /// Take one when the resident set of a process passes SIZE, and again after it has been a tenth
    /// below it
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    at_rss: Option<u64>,
    /// Take one each time the live bytes have grown by PERCENT since the last such
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    on_growth: Option<u64>,
}

impl SnapshotRuleArguments {
    /// Contents of blocks that graphs include.
    pub(crate) fn graph_contents(&self) -> GraphContents {
        contents(self.contents)
    }

    /// Returns the rules, for all processes.
    pub(crate) fn rules(&self) -> Vec<SnapshotRule> {
        let whens = [
            self.snapshot_every.map(|interval| SnapshotWhen::Every { interval }),
            self.at_rss.map(|threshold_bytes| SnapshotWhen::AtRss { threshold_bytes }),
            self.on_growth.map(|percent| SnapshotWhen::OnGrowth { percent }),
            self.snapshot_at_exit.then_some(SnapshotWhen::AtExit),
        ];
        // A process that has ended has no memory for a graph.
        let has_graph = |when: SnapshotWhen| self.graph && when != SnapshotWhen::AtExit;
        let rule = |when| SnapshotRule {
            when,
            pids: Vec::new(),
            graph: has_graph(when).then(|| self.graph_contents()),
        };
        whens.into_iter().flatten().map(rule).collect()
    }
}

fn parse_interval(text: &str) -> anyhow::Result<Duration> {
    let interval = parse_seconds(text)?;
    ensure!(
        interval >= SNAPSHOT_INTERVAL_MIN,
        "it is at least {} seconds",
        SNAPSHOT_INTERVAL_MIN.as_secs_f64()
    );
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_at_least_a_tenth_of_a_second() {
        assert_eq!(parse_interval("1.5").unwrap(), Duration::from_millis(1500));
        assert!(
            parse_interval("0.05").is_err() && parse_interval("nan").is_err() && parse_interval("x").is_err()
        );
    }
}
