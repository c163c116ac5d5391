//! Totals of a report on a file.

use std::path::Path;

use heapr_query::{Action, Answer, CullList, GroupBy, Metric, NoSymbols, Query};
use heapr_trace::{Amounts, Trace};

/// Sum of a report's stacks, which must equal its totals.
pub(crate) fn of_report(trace: &Trace) -> Amounts {
    let query = Query {
        cull: CullList::empty(),
        actions: vec![Action::Ranking { by: GroupBy::Stacks, sort: Metric::default() }],
        top: usize::MAX,
        ..Query::default()
    };
    let report = heapr_query::run(trace, &query, &mut NoSymbols).unwrap();
    let Answer::Ranking(ranking) = &report.sections[0].answer else { panic!("no ranking") };
    let sum: Amounts = ranking.groups.iter().map(|group| &group.amounts).sum();
    let totals = report.totals.amounts();
    for metric in Metric::all() {
        assert_eq!(metric.of(&sum), metric.of(&totals), "{}", metric.name());
    }
    sum
}

pub(crate) fn of_file(path: &Path) -> Amounts {
    of_report(&heapr_import::open(path).unwrap())
}
