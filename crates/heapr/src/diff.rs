//! `heapr diff`: two traces compared by stack, frame or image; two sampling profiles by function.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use heapr_explore::{
    self as explore, DifferenceFrames, DifferenceGroup, Explorer, Found, FrameUnion, Selection,
};
use heapr_export::Subject;
use heapr_filters::FilterArguments;
use heapr_query::json::{AmountsJson, FrameJson};
use heapr_query::{GroupBy, Metric};
use heapr_trace::Amounts;
use serde_json::json;

use crate::diff_functions::{self, BuildChoices, BuildSide, pair};
use crate::output::{DEFAULT_TOP, Format};
use crate::own_arguments::OwnArguments;
use crate::plain_text::{line_width, printed};
use crate::report::action_arguments::sort_key;
use crate::report::amounts_text::amount;
use crate::report::names::{NameArguments, TraceNames};
use crate::snapshot::v8::profile_diff::{self, are_profiles};
use crate::trace_file::{newest_traces, open, tell_warnings};
use heapr_filters::quantity::parse_bytes;
use heapr_table::csv::quoted;
use heapr_table::plain::cut_middle;
use heapr_table::quantity::{bytes, count, signed_bytes, signed_count};

/// Arguments of `heapr diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArguments {
    /// The trace before, or a sampling profile of V8 (.heapprofile) [default: the two newest traces
    /// in this folder, the older first]
    #[arg(value_name = "A")]
    before: Option<PathBuf>,
    /// The trace after
    #[arg(value_name = "B")]
    after: Option<PathBuf>,
    /// Traces of further builds, with --by function
    #[arg(value_name = "C", requires = "by")]
    more: Vec<PathBuf>,
    /// Compare by function of the program's own code: several builds are columns, and renamed
    /// functions are paired
    #[arg(long, value_enum, conflicts_with_all = ["stacks", "frames", "images", "before_at", "after_at"])]
    by: Option<By>,
    /// Functions that are the same under another name in a later build; may be given several times
    #[arg(long, value_name = "OLD=NEW", requires = "by", value_parser = pair)]
    pair: Vec<(String, String)>,
    /// Compare by whole stack (the default)
    #[arg(long)]
    stacks: bool,
    /// Compare by innermost frame
    #[arg(long, conflicts_with = "stacks")]
    frames: bool,
    /// Compare by module of the innermost frame
    #[arg(long, conflicts_with_all = ["stacks", "frames"])]
    images: bool,
    /// Metric that is compared
    #[arg(long, value_name = "KEY", default_value = Metric::default().key(), ignore_case = true, value_parser = sort_key())]
    sort: Metric,
    #[command(flatten)]
    filters: FilterArguments,
    /// Compare only blocks of the trace before that were live at this time; both may be the same
    /// trace
    #[arg(long, value_name = "peak|TIME", conflicts_with_all = ["at", "snapshot"])]
    before_at: Option<String>,
    /// Compare only blocks of the trace after that were live at this time
    #[arg(long, value_name = "peak|TIME", conflicts_with_all = ["at", "snapshot"])]
    after_at: Option<String>,
    #[command(flatten)]
    names: NameArguments,
    #[command(flatten)]
    own: OwnArguments,
    /// Most items [default: 20; all as json and csv]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// End with 1 if the compared amount has grown by more than this in all
    #[arg(long, value_name = "growth=AMOUNT", value_parser = growth_limit)]
    fail_on: Option<u64>,
    /// Former form of `--fail-on growth=AMOUNT`
    #[arg(long, value_name = "AMOUNT", hide = true, conflicts_with = "fail_on", value_parser = parse_bytes)]
    fail_if_growth: Option<u64>,
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Kind of the rows of a comparison of builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Functions of the program's own code
    Function,
}

/// Parses `growth=AMOUNT`.
fn growth_limit(text: &str) -> Result<u64, String> {
    let amount = text.strip_prefix("growth=").ok_or("it is growth=AMOUNT, as growth=1M")?;
    parse_bytes(amount).map_err(|error| format!("{error:#}"))
}

impl DiffArguments {
    /// Takes the two newest traces of the folder if none is named.
    ///
    /// # Errors
    /// One trace is named, or there are fewer than two.
    fn name_traces(&mut self) -> anyhow::Result<()> {
        if self.before.is_none() {
            let mut newest = newest_traces(Path::new(".")).into_iter();
            (self.after, self.before) = (newest.next(), newest.next());
            anyhow::ensure!(
                self.before.is_some(),
                "no traces given, and fewer than two in this folder: heapr diff A B{}",
                if self.by.is_some() { " --by function" } else { "" }
            );
            tell!(
                "heapr: the two newest traces here: {} and {}",
                self.before().display(),
                self.after().display()
            );
        }
        if self.after.is_none() {
            let only = self.before().display();
            anyhow::ensure!(
                self.by.is_none(),
                "{only} is one trace, and two or more are compared: heapr diff {only} AFTER.heapr --by function"
            );
            anyhow::bail!(
                "{only} is one trace, and two are compared: heapr diff {only} AFTER.heapr; two moments of one: heapr diff {only} \
                 {only} --before-at 1s --after-at peak"
            );
        }
        Ok(())
    }

