//! The worked examples of docs/format.md.

use heapr_trace::{Action, Event, HeapId, StackIndex, Summary, ThreadIndex, TraceWriter};

#[test]
fn the_shortest_file_is_as_documented() {
    let mut file = Vec::new();
    TraceWriter::new(&mut file).unwrap().finish(&Summary::default()).unwrap();
    assert_eq!(&file[..16], b"HEAPRTRC\x01\0\0\0\0\0\0\0");
    assert_eq!(&file[16..24], b"HPCK\x0e\0\0\0");
    assert_eq!(&file[24..36], [26, 0, 0, 0, 26, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(file[36..40], crc32fast::hash(&file[64..90]).to_le_bytes());
    assert_eq!(&file[40..56], [0; 16]);
    assert_eq!(file[56..60], crc32fast::hash(&file[16..56]).to_le_bytes());
    assert_eq!(&file[64..73], [1, 17, 0, 0, 0, 17, 0, 0, 0]);
    assert_eq!(&file[73..90], [0; 17]);
    assert_eq!(&file[90..98], b"HPCK\x10\0\0\0");
    assert_eq!(&file[90 + 48 + 9..90 + 48 + 9 + 7], [0, 0x0e, 0x1a, 0x1a, 1, 0, 0]);
    let trailer = &file[file.len() - 24..];
    assert_eq!(&trailer[..16], b"HEAPREND\x5a\0\0\0\0\0\0\0");
    assert_eq!(trailer[16..20], crc32fast::hash(&trailer[..16]).to_le_bytes());
}

#[test]
fn two_events_are_as_documented() {
    let mut file = Vec::new();
    let mut writer = TraceWriter::new(&mut file).unwrap();
    let (thread, heap, address_avma) = (ThreadIndex(0), HeapId::MALLOC, 0x5000);
    let alloc = Action::Alloc { address_avma, size_bytes: 24, stack: StackIndex(3), is_moved_realloc: false };
    let free = Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false };
    writer.event(&Event { time_ns: 1000, thread, heap, action: alloc }).unwrap();
    writer.event(&Event { time_ns: 1050, thread, heap, action: free }).unwrap();
    writer.flush().unwrap();
    let [header, payload] = [&file[16..64], &file[64..]];
    assert_eq!(header[..20], *b"HPCK\x08\0\0\0\x44\0\0\0\x44\0\0\0\x02\0\0\0");
    assert_eq!(
        (header[24..32].to_vec(), header[32..40].to_vec()),
        (vec![0xe8, 3, 0, 0, 0, 0, 0, 0], vec![0x1a, 4, 0, 0, 0, 0, 0, 0])
    );
    assert_eq!(payload[0], 7);
    let sizes = [2, 2, 1, 3, 1, 0, 2].map(|size| [size, 0, 0, 0, size, 0, 0, 0]);
    assert_eq!(payload[1..57], sizes.concat());
    assert_eq!(payload[57..], [0x48, 0x21, 0x00, 0x32, 0x00, 0x80, 0xc0, 0x02, 0x00, 0x06, 0x18]);
}
