//! `heapr snapshot suspects`: objects that keep growing, where they were allocated, and what holds
//! them.

use std::io::Write;
use std::process::ExitCode;

use heapr_v8::analysis::{self, Confidence, Suspects};

use super::{kept_suspects, single, suspects_text};
use crate::output::{Format, print_table};
use crate::plain_text::printed;
use crate::snapshot::v8::heap_file::{Wanted, answered, open};
use crate::snapshot::verbs::SuspectsQuestion;

/// Most suspects listed, because a path is searched for each.
const MOST_SUSPECTS: usize = 100;

/// Runs the command.
pub(in crate::snapshot::v8) fn run(arguments: &SuspectsQuestion) -> anyhow::Result<ExitCode> {
    let (limit, format) = (arguments.fail_if_growth, arguments.output.format);
    let top = arguments.output.top().min(MOST_SUSPECTS);
    if let [file] = arguments.files.as_slice()
        && limit.is_none()
        && let Some(answer) = answered(file, |known| {
            let found = single::Found::kept(known, top)?;
            single::Answer::of(&known.objects, &found, format).ok()
        })
    {
        return answer.print(format);
    }
    let place = kept_suspects::Place::of(&arguments.files, top);
    if let Some(found) = place.as_ref().and_then(|place| place.load(&arguments.files)) {
        return print(arguments, &found);
    }
    // Indexes are not written for several files: that takes memory while all of them are open.
    let wanted = if arguments.files.len() == 1 { Wanted::Everything } else { Wanted::Dominators };
    let heaps = arguments.files.iter().map(|file| open(file, wanted)).collect::<anyhow::Result<Vec<_>>>()?;
    if let [heap] = heaps.as_slice() {
        anyhow::ensure!(limit.is_none(), "--fail-if-growth needs two snapshots");
        return single::Answer::of(&**heap, &single::Found::of(heap, top), format)?.print(format);
    }
    let found = analysis::suspects(&heaps.iter().map(|heap| &**heap).collect::<Vec<_>>(), top);
    if let Some(place) = place {
        place.keep(&heaps, &found);
    }
    print(arguments, &found)
}

/// Prints the suspects of several snapshots. Returns whether one grew by more than the limit.
fn print(arguments: &SuspectsQuestion, found: &Suspects) -> anyhow::Result<ExitCode> {
    let (limit, format) = (arguments.fail_if_growth, arguments.output.format);
    if format == Format::Text {
        let mut out = printed(true);
        suspects_text::write(&mut out, &arguments.files, found)?;
        out.flush()?;
    } else {
        let files: Vec<String> = arguments.files.iter().map(|file| file.display().to_string()).collect();
        let table = analysis::suspect_table("heapr.snapshot.suspects/1", &files, found, str::to_owned);
        print_table(&table, format, &[])?;
    }
    let is_over = |suspect: &analysis::Suspect| {
        limit.is_some_and(|limit| i128::from(suspect.growth_bytes) > i128::from(limit))
            && suspect.confidence >= Confidence::Medium
    };
    Ok(if found.suspects.iter().any(is_over) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