    fn before(&self) -> &Path {
        self.before.as_deref().unwrap_or(Path::new(""))
    }

    fn after(&self) -> &Path {
        self.after.as_deref().unwrap_or(Path::new(""))
    }
}

/// One of the two traces that are compared.
struct Side {
    explorer: Explorer,
    selection: Selection,
    /// Sentences on what is wrong with the recording.
    warnings: Vec<String>,
    /// Sentence on how the recording was sampled.
    sampled: Option<String>,
}

struct Line {
    /// For [`DifferenceFrames::of`].
    key: u32,
    names: Vec<String>,
    before: Amounts,
    after: Amounts,
}

/// Runs the command.
pub(crate) fn run(mut arguments: DiffArguments) -> anyhow::Result<ExitCode> {
    arguments.name_traces()?;
    let sort = arguments.sort;
    let by = match (arguments.frames, arguments.images) {
        (true, _) => GroupBy::Frames,
        (_, true) => GroupBy::Images,
        _ => GroupBy::Stacks,
    };
    let limit = arguments.fail_on.or(arguments.fail_if_growth);
    if are_profiles(arguments.before(), arguments.after())? {
        anyhow::ensure!(
            arguments.more.is_empty() && arguments.pair.is_empty(),
            "profiles are compared two at a time, and without --pair"
        );
        let top = crate::output::top(arguments.top, arguments.format, false);
        return profile_diff::run(arguments.before(), arguments.after(), arguments.format, top, limit);
    }
    if arguments.by == Some(By::Function) {
        let growth = by_function(&arguments)?;
        let is_failed = limit.is_some_and(|limit| growth > i128::from(limit));
        return Ok(if is_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let cull = arguments.filters.cull_list()?;
    let _busy = crate::busy_line::begin(format!(
        "comparing {} with {}",
        arguments.before().display(),
        arguments.after().display()
    ));
    let sides = [
        side(arguments.before(), arguments.before_at.as_ref(), &arguments)?,
        side(arguments.after(), arguments.after_at.as_ref(), &arguments)?,
    ];
    let union = FrameUnion::new(&sides[0].explorer, &sides[1].explorer);
    let compared = sides.each_ref().map(|side| explore::Side {
        explorer: &side.explorer,
        selection: &side.selection,
        cull: &cull,
    });
    let (groups, [before, after]) = union.groups(compared, by, sort)?;
    let line = |group: &DifferenceGroup| Line {
        key: group.key,
        names: union.group_names(group, by),
        before: group.before,
        after: group.after,
    };
    let lines: Vec<Line> = groups.iter().map(line).collect();
    let growth = sort.difference(&before, &after);
    let mut out = printed(arguments.format == Format::Text);
    match arguments.format {
        Format::Text => {
            let top = arguments.top.unwrap_or(DEFAULT_TOP);
            write_text(&mut out, (&arguments, &sides), sort, (&before, &after), &lines, top)?;
        }
        Format::Json => {
            let frames = DifferenceFrames::read(&union, compared, by)?;
            write_json(&mut out, (&arguments, &sides), (&before, &after), &lines, &frames)?;
        }
        Format::Csv => {
            let is_sampled = sides.iter().any(|side| side.sampled.is_some());
            write_csv(&mut out, &lines, arguments.top.unwrap_or(usize::MAX), is_sampled)?;
        }
    }
    out.flush()?;
    if limit.is_some_and(|limit| growth > i128::from(limit)) {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares two or more builds by function. Returns the growth from the first to the last.
fn by_function(arguments: &DiffArguments) -> anyhow::Result<i128> {
    let files = [arguments.before(), arguments.after()]
        .into_iter()
        .chain(arguments.more.iter().map(PathBuf::as_path));
    let build = |file: &Path| {
        let side = side(file, None, arguments)?;
        let own = arguments.own.code(side.explorer.trace())?;
        anyhow::Ok(BuildSide {
            name: file.display().to_string(),
            explorer: side.explorer,
            selection: side.selection,
            own,
            warnings: side.warnings,
            sampled: side.sampled,
        })
    };
    let sides = files.map(build).collect::<anyhow::Result<Vec<_>>>()?;
    let cull = arguments.filters.cull_list()?;
    let choices = BuildChoices {
        cull: &cull,
        sort: arguments.sort,
        pairs: &arguments.pair,
        format: arguments.format,
        top: arguments.top,
    };
    diff_functions::print(&sides, &choices)
}

/// Opens a side, and prints on standard error what is wrong with the recording: its amounts may be
/// too small for a comparison.
fn side(file: &Path, at: Option<&String>, arguments: &DiffArguments) -> anyhow::Result<Side> {
    let trace = Arc::new(arguments.filters.shown(open(file)?));
    let mut filters = arguments.filters.clone();
    if let Some(at) = at {
        filters.range = None;
        filters.at = Some(at.clone());
    }
    let filter = filters.filter(&trace)?;
    let explorer = Explorer::new(Arc::clone(&trace));
    explorer.name(&mut TraceNames::new(&trace, &arguments.names));
    let selection =
        explorer.select(&filter, Found::default(), &|| false).with_context(|| file.display().to_string())?;
    let subject = Subject::new(file, &trace, &selection.damage, String::new());
    tell_warnings(&subject);
    Ok(Side { explorer, selection, warnings: subject.warnings, sampled: subject.sampled })
}

fn write_text(
    out: &mut impl Write,
    (arguments, sides): (&DiffArguments, &[Side; 2]),
    sort: Metric,
    (before, after): (&Amounts, &Amounts),
    lines: &[Line],
    top: usize,
) -> std::io::Result<()> {
    let signed = |metric: Metric, before: &Amounts, after: &Amounts| {
        let delta = metric.difference(before, after);
        let delta = if metric.is_bytes() { signed_bytes(delta) } else { signed_count(delta) };
        match metric.plus_minus_of_difference(before, after) {
            0 => delta,
            off if metric.is_bytes() => format!("{delta} ± {}", bytes(off)),
            off => format!("{delta} ± {}", count(off)),
        }
    };
    writeln!(out, "{} -> {}", arguments.before().display(), arguments.after().display())?;
    writeln!(out)?;
    for (file, side) in [arguments.before(), arguments.after()].into_iter().zip(sides) {
        if let Some(sampled) = &side.sampled {
            writeln!(out, "{}: {sampled}", file.display())?;
        }
    }
    let row = |metric: Metric| [amount(metric, before), amount(metric, after), signed(metric, before, after)];
    let widest = |of: fn(&[String; 3]) -> &String| {
        Metric::all().map(|metric| of(&row(metric)).chars().count()).max().unwrap_or(0).max(14)
    };
    let (one, other, delta) = (widest(|row| &row[0]), widest(|row| &row[1]), widest(|row| &row[2]));
    writeln!(out, "{:18} {:>one$} {:>other$} {:>delta$}", "", "before", "after", "delta")?;
    for metric in Metric::all() {
        let [before, after, change] = row(metric);
        writeln!(out, "{:18} {before:>one$} {after:>other$} {change:>delta$}", metric.words())?;
    }
    writeln!(out)?;
    writeln!(out, "{} of {} that differ, by {}:", lines.len().min(top), lines.len(), sort.key())?;
    let width = line_width();
    for line in lines.iter().take(top) {
        let (one, other) = (amount(sort, &line.before), amount(sort, &line.after));
        writeln!(out)?;
        writeln!(out, "{:>14}  ({one} -> {other})", signed(sort, &line.before, &line.after))?;
        if line.names.is_empty() {
            writeln!(out, "      (no stack)")?;
        }
        for frame in &line.names {
            writeln!(out, "      {}", cut_middle(frame, width.saturating_sub(6)))?;
        }
    }
    Ok(())
}

fn write_json(
    out: &mut impl Write,
    (arguments, sides): (&DiffArguments, &[Side; 2]),
    (before, after): (&Amounts, &Amounts),
    lines: &[Line],
    frames: &DifferenceFrames<'_>,
) -> anyhow::Result<()> {
    let json_of = |amounts: &Amounts| AmountsJson::from(amounts);
    let line = |line: &Line| {
        let frames: Vec<FrameJson> = frames.of(line.key).iter().map(FrameJson::from).collect();
        json!({ "frames": frames, "before": json_of(&line.before), "after": json_of(&line.after) })
    };
    let groups: Vec<_> = lines.iter().take(arguments.top.unwrap_or(usize::MAX)).map(line).collect();
    let side = |file: &Path, side: &Side, amounts: &Amounts| json!({ "file": file.display().to_string(), "sampled": side.sampled, "warnings": side.warnings, "totals": json_of(amounts) });
    let whole = json!({
        "schema": "heapr.diff/1",
        "before": side(arguments.before(), &sides[0], before),
        "after": side(arguments.after(), &sides[1], after),
        "groups": groups,
    });
    heapr_table::json_text::write_json(&mut *out, &whole, true)?;
    writeln!(out)?;
    Ok(())
}

fn write_csv(out: &mut impl Write, lines: &[Line], top: usize, is_sampled: bool) -> std::io::Result<()> {
    let head = Metric::all().map(|metric| format!(",{0}_before,{0}_after", metric.name()));
    let intervals = || Metric::all().filter(|_| is_sampled);
    let halves =
        intervals().map(|metric| format!(",{0}_before_plus_minus,{0}_after_plus_minus", metric.name()));
    writeln!(out, "name{}", head.chain(halves).collect::<String>())?;
    for line in lines.iter().take(top) {
        write!(out, "{}", quoted(&line.names.join(" <- ")))?;
        for metric in Metric::all() {
            write!(out, ",{},{}", metric.of(&line.before), metric.of(&line.after))?;
        }
        for metric in intervals() {
            write!(out, ",{},{}", metric.plus_minus(&line.before), metric.plus_minus(&line.after))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
