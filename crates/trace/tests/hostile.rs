//! Files made to harm the reader: each is refused or read within bounds, and damage is reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapr_trace::{
    Action, ChunkKind, Event, HeapId, Process, ProcessIndex, ProcessOrigin, ReadAt, StackIndex, StackNode,
    Summary, SymbolEmbedder, Thread, ThreadIndex, Trace, TraceWriter,
};

const FILE_HEADER: &[u8] = b"HEAPRTRC\x01\0\0\0\0\0\0\0";

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A chunk with sound checksums, whatever its contents.
fn chunk(kind: ChunkKind, item_count: u32, time_ns: u64, streams: &[&[u8]], is_packed: bool) -> Vec<u8> {
    let mut sizes = vec![streams.len() as u8];
    let mut contents = Vec::new();
    let mut raw_bytes = 1 + 8 * streams.len();
    for stream in streams {
        let stored = if is_packed { zstd::bulk::compress(stream, 3).unwrap() } else { stream.to_vec() };
        sizes.extend((stream.len() as u32).to_le_bytes());
        sizes.extend((stored.len() as u32).to_le_bytes());
        contents.extend(stored);
        raw_bytes += stream.len();
    }
    sizes.extend(contents);
    let mut bytes = b"HPCK".to_vec();
    bytes.extend((kind as u16).to_le_bytes());
    bytes.extend([0, 0]);
    for word in [sizes.len() as u32, raw_bytes as u32, item_count, crc32fast::hash(&sizes)] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(time_ns.to_le_bytes());
    bytes.extend(time_ns.to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(sizes);
    bytes
}

fn open(chunks: &[Vec<u8>]) -> Trace {
    Trace::from_source(Box::new([FILE_HEADER, &chunks.concat()].concat())).unwrap()
}

fn events_of(trace: &Trace) -> (Vec<Event>, usize) {
    let mut reader = trace.events(0, u64::MAX);
    let mut all = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        all.extend_from_slice(batch);
    }
    (all, reader.damage().len())
}

#[test]
fn an_index_far_beyond_the_table_is_not_believed() {
    // index, process, tid, name, start, end
    let entry = [varint(0xffff_fff0), vec![0, 1, 0, 0, 0]].concat();
    let trace = open(&[chunk(ChunkKind::Threads, 1, 0, &[&entry], false)]);
    assert!(trace.threads().len() < 1 << 17);
}

#[test]
fn a_thread_that_cannot_be_is_damage() {
    let failed_on_new_thread = [3 | 1 << 3 | 1 << 6];
    let new_site = [0, 8];
    for (token, thread) in [(failed_on_new_thread, varint(u64::from(u32::MAX))), ([3 | 1 << 6], vec![])] {
        let streams: [&[u8]; 7] = [&token, &[0], &thread, &[], &[], &[], &new_site];
        let trace = open(&[chunk(ChunkKind::Events, 1, 0, &streams, false)]);
        assert_eq!(events_of(&trace), (vec![], 1));
    }
}

#[test]
fn a_stack_that_the_file_does_not_have_is_the_empty_one() {
    let action = Action::Failed { size_bytes: 8, stack: StackIndex::EMPTY };
    let empty = Event { time_ns: 0, thread: ThreadIndex(5), heap: HeapId::MALLOC, action };
    // A new site with stack 2,000,000,000; then an empty slot of the site table.
    let far = [varint(4_000_000_000), vec![8]].concat();
    for (is_new, sites, new_sites) in [(1 << 6, vec![], far), (0, vec![7, 0], vec![])] {
        let streams: [&[u8]; 7] = [&[3 | 1 << 3 | is_new], &[0], &[5], &[], &[], &sites, &new_sites];
        let (events, damage_count) = events_of(&open(&[chunk(ChunkKind::Events, 1, 0, &streams, false)]));
        assert_eq!(damage_count, 0);
        assert!(matches!(events[0].action, Action::Failed { stack: StackIndex::EMPTY, .. }), "{events:?}");
        assert_eq!(events[0].thread, empty.thread);
    }
}

