//! The worked example of docs/format.md.

use heapr_trace::{Summary, TraceWriter};

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
