//! `heapr diff --by function`: two or more builds compared by function of user code.

use std::io::Write;

use heapr_explore::{Build, ComparedFunction, Explorer, Selection, compare_functions};
use heapr_export::{FunctionChange, builds_sentence, signed_change};
use heapr_query::json::AmountsJson;
use heapr_query::{CullList, Metric, OwnCode};
use heapr_table::csv::quoted;
use heapr_table::plain::cut_middle;
use heapr_trace::Amounts;
use serde_json::json;

use crate::output::{DEFAULT_TOP, Format};
use crate::plain_text::{line_width, printed};
use crate::report::amounts_text::amount;

/// A build that is compared.
pub(crate) struct BuildSide {
    pub(crate) name: String,
    pub(crate) explorer: Explorer,
    pub(crate) selection: Selection,
    pub(crate) own: OwnCode,
    pub(crate) warnings: Vec<String>,
    pub(crate) sampled: Option<String>,
}

/// Choices of the comparison.
pub(crate) struct BuildChoices<'a> {
    pub(crate) cull: &'a CullList,
    pub(crate) sort: Metric,
    pub(crate) pairs: &'a [(String, String)],
    pub(crate) format: Format,
    pub(crate) top: Option<usize>,
}

/// Parses `OLD=NEW`. A name may have an operator's signs: the first `=` that leaves both sides.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (old, new) =
        text.split_once('=').filter(|(old, new)| !old.is_empty() && !new.is_empty()).ok_or_else(|| {
            "it is OLD=NEW, the names of a function in an earlier and in a later build".to_owned()
        })?;
    Ok((old.to_owned(), new.to_owned()))
}

/// Prints the comparison. Returns by how much the amount has grown from the first to the last
/// build.
pub(crate) fn print(sides: &[BuildSide], choices: &BuildChoices<'_>) -> anyhow::Result<i128> {
    let builds: Vec<Build<'_>> = sides
        .iter()
        .map(|side| Build {
            explorer: &side.explorer,
            selection: &side.selection,
            cull: choices.cull,
            own: &side.own,
        })
        .collect();
    let functions = compare_functions(&builds, choices.sort, choices.pairs)?;
    for (old, new) in choices.pairs {
        if !functions.iter().any(|function| has_name(function, old) && has_name(function, new)) {
            warn!("--pair {old}={new}: no two functions of the builds have these names");
        }
    }
    let mut totals = vec![Amounts::default(); sides.len()];
    for function in &functions {
        totals.iter_mut().zip(&function.amounts).for_each(|(sum, amounts)| *sum += amounts);
    }
    let sentence = builds_sentence(choices.sort, functions.first().and_then(change_of));
    let mut out = printed(choices.format == Format::Text);
    match choices.format {
        Format::Text => write_text(&mut out, sides, choices, &functions, (&totals, &sentence))?,
        Format::Json => {
            let side = |(side, totals): (&BuildSide, &Amounts)| json!({ "file": side.name, "sampled": side.sampled, "warnings": side.warnings, "totals": AmountsJson::from(totals) });
            let function = |function: &ComparedFunction| {
                json!({
                    "names": function.names, "frames": function.frames, "renamed": function.is_renamed,
                    "amounts": function.amounts_json().collect::<Vec<_>>(),
                })
            };
            let shown = functions.iter().take(choices.top.unwrap_or(usize::MAX));
            let whole = json!({
                "schema": "heapr.diff-functions/1",
                "sentence": sentence,
                "builds": sides.iter().zip(&totals).map(side).collect::<Vec<_>>(),
                "functions": shown.map(function).collect::<Vec<_>>(),
            });
            heapr_table::json_text::write_json(&mut out, &whole, true)?;
            writeln!(out)?;
        }
        Format::Csv => write_csv(&mut out, choices, sides.len(), &functions)?,
    }
    out.flush()?;
    Ok(match totals.as_slice() {
        [first, .., last] => choices.sort.difference(first, last),
        _ => 0,
    })
}

/// True if a function has a name in a build: without arguments, or the whole symbol.
fn has_name(function: &ComparedFunction, name: &str) -> bool {
    let symbols = function.frames.iter().flatten().filter_map(|frame| frame.symbol.as_deref());
    function.names.iter().flatten().map(String::as_str).chain(symbols).any(|known| known == name)
}