#[test]
fn totals_of_a_stack_that_the_file_does_not_have_are_damage() {
    let far = varint(4_000_000_000);
    let mut streams: Vec<&[u8]> = vec![&far, &[0]];
    streams.resize(10, &[0]);
    let summary = [0; 17];
    let trace = open(&[
        chunk(ChunkKind::StackTotals, 1, 0, &streams, false),
        chunk(ChunkKind::Summary, 1, 0, &[&summary], false),
    ]);
    assert!(trace.summary().unwrap_err().to_string().contains("out of range"));
}

#[test]
fn a_small_file_cannot_ask_for_much_memory() {
    // 60 MiB of zeros in a few kilobytes, a hundred times: 20 million samples each.
    let zeros = vec![0; 60 << 20];
    let bomb = chunk(ChunkKind::RssSamples, 20 << 20, 0, &[&zeros], true);
    let trace = open(&vec![bomb; 100]);
    assert!(trace.rss_samples().is_empty());
    assert_eq!(trace.damage().len(), 100);
    assert!(trace.damage()[0].what.contains("unpacks to more"));
}

#[test]
fn checkpoints_without_an_end_are_passed_one_after_the_other() {
    let unended =
        |time_ns| chunk(ChunkKind::Checkpoint, 0, time_ns, &[&[0, 0], &[], &[], &[], &[], &[], &[]], false);
    let whole = chunk(ChunkKind::Checkpoint, 0, 5, &[&[0, 1], &[], &[], &[], &[], &[], &[]], false);
    let mut chunks = vec![whole];
    chunks.extend((10..20_010).map(unended));
    let trace = open(&chunks);
    let found = trace.checkpoint_before(u64::MAX).unwrap().unwrap();
    assert_eq!(found.time_ns, 5);
}

#[test]
fn of_two_checkpoints_of_one_time_the_later_counts() {
    let one = chunk(ChunkKind::Checkpoint, 0, 5, &[&[0, 1], &[], &[], &[], &[], &[], &[]], false);
    let block: [&[u8]; 7] = [&[0, 1], &[0], &[32], &[8], &[0], &[0], &[0]];
    let two = chunk(ChunkKind::Checkpoint, 1, 5, &block, false);
    let trace = open(&[two.clone(), one.clone()]);
    assert_eq!(trace.checkpoint_before(5).unwrap().unwrap().blocks.len(), 0);
    assert_eq!(open(&[one, two]).checkpoint_before(5).unwrap().unwrap().blocks.len(), 1);
}

#[test]
fn a_file_of_magics_is_passed_quickly() {
    let file = [FILE_HEADER, &b"HPCK".repeat(2 << 20)].concat();
    let (file_bytes, read_bytes) = (file.len() as u64, Arc::new(AtomicU64::new(0)));
    let source = Counted { file, read_bytes: Arc::clone(&read_bytes) };
    let trace = Trace::from_source(Box::new(source)).unwrap();
    assert_eq!(trace.damage().len(), 1);
    // The reader does not read a window for each magic.
    let read_bytes = read_bytes.load(Relaxed);
    assert!(read_bytes <= 8 * file_bytes, "{read_bytes} bytes of {file_bytes} were read");
}

/// A file that counts the bytes read.
struct Counted {
    file: Vec<u8>,
    read_bytes: Arc<AtomicU64>,
}

impl ReadAt for Counted {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let count = self.file.read_at(buffer, offset)?;
        self.read_bytes.fetch_add(count as u64, Relaxed);
        Ok(count)
    }

    fn size_bytes(&self) -> std::io::Result<u64> {
        self.file.size_bytes()
    }
}

fn process() -> Process {
    Process {
        pid: 1,
        parent_pid: 0,
        origin: ProcessOrigin::Exec,
        start_ns: 0,
        end_ns: None,
        executable: String::new(),
        command_line: Vec::new(),
        exit_status: None,
    }
}

