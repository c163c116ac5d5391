//! The stacks of exports, built frame by frame from a tree, equal those of a report's groups.

use heapr_export::{SampleFrame, Samples};
use heapr_query::{Action, Answer, CullList, Group, GroupBy, Metric, Query, Report};
use heapr_trace::Trace;

use crate::languages::python_program;
use crate::made_trace::{Embedded, four_minutes};

fn groups<'r>(report: &'r Report<'_>) -> &'r [Group] {
    match &report.sections[0].answer {
        Answer::Ranking(ranking) => &ranking.groups,
        Answer::Functions(_) | Answer::Tree(_) => &[],
    }
}

fn check(trace: &Trace, by: GroupBy, cull: &str) -> usize {
    let mut list = CullList::empty();
    list.add_lines("the test", cull).unwrap();
    let query = Query {
        cull: list,
        actions: vec![Action::Ranking { by, sort: Metric::default() }],
        top: usize::MAX,
        tells_lines: true,
        ..Query::default()
    };
    let report = heapr_query::run(trace, &query, &mut Embedded::of(trace)).unwrap();
    let samples = Samples::of_report(&report, &mut |_, _| {});
    let told: Vec<Vec<SampleFrame>> = groups(&report)
        .iter()
        .map(|group| report.frames(group).iter().map(SampleFrame::new).collect())
        .collect();
    let made: Vec<Vec<SampleFrame>> =
        samples.stacks().map(|(frames, _)| frames.into_iter().cloned().collect()).collect();
    assert_eq!(made, told, "{by:?} without {cull}");
    made.iter().map(Vec::len).sum()
}

#[test]
fn stacks_are_those_of_the_report_culled_or_not() {
    let trace = four_minutes();
    let whole = check(&trace, GroupBy::Stacks, "");
    // Cull an inlined function, a called one, both, and all functions.
    for cull in ["*!grow", "*!churn", "*!grow\n*!churn", "*!*"] {
        let left = check(&trace, GroupBy::Stacks, cull);
        assert!(left < whole, "{left} of {whole} frames are left without {cull}");
    }
    // Frames that are not innermost are not culled.
    assert_eq!(check(&trace, GroupBy::Stacks, "*!main"), whole);
    for by in [GroupBy::Frames, GroupBy::Lines, GroupBy::Images] {
        check(&trace, by, "*!churn");
    }
}

#[test]
fn frames_of_languages_are_those_of_the_report() {
    assert!(check(&python_program(), GroupBy::Stacks, "") > 0);
}