/// Change of a function from the first build to the last.
fn change_of(function: &ComparedFunction) -> Option<FunctionChange<'_>> {
    Some(FunctionChange {
        old_name: function.names.first()?.as_deref(),
        new_name: function.names.last()?.as_deref(),
        before: function.amounts.first()?,
        after: function.amounts.last()?,
        largest: [function.largest.first()?, function.largest.last()?],
    })
}

fn write_text(
    out: &mut impl Write,
    sides: &[BuildSide],
    choices: &BuildChoices<'_>,
    functions: &[ComparedFunction],
    (totals, sentence): (&[Amounts], &str),
) -> std::io::Result<()> {
    writeln!(out, "{sentence}")?;
    writeln!(out)?;
    for (number, side) in (1..).zip(sides) {
        writeln!(out, "{number}: {}", side.name)?;
        if let Some(sampled) = &side.sampled {
            writeln!(out, "   {sampled}")?;
        }
    }
    let sort = choices.sort;
    let changed = |function: &&ComparedFunction| {
        function.amounts.windows(2).any(|two| sort.of(&two[0]) != sort.of(&two[1]))
    };
    let differing: Vec<&ComparedFunction> = functions.iter().filter(changed).collect();
    let top = choices.top.unwrap_or(DEFAULT_TOP);
    writeln!(out)?;
    writeln!(
        out,
        "{} of {} functions that differ, by {}:",
        differing.len().min(top),
        differing.len(),
        sort.key()
    )?;
    let mut rows: Vec<Vec<String>> = vec![row_of(sort, totals, "all")];
    for function in differing.iter().take(top) {
        rows.push(row_of(sort, &function.amounts, &names_text(function)));
    }
    let mut head: Vec<String> = (1..=sides.len()).map(|number| number.to_string()).collect();
    head.insert(0, "change".to_owned());
    head.push(String::new());
    let widths: Vec<usize> = (0..=sides.len())
        .map(|at| rows.iter().chain([&head]).map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let taken: usize = widths.iter().map(|width| width + 2).sum();
    for row in std::iter::once(&head).chain(&rows) {
        let amounts: String =
            widths.iter().zip(row).map(|(width, text)| format!("{text:>width$}  ")).collect();
        let name = row.last().map_or("", String::as_str);
        let line = format!("{amounts}{}", cut_middle(name, line_width().saturating_sub(taken)));
        writeln!(out, "{}", line.trim_end())?;
    }
    if differing.iter().take(top).any(|function| function.is_renamed) {
        writeln!(out)?;
        writeln!(
            out,
            "A -> B: likely one function, by caller, source file and number of blocks; or paired by --pair"
        )?;
    }
    Ok(())
}

fn row_of(sort: Metric, amounts: &[Amounts], name: &str) -> Vec<String> {
    let change = match amounts {
        [first, .., last] => signed_change(sort, first, last),
        _ => String::new(),
    };
    let mut row = vec![change];
    row.extend(amounts.iter().map(|amounts| amount(sort, amounts)));
    row.push(name.to_owned());
    row
}

/// Names of a function, in the order of the builds, each once.
fn names_text(function: &ComparedFunction) -> String {
    let mut names: Vec<&str> = function.names.iter().flatten().map(String::as_str).collect();
    names.dedup();
    if names.is_empty() { "code without a stack".to_owned() } else { names.join(" -> ") }
}

fn write_csv(
    out: &mut impl Write,
    choices: &BuildChoices<'_>,
    count: usize,
    functions: &[ComparedFunction],
) -> std::io::Result<()> {
    let head = (1..=count)
        .flat_map(|number| Metric::all().map(move |metric| format!(",{}_{number}", metric.name())));
    writeln!(out, "name,renamed{}", head.collect::<String>())?;
    for function in functions.iter().take(choices.top.unwrap_or(usize::MAX)) {
        write!(out, "{},{}", quoted(&names_text(function)), function.is_renamed)?;
        for amounts in &function.amounts {
            for metric in Metric::all() {
                write!(out, ",{}", metric.of(amounts))?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}