/// A file with 70,000 nodes, in two chunks of 65,536 and the rest, and one event for the last.
fn two_chunks_of_stacks() -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = TraceWriter::new(&mut file).unwrap();
    let process = writer.add_process(process()).unwrap();
    let name = String::new();
    let thread = writer.add_thread(Thread { process, tid: 1, name, start_ns: 0, end_ns: None }).unwrap();
    let mut stack = StackIndex::EMPTY;
    for number in 0..70_000_u64 {
        let parent = if number % 10 == 0 { StackIndex::EMPTY } else { stack };
        let return_address_avma = 0x1000 + number;
        stack =
            writer.add_stack(StackNode { parent, process, return_address_avma, first_seen_ns: 1 }).unwrap();
    }
    let action = Action::Alloc { address_avma: 16, size_bytes: 8, stack, is_moved_realloc: false };
    writer.event(&Event { time_ns: 1, thread, heap: HeapId::MALLOC, action }).unwrap();
    writer.finish(&Summary::default()).unwrap();
    file
}

#[test]
fn nodes_behind_a_damaged_chunk_keep_their_numbers() {
    let mut file = two_chunks_of_stacks();
    let trace = Trace::from_source(Box::new(file.clone())).unwrap();
    assert!(trace.damage().is_empty());
    let expected = trace.stacks().node(StackIndex(70_000)).unwrap();
    let stacks = trace.chunks().iter().find(|chunk| chunk.kind == Some(ChunkKind::Stacks)).unwrap();
    file[stacks.offset as usize + 1000] ^= 1;
    let trace = Trace::from_source(Box::new(file)).unwrap();
    assert_eq!(trace.damage().len(), 1);
    assert_eq!(trace.damage()[0].offset, stacks.offset);
    assert_eq!(trace.stacks().node(StackIndex(70_000)).unwrap(), expected);
    assert_eq!(trace.stacks().node(StackIndex(9)).unwrap().return_address_avma, 0);
    let (events, _) = events_of(&trace);
    assert!(matches!(events[0].action, Action::Alloc { stack: StackIndex(70_000), .. }));
}

#[test]
fn a_node_of_the_65536th_process_or_of_a_wide_address_spoils_no_other() {
    let nodes = [(3, 0x7fff_0000_1000), (65_536, 0x1000), (4, 1 << 55), (0xffff, (1 << 48) - 1), (5, 0x2000)];
    let nodes = nodes.map(|(process, return_address_avma)| StackNode {
        parent: StackIndex::EMPTY,
        process: ProcessIndex(process),
        return_address_avma,
        first_seen_ns: 7,
    });
    let mut file = Vec::new();
    let mut writer = TraceWriter::new(&mut file).unwrap();
    let numbers = nodes.map(|node| writer.add_stack(node).unwrap());
    writer.finish(&Summary::default()).unwrap();
    let trace = Trace::from_source(Box::new(file)).unwrap();
    assert!(trace.damage().is_empty());
    for (node, number) in nodes.into_iter().zip(numbers) {
        assert_eq!(trace.stacks().node(number), Some(node));
    }
}

#[test]
fn times_do_not_go_back_from_chunk_to_chunk() {
    let mut file = Vec::new();
    let mut writer = TraceWriter::new(&mut file).unwrap();
    for time_ns in [100, 50] {
        let action = Action::Failed { size_bytes: 1, stack: StackIndex::EMPTY };
        writer.event(&Event { time_ns, thread: ThreadIndex(0), heap: HeapId::MALLOC, action }).unwrap();
        writer.flush().unwrap();
    }
    writer.finish(&Summary::default()).unwrap();
    let (events, _) = events_of(&Trace::from_source(Box::new(file)).unwrap());
    assert_eq!(events.iter().map(|event| event.time_ns).collect::<Vec<_>>(), [100, 100]);
}

#[test]
fn format_version_0_never_was() {
    let mut bytes = include_bytes!("data/version-1.heapr").to_vec();
    bytes[8] = 0;
    assert!(matches!(Trace::from_source(Box::new(bytes)), Err(heapr_trace::Error::NotATrace { .. })));
}

