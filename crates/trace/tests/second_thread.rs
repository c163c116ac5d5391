//! Events that a second thread packs: the file is the same, byte for byte.

use std::io::{self, Write};

use heapr_trace::{
    Action, Block, Event, HeapId, Marker, ProcessIndex, StackIndex, StackNode, Summary, ThreadIndex,
    TraceWriter,
};

/// Number of events per stretch: two chunks and a part of a third.
const STRETCH: u64 = 150_000;

fn event(number: u64) -> Event {
    let address_avma = 0x10_0000 + number / 2 % 5_000 * 48;
    let action = if number.is_multiple_of(2) {
        let (size_bytes, stack) = (number * number % 500, StackIndex((number % 40) as u32 + 1));
        Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false }
    } else {
        Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false }
    };
    // Some events have an earlier time, which is written as the last.
    let time_ns = if number.is_multiple_of(70_001) { 1 } else { number * 31 };
    Event { time_ns, thread: ThreadIndex((number % 3) as u32), heap: HeapId::MALLOC, action }
}

/// Writes the events. `is_wanted`: whether to use the second thread, by stretch. `together`: number
/// of events passed at once, or 0 for one by one.
fn write(sink: &mut impl Write, together: usize, is_wanted: impl Fn(u64) -> bool) -> heapr_trace::Result<()> {
    let mut writer = TraceWriter::new(sink)?;
    let mut waiting = Vec::new();
    for stretch in 0..6 {
        writer.use_second_thread(is_wanted(stretch));
        for number in stretch * STRETCH..(stretch + 1) * STRETCH {
            if together == 0 {
                writer.event(&event(number))?;
            } else {
                waiting.push(event(number));
            }
            let is_last = number.is_multiple_of(1_000) || number + 1 == (stretch + 1) * STRETCH;
            if is_last || waiting.len() == together {
                writer.events(waiting.iter())?;
                waiting.clear();
            }
            if number.is_multiple_of(1_000) {
                let (process, return_address_avma) = (ProcessIndex(0), 0x4000 + number);
                let parent = StackIndex::EMPTY;
                writer.add_stack(StackNode {
                    parent,
                    process,
                    return_address_avma,
                    first_seen_ns: number,
                })?;
            }
        }
        match stretch {
            1 => writer.flush()?,
            2 => writer.marker(&Marker { time_ns: 3, text: "three".to_owned() })?,
            3 => writer.checkpoint(stretch * STRETCH * 31, (0..70_000).map(block))?,
            _ => {}
        }
    }
    writer.finish(&Summary::default())
}

fn block(number: u64) -> Block {
    Block {
        process: ProcessIndex(0),
        heap: HeapId::MALLOC,
        address_avma: number * 64,
        size_bytes: 48,
        stack: StackIndex(1),
        thread: ThreadIndex(0),
        alloc_ns: number,
        is_realloc: false,
    }
}

#[test]
fn the_file_is_the_same_whoever_packs() {
    let mut alone = Vec::new();
    write(&mut alone, 0, |_| false).unwrap();
    let wishes: [fn(u64) -> bool; 5] =
        [|_| false, |_| true, |stretch| stretch % 2 == 0, |stretch| stretch == 4, |stretch| stretch < 3];
    for (number, is_wanted) in wishes.into_iter().enumerate() {
        for together in [0, [256, 1, 7, 100_000, 256][number]] {
            let mut file = Vec::new();
            write(&mut file, together, is_wanted).unwrap();
            assert!(file == alone, "wish {number}, {together} together: {} bytes", file.len());
        }
    }
}

/// Accepts this many bytes, and then fails.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_is_full_is_said() {
    let outcome = write(&mut Full(20_000), 0, |_| true);
    assert!(outcome.is_err());
}

#[test]
fn a_writer_that_is_dropped_leaves_no_thread() {
    let mut writer = TraceWriter::new(io::sink()).unwrap();
    writer.use_second_thread(true);
    for number in 0..300_000 {
        writer.event(&event(number)).unwrap();
    }
    drop(writer);
}
