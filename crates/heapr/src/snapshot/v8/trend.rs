//! `heapr snapshot diff` of three or more snapshots: the course of each class.

use std::collections::HashMap;
use std::process::ExitCode;

use heapr_query::course_in_words;
use heapr_v8::analysis::MatchedBy;
use heapr_v8::devtools::{Class, Population};

use crate::output::print_table;
use crate::snapshot::limit::{Limit, TOTAL, exit_status};
use crate::snapshot::v8::doubts::doubts;
use crate::snapshot::v8::heap_file::{Wanted, open};
use crate::snapshot::verbs::DiffQuestion;
use heapr_table::SortRows as _;
use heapr_table::quantity::{bytes, count};
use heapr_table::{Cell, Column, Table, row};

/// Objects and bytes of a class in each snapshot.
type Course = Vec<(u64, u64)>;

/// Runs the command.
pub(crate) fn run(asked: &DiffQuestion) -> anyhow::Result<ExitCode> {
    let files = &asked.files;
    let Some((last_file, earlier)) = files.split_last() else { return Ok(ExitCode::SUCCESS) };
    // Plain objects are named as in the last snapshot. Only one snapshot is in memory at a time.
    let last = Population::of(&*open(last_file, Wanted::Classes)?, None);
    let mut courses: HashMap<Class, Course> = HashMap::new();
    let mut warnings = Vec::new();
    for (at, file) in earlier.iter().enumerate() {
        let earlier = Population::of(&*open(file, Wanted::Classes)?, Some(last.interfaces()));
        // Only sums are compared, so that ids need not match.
        warnings.extend(doubts((file, &earlier), (last_file, &last), MatchedBy::Id));
        add(&mut courses, &earlier, at, files.len());
    }
    add(&mut courses, &last, earlier.len(), files.len());
    for warning in &warnings {
        warn!("{warning}");
    }
    let mut lines: Vec<(Class, Course)> = courses.into_iter().collect();
    lines.sort_rows_by(|(class, course), (other_class, other)| {
        (delta(other).1, class).cmp(&(delta(course).1, other_class))
    });
    lines.retain(|(_, course)| course.windows(2).any(|pair| pair[0] != pair[1]));
    print(asked, &lines, &warnings)?;
    let grown = |limit: &Limit| {
        let of_class = lines.iter().filter(|(class, _)| {
            limit.class == TOTAL || class.name_text() == limit.class || class.key() == limit.class
        });
        of_class.map(|(_, course)| delta(course)).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    Ok(exit_status(&asked.fail_if_growth, "object", grown))
}

fn add(courses: &mut HashMap<Class, Course>, population: &Population, at: usize, all: usize) {
    for (class, object_count, self_bytes) in population.class_sizes() {
        courses.entry(class.clone()).or_insert_with(|| vec![(0, 0); all])[at] = (object_count, self_bytes);
    }
}

fn delta(course: &Course) -> (i64, i64) {
    let [Some(first), Some(last)] = [course.first(), course.last()] else { return (0, 0) };
    (last.0 as i64 - first.0 as i64, last.1 as i64 - first.1 as i64)
}

fn print(asked: &DiffQuestion, lines: &[(Class, Course)], warnings: &[String]) -> anyhow::Result<()> {
    let mut sheet = Table::new(
        "heapr.snapshot.trend/1",
        &[
            Column::text("class", "Class"),
            Column::text("object_counts", "Objects"),
            Column::text("shallow_bytes", "Shallow"),
            Column::count("count_delta", "Delta"),
            Column::bytes("bytes_delta", "Size delta"),
            Column::text("course", "Course"),
        ],
    );
    sheet.fact("files", asked.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>());
    sheet.fact("warnings", warnings);
    sheet.rows(
        asked.output.top(),
        lines.iter().map(|(class, course)| {
            let joined = |of: fn(&(u64, u64)) -> u64, shown: fn(u64) -> String| {
                let amounts = || course.iter().map(of);
                let values: Vec<String> = amounts().map(|amount| amount.to_string()).collect();
                let texts: Vec<String> = amounts().map(shown).collect();
                Cell::worded(values.join(" "), texts.join(" -> "))
            };
            let (objects, size) = delta(course);
            let sizes: Vec<u64> = course.iter().map(|&(_, size)| size).collect();
            row![
                class.name_text().into_owned(),
                joined(|of| of.0, count),
                joined(|of| of.1, bytes),
                objects,
                size,
                course_in_words(&sizes),
            ]
        }),
    );
    let title = format!("{} snapshots, classes that changed, by growth in bytes", asked.files.len());
    print_table(&sheet, asked.output.format, &[title, String::new()])
}
