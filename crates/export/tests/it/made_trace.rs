//! Traces whose events lie in several minutes, made from heaptrack's text format.

use std::fmt::Write as _;

use heapr_ledger::{Ledger, SummaryBuilder};
use heapr_query::{Action, CullList, GroupBy, Metric, NoSymbols, Query, Report};
use heapr_trace::{SamplingPeriod, StackIndex, Summary, Trace, TraceWriter};

/// Trace with three stacks over four minutes: one grows, one churns, one is freed again.
pub(crate) fn four_minutes() -> Trace {
    let mut text = "v 10200 2\nX ./service --port 1\nI 1000 100\n".to_owned();
    for name in ["/bin/service", "main", "main.c", "grow", "churn", "passing", "work.c"] {
        writeln!(text, "s {name}").unwrap();
    }
    // Code: main, grow (inlined into main), churn, passing.
    text += "i 10 1 2 3 5\ni 20 1 4 7 9 2 3 6\ni 30 1 5 7 b\ni 40 1 6 7 c\nt 1 0\nt 2 1\nt 3 1\nt 4 1\n";
    text += "a 64 2\na 10 3\na 1000 4\n";
    for minute in 0..4 {
        for second in 0..60 {
            writeln!(text, "c {:x}\nR {:x}", (minute * 60 + second) * 1000 + 500, 100 + minute * 60 + second)
                .unwrap();
            text += "+ 0\n+ 1\n- 1\n+ 1\n- 1\n";
            text += if second == 10 { "+ 2\n" } else { "" };
            text += if second == 50 { "- 2\n" } else { "" };
        }
    }
    heapr_import::from_bytes(text.as_bytes()).unwrap()
}

/// [`four_minutes`] with its events declared as samples: each represents more than itself.
pub(crate) fn sampled() -> Trace {
    let (exact, file) = (four_minutes(), tempfile::tempfile().unwrap());
    let mut writer = TraceWriter::new_sampled(file.try_clone().unwrap()).unwrap();
    let (mut ledger, mut summary) = (Ledger::new(), SummaryBuilder::new());
    let period = SamplingPeriod { process: SamplingPeriod::EVERY_PROCESS, from_ns: 0, mean_bytes: 4096 };
    summary.add_sampling(period);
    writer.sampling(period).unwrap();
    writer.set_session(exact.session()).unwrap();
    for process in exact.processes() {
        writer.add_process(process.clone()).unwrap();
    }
    for thread in exact.threads() {
        writer.add_thread(thread.clone()).unwrap();
    }
    for module in exact.modules() {
        writer.add_module(module.clone()).unwrap();
    }
    for mapping in exact.mappings() {
        writer.add_mapping(*mapping).unwrap();
    }
    for place in 1..exact.stacks().len() as u32 {
        writer.add_stack(exact.stacks().node(StackIndex(place)).unwrap()).unwrap();
    }
    let (mut events, mut event_count) = (exact.events(0, u64::MAX), 0);
    while let Some(batch) = events.next_batch().unwrap() {
        for event in batch {
            ledger.apply(event, exact.process_of(event.thread), &mut summary);
            writer.event(event).unwrap();
            event_count += 1;
        }
    }
    writer.symbols(&exact.embedded_symbols().unwrap().unwrap()).unwrap();
    writer.finish(&Summary { event_count, duration_ns: exact.duration_ns(), ..summary.finish() }).unwrap();
    drop(writer);
    let trace = Trace::from_source(Box::new(file)).unwrap();
    assert!(trace.is_sampled());
    trace
}

/// Report of all stacks without names and culling.
pub(crate) fn report(trace: &Trace) -> Report<'_> {
    asked(trace, &mut NoSymbols)
}

/// Report of all stacks with the trace's embedded symbols, without culling.
pub(crate) fn named_report(trace: &Trace) -> Report<'_> {
    asked(trace, &mut Embedded::of(trace))
}

fn asked<'t>(trace: &'t Trace, names: &mut dyn heapr_query::SymbolSource) -> Report<'t> {
    let query = Query {
        cull: CullList::empty(),
        actions: vec![Action::Ranking { by: GroupBy::Stacks, sort: Metric::default() }],
        top: usize::MAX,
        tells_lines: true,
        ..Query::default()
    };
    heapr_query::run(trace, &query, names).unwrap()
}

/// Names from a trace's embedded symbols.
pub(crate) struct Embedded {
    keys: Vec<heapr_symbols::ModuleKey>,
    symbolizer: heapr_symbols::Symbolizer,
}

impl Embedded {
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut symbolizer = heapr_symbols::Symbolizer::new(heapr_symbols::SymbolOptions::default());
        if let Some(bundle) = trace.embedded_symbols().unwrap() {
            assert!(symbolizer.use_bundle(&bundle));
        }
        let key = |module: &heapr_trace::Module| heapr_symbols::ModuleKey {
            path: module.path.clone().into(),
            build_id: module.build_id.clone(),
        };
        Self { keys: trace.modules().iter().map(key).collect(), symbolizer }
    }
}

impl heapr_query::SymbolSource for Embedded {
    fn resolve(
        &mut self,
        module: heapr_trace::ModuleIndex,
        svmas: &[u64],
        sink: &mut heapr_query::FrameSink<'_>,
    ) {
        let Some(table) = self.symbolizer.embedded_of(&self.keys[module.0 as usize]) else { return };
        for (number, &svma) in svmas.iter().enumerate() {
            let Some(frames) = table.frames(svma) else { continue };
            let frames: Vec<_> = frames
                .iter()
                .map(|frame| heapr_query::SourceFrame {
                    symbol: table.symbol(frame),
                    file: table.file(frame),
                    line: Some(frame.line()),
                    is_inlined: frame.is_inlined(),
                })
                .collect();
            sink(number, &frames);
        }
    }
}
