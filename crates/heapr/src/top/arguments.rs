//! Arguments of `heapr top`.

use std::path::PathBuf;
use std::time::Duration;

use heapr_filters::FilterArguments;
use heapr_filters::quantity::parse_seconds;
use heapr_session::SampleRate;

use crate::own_arguments::OwnArguments;
use crate::report::names::NameArguments;
use crate::run::record_arguments::parse_sample_rate;

/// Arguments of `heapr top`.
#[derive(Debug, clap::Args)]
pub(crate) struct TopArguments {
    /// A process by its number or its program's name, or a session by its name [default: the
    /// session that runs]. A process that no session records is attached to, and let go at the end
    #[arg(value_name = "PID|NAME")]
    pub(super) target: Option<String>,
    /// Sampling of a process that is attached to: one in so many bytes (512K), or auto
    #[arg(long, value_name = "SIZE|auto", default_value = "auto", value_parser = parse_sample_rate)]
    pub(super) sample: SampleRate,
    /// Record every allocation of a process that is attached to
    #[arg(long, conflicts_with = "sample")]
    pub(super) all: bool,
    /// Keep the recording of a process that is attached to, in this file
    #[arg(short, long, value_name = "FILE", value_parser = crate::output::file_path())]
    pub(super) output: Option<PathBuf>,
    /// Overwrite that file if it exists
    #[arg(short = 'f', long, requires = "output")]
    pub(super) force: bool,
    /// Time between two readings
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_seconds)]
    pub(super) interval: Duration,
    /// Print one reading as text, and end
    #[arg(long)]
    pub(super) once: bool,
    #[command(flatten)]
    pub(super) filters: FilterArguments,
    #[command(flatten)]
    pub(super) names: NameArguments,
    #[command(flatten)]
    pub(super) own: OwnArguments,
}
