//! A recording of several files: each is complete in itself, and their allocations add up.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use heapr_ledger::{Ledger, SummaryBuilder};
use heapr_query::{Interval, Since, for_each_interval};
use heapr_trace::{
    Action, Block, Event, HeapId, Process, ProcessIndex, ProcessOrigin, StackIndex, StackNode, StackTotals,
    Statistic, Thread, ThreadIndex, Trace, TraceWriter,
};

/// A shared file on a disk with limited space.
#[derive(Debug, Clone)]
struct Disk {
    file: Rc<RefCell<Vec<u8>>>,
    room: usize,
}

impl Disk {
    fn with(room: usize) -> Self {
        Self { file: Rc::default(), room }
    }

    fn open(&self) -> Trace {
        Trace::from_source(Box::new(self.file.borrow().clone())).unwrap()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.borrow().len() + bytes.len() > self.room {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.file.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Recording {
    writer: TraceWriter<Disk>,
    ledger: Ledger,
    summary: SummaryBuilder,
    event_count: u64,
}

const PROCESS: ProcessIndex = ProcessIndex(0);

fn process() -> Process {
    Process {
        pid: 7,
        parent_pid: 1,
        origin: ProcessOrigin::Exec,
        start_ns: 0,
        end_ns: None,
        executable: "/bin/app".to_owned(),
        command_line: Vec::new(),
        exit_status: None,
    }
}

impl Recording {
    fn begin(disk: &Disk) -> Self {
        let mut writer = TraceWriter::new(disk.clone()).unwrap();
        writer.keep_definitions();
        writer.add_process(process()).unwrap();
        let thread = Thread { process: PROCESS, tid: 7, name: "app".to_owned(), start_ns: 0, end_ns: None };
        writer.add_thread(thread).unwrap();
        Self { writer, ledger: Ledger::new(), summary: SummaryBuilder::new(), event_count: 0 }
    }

    /// A stack of one frame.
    fn stack(&mut self, number: u64) -> StackIndex {
        let node = StackNode {
            process: PROCESS,
            parent: StackIndex::EMPTY,
            return_address_avma: 0x1000 * number,
            first_seen_ns: 0,
        };
        self.writer.add_stack(node).unwrap()
    }

    fn event(&mut self, time_ns: u64, action: Action) {
        let event = Event { time_ns, thread: ThreadIndex(0), heap: HeapId::MALLOC, action };
        self.ledger.apply(&event, PROCESS, &mut self.summary);
        // (A full disk is reported elsewhere.)
        let _ = self.writer.event(&event);
        self.event_count += 1;
    }

    fn end_process(&mut self, end_ns: u64) {
        let ended = Process { end_ns: Some(end_ns), ..process() };
        self.writer.update_process(PROCESS, &ended).unwrap();
    }

    fn alloc(&mut self, time_ns: u64, address_avma: u64, size_bytes: u64, stack: StackIndex) {
        self.event(time_ns, Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false });
    }

    fn next(&mut self, disk: &Disk, start_ns: u64) {
        self.end(start_ns);
        let live: Vec<Block> = self.ledger.sorted_blocks().collect();
        let about = ["window_start_ns", "files_before"].map(|name| Statistic {
            name: name.to_owned(),
            value: if name == "files_before" { 1 } else { start_ns },
        });
        self.writer.go_on_in(disk.clone(), &live, &about).unwrap();
        self.summary = SummaryBuilder::new();
        live.iter().for_each(|block| heapr_ledger::Observer::born(&mut self.summary, block));
        self.event_count = live.len() as u64;
    }

    fn end(&mut self, duration_ns: u64) {
        let mut summary = std::mem::take(&mut self.summary).finish();
        (summary.event_count, summary.duration_ns) = (self.event_count, duration_ns);
        let _ = self.writer.finish(&summary);
    }
}

/// Bytes allocated, and bytes live at the end, over all intervals.
fn by_intervals(trace: &Trace) -> (u64, u64) {
    let (mut total_bytes, mut live_bytes) = (0, 0);
    let mut add = |interval: Interval<'_>| -> heapr_query::Result<()> {
        total_bytes += interval.rows.iter().map(|row| row.amounts.total_bytes).sum::<u64>();
        live_bytes = interval.rows.iter().map(|row| row.amounts.outstanding_bytes).sum();
        Ok(())
    };
    for_each_interval(trace, 100, &mut add).unwrap();
    (total_bytes, live_bytes)
}

#[test]
fn what_files_in_turn_allocate_adds_up_and_what_they_take_on_is_counted_once() {
    let disks = [Disk::with(usize::MAX), Disk::with(usize::MAX)];
    let mut recording = Recording::begin(&disks[0]);
    let (first, second) = (recording.stack(1), recording.stack(2));
    recording.alloc(10, 0x100, 1, first);
    recording.alloc(20, 0x200, 20, second);
    recording
        .event(30, Action::Free { address_avma: 0x100, stack: StackIndex::EMPTY, is_moved_realloc: false });
    recording.next(&disks[1], 250);
    let third = recording.stack(3);
    recording.alloc(260, 0x300, 300, third);
    recording
        .event(410, Action::Free { address_avma: 0x200, stack: StackIndex::EMPTY, is_moved_realloc: false });
    recording.end(500);
    let traces = disks.each_ref().map(Disk::open);
    assert!(traces.iter().all(|trace| trace.is_complete() && trace.damage().is_empty()));
    assert_eq!(by_intervals(&traces[0]), (21, 20));
    assert_eq!(by_intervals(&traces[1]), (300, 300));
    // The second file alone has the block that it took over, with its stack and time.
    let summary = traces[1].summary().unwrap().unwrap();
    assert_eq!((summary.totals.alloc_count, summary.totals.outstanding_bytes), (2, 300));
    assert_eq!(traces[1].stacks().len(), traces[0].stacks().len() + 1);
    assert_eq!(traces[1].processes()[0].executable, "/bin/app");
    // Reading while the recording grows: the first file once more after its end, then the second.
    let mut since = Since::default();
    let mut allocated = 0;
    for trace in [&traces[0], &traces[0], &traces[1], &traces[1]] {
        let (rows, _) = since.advance(trace).unwrap();
        allocated += rows.iter().map(|row| row.amounts.total_bytes).sum::<u64>();
    }
    assert_eq!(allocated, 321);
}

#[test]
fn what_was_defined_while_the_disk_was_full_is_in_the_next_file() {
    let (full, next) = (Disk::with(200), Disk::with(usize::MAX));
    let mut recording = Recording::begin(&full);
    let first = recording.stack(1);
    recording.alloc(10, 0x100, 1, first);
    assert!(recording.writer.flush().is_err());
    let second = recording.stack(2);
    recording.alloc(20, 0x200, 20, second);
    let _ = recording.writer.flush();
    recording.next(&next, 30);
    recording.alloc(40, 0x300, 300, second);
    recording.end(50);
    let trace = next.open();
    assert!(trace.is_complete() && trace.damage().is_empty(), "{:?}", trace.damage());
    let summary = trace.summary().unwrap().unwrap();
    let by_stack: Vec<(StackIndex, u64)> =
        summary.by_stack.iter().map(|row| (row.stack, row.amounts.outstanding_bytes)).collect();
    assert_eq!(by_stack, [(first, 1), (second, 320)]);
    assert_eq!(trace.stacks().node(second).unwrap().return_address_avma, 0x2000);
    assert_eq!(trace.processes()[0].pid, 7);
}

#[test]
fn what_a_process_has_left_is_not_live_once_it_has_ended() {
    let disk = Disk::with(usize::MAX);
    let mut recording = Recording::begin(&disk);
    let stack = recording.stack(1);
    recording.alloc(10, 0x1000, 100, stack);
    recording.alloc(20, 0x2000, 200, stack);
    recording
        .event(30, Action::Free { address_avma: 0x1000, stack: StackIndex::EMPTY, is_moved_realloc: false });
    recording.writer.flush().unwrap();
    let mut since = Since::default();
    let mut live = |trace: &Trace| {
        let (rows, _) = since.advance(trace).unwrap();
        let sum = |of: fn(&StackTotals) -> u64| rows.iter().map(of).sum::<u64>();
        (sum(|row| row.amounts.total_bytes), sum(|row| row.amounts.outstanding_bytes))
    };
    assert_eq!(live(&disk.open()), (300, 200));
    recording.end_process(40);
    recording.writer.flush().unwrap();
    assert_eq!(live(&disk.open()), (0, 0));
}