#[test]
fn chunks_of_unknown_kinds_keep_them_when_symbols_are_embedded() {
    const UNKNOWN: u16 = 4321;
    let mut unknown = chunk(ChunkKind::Markers, 1, 0, &[b"what a later version writes"], false);
    unknown[4..6].copy_from_slice(&UNKNOWN.to_le_bytes());
    let crc = crc32fast::hash(&unknown[..40]);
    unknown[40..44].copy_from_slice(&crc.to_le_bytes());
    let payload_bytes = unknown.len() as u64 - 48;
    let index: Vec<u8> =
        [0, u64::from(UNKNOWN), payload_bytes, payload_bytes, 1, 0, 0].into_iter().flat_map(varint).collect();
    let mut bytes = [FILE_HEADER, &unknown].concat();
    let index_at = bytes.len() as u64;
    bytes.extend(chunk(ChunkKind::Index, 1, 0, &[&index], false));
    let mut trailer = [b"HEAPREND".as_slice(), &index_at.to_le_bytes()].concat();
    trailer.extend(crc32fast::hash(&trailer).to_le_bytes());
    bytes.extend([&trailer[..], &[0; 4]].concat());

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.heapr");
    std::fs::write(&path, &bytes).unwrap();
    assert!(SymbolEmbedder::open(&path).unwrap().embed(b"a bundle").unwrap());
    let trace = Trace::open(&path).unwrap();
    let kinds: Vec<_> = trace.chunks().iter().map(|chunk| (chunk.kind, chunk.kind_number)).collect();
    assert_eq!(kinds, [(None, UNKNOWN), (Some(ChunkKind::Symbols), ChunkKind::Symbols as u16)]);
}

/// If the table of processes is lost, references to it still have processes; a number that no loss
/// explains has no process.
#[test]
fn every_process_number_that_is_given_out_is_one_of_the_table() {
    // (caller, process, address, time), of processes 0 and 3.
    let nodes: [&[u8]; 4] = [&[0, 1], &[1, 0, 1, 3], &[2, 2], &[0, 0]];
    let stacks = chunk(ChunkKind::Stacks, 2, 0, &nodes, false);
    let sample = |process: u64| [vec![1], varint(process), vec![9]].concat();
    let samples = [sample(4), sample(u64::from(u32::MAX) - 1)].concat();
    let mut lost = chunk(ChunkKind::Processes, 1, 0, &[&[0; 9]], false);
    let end = lost.len() - 1;
    lost[end] ^= 1;
    let trace = open(&[lost, stacks, chunk(ChunkKind::RssSamples, 2, 0, &[&samples], false)]);
    assert_eq!(trace.processes().len(), 5);
    assert_eq!(trace.damage().len(), 1, "{:?}", trace.damage());
    assert_eq!(trace.rss_samples().len(), 1);
    let numbers = (1..3).map(|stack| trace.stacks().node(StackIndex(stack)).unwrap().process.0);
    assert!(numbers.eq([0, 3]));
    // A file without any content has one process, too, whose fields are unknown.
    assert_eq!(open(&[]).processes().len(), 1);
    // Totals, blocks and heaps of a missing process are damage.
    let far = varint(9_000_000);
    let owner = [vec![1], far.clone(), vec![0]].concat();
    let mut streams: Vec<&[u8]> = vec![&[0], &owner];
    streams.resize(10, &[0]);
    let summary = [vec![0; 16], vec![1], far, vec![0; 15]].concat();
    for (place, wrong) in [
        chunk(ChunkKind::StackTotals, 1, 0, &streams, false),
        chunk(ChunkKind::Summary, 1, 0, &[&summary], false),
    ]
    .into_iter()
    .enumerate()
    {
        let sound = chunk(ChunkKind::Summary, 1, 0, &[&[0; 17]], false);
        let trace = if place == 0 { open(&[wrong, sound]) } else { open(&[wrong]) };
        assert!(trace.summary().unwrap_err().to_string().contains("out of range"), "{place}");
    }
}
