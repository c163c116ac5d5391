//! Tests of compressed files and archives.

use super::made_text::use_everything;
use super::model::small;
use super::{read, read_file};

#[test]
fn compressed_text_is_recognized() {
    let text = small();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for packed in [&gzip, &zstd] {
        assert_eq!(read(packed).unwrap().node_count(), 3);
        assert_eq!(read_file(packed).unwrap().node_count(), 3);
        // A truncated compressed file is like truncated text.
        assert!(read(&packed[..packed.len() / 2]).is_err());
    }
}

/// Member of a tar archive.
fn tar_member(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    let size = format!("{:011o}\0", content.len());
    header[124..136].copy_from_slice(size.as_bytes());
    header[156] = kind;
    header[257..262].copy_from_slice(b"ustar");
    header.extend_from_slice(content);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

/// Member of a zip archive, compressed or stored.
fn zip_member(name: &str, content: &[u8], is_packed: bool) -> Vec<u8> {
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, content).unwrap();
    let content = if is_packed { packed.finish().unwrap() } else { content.to_vec() };
    let mut member = b"PK\x03\x04".to_vec();
    member.extend([20, 0, 0, 0, if is_packed { 8 } else { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    member.extend((content.len() as u32).to_le_bytes());
    member.extend([0; 4]);
    member.extend((name.len() as u16).to_le_bytes());
    member.extend([0; 2]);
    member.extend(name.as_bytes());
    member.extend(content);
    member
}

/// Zip member as a program writes it to a pipe: its sizes come after the content.
fn streamed(mut member: Vec<u8>) -> Vec<u8> {
    member[6] = 8;
    member[18..22].fill(0);
    member.extend(b"PK\x07\x08");
    member.extend([0; 12]);
    member
}

#[test]
fn archives_are_read_up_to_their_first_snapshot() {
    let text = small();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let tar = [
        tar_member("notes.txt", b'0', b"{}"),
        tar_member("a/", b'5', b""),
        tar_member("././@LongLink", b'L', b"a/a.heapsnapshot\0"),
        tar_member("a/a.heapsnap", b'0', text.as_bytes()),
        vec![0; 1024],
    ]
    .concat();
    let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
    for packed in [
        zstd::encode_all(&tar[..], 1).unwrap(),
        tar,
        tar_member("a.heapsnapshot.zst", b'0', &zstd),
        [zip_member("notes.txt", b"none", true), zip_member("a.heapsnapshot", text.as_bytes(), true)]
            .concat(),
        zip_member("a.heapsnapshot", text.as_bytes(), false),
        // Another JSON file is not a snapshot.
        [tar_member("package.json", b'0', b"{}"), tar_member("a.json", b'0', text.as_bytes())].concat(),
        [zip_member("package.json", b"{}", false), zip_member("a.json", text.as_bytes(), false)].concat(),
        [
            streamed(zip_member("notes.txt", b"none", true)),
            streamed(zip_member("package.json", b"{}", true)),
            streamed(zip_member("a.heapsnapshot", text.as_bytes(), true)),
        ]
        .concat(),
        marked,
    ] {
        assert_eq!(read(&packed).unwrap().node_count(), 3);
        assert_eq!(read_file(&packed).unwrap().node_count(), 3);
        for cut in (0..packed.len()).step_by(61) {
            if let Ok(snapshot) = read(&packed[..cut]) {
                use_everything(snapshot);
            }
        }
    }
    for without in [tar_member("notes.txt", b'0', b"{}"), zip_member("notes.txt", b"{}", true)] {
        let error = std::error::Error::source(&read(&without).unwrap_err()).unwrap().to_string();
        assert!(error.contains("holds no .heapsnapshot"), "{error}");
    }
}

#[test]
fn xz_is_recognized() {
    // Output of `xz` for a snapshot of one node.
    const PACKED: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x16,
        0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x01, 0x07, 0x00, 0x9f, 0x5d, 0x00, 0x3d, 0x88, 0x8a,
        0x67, 0x23, 0x92, 0x17, 0x58, 0x4b, 0x49, 0x78, 0x92, 0xbb, 0x81, 0xc7, 0x2b, 0x2f, 0x26, 0x65, 0xe8,
        0xa2, 0x6c, 0x7c, 0xd2, 0xea, 0xca, 0xca, 0x74, 0x9b, 0x26, 0xd6, 0xb3, 0x3f, 0x1e, 0xa4, 0x87, 0x48,
        0x13, 0x8d, 0xf0, 0xdd, 0xb1, 0x74, 0x1a, 0xff, 0xa3, 0xea, 0x50, 0x36, 0xd5, 0x80, 0x45, 0x3c, 0x60,
        0x68, 0x64, 0x6f, 0x88, 0x24, 0xfa, 0xc6, 0xfa, 0x53, 0x7a, 0x13, 0xdb, 0x27, 0xb6, 0x4c, 0x96, 0x42,
        0x43, 0x6a, 0xd5, 0x3b, 0x83, 0x94, 0xd9, 0xf0, 0x0a, 0xce, 0x0b, 0x23, 0x62, 0xba, 0xcb, 0x20, 0x18,
        0x8c, 0x38, 0xae, 0x8e, 0xe5, 0xc0, 0xc9, 0x36, 0x0c, 0x79, 0x88, 0x07, 0xee, 0x7e, 0x15, 0x5c, 0x9e,
        0x91, 0x33, 0xe7, 0xf1, 0x0d, 0x5d, 0xc2, 0xad, 0x15, 0x1d, 0x81, 0x0a, 0x8f, 0x05, 0xe9, 0x51, 0x65,
        0x49, 0xc4, 0x0d, 0xf2, 0x40, 0xb2, 0x49, 0xe9, 0x34, 0x1c, 0x64, 0x7e, 0x43, 0x48, 0xd5, 0x34, 0x93,
        0xcf, 0x6e, 0x4d, 0x23, 0xa4, 0xd0, 0xe3, 0xa0, 0xb6, 0x8f, 0x8a, 0xf9, 0xc2, 0x4a, 0x94, 0x37, 0x37,
        0x53, 0x08, 0xcc, 0x00, 0x00, 0xf8, 0x91, 0xa4, 0xfa, 0x36, 0x41, 0x77, 0x38, 0x00, 0x01, 0xbb, 0x01,
        0x88, 0x02, 0x00, 0x00, 0x61, 0x54, 0x51, 0xa5, 0xb1, 0xc4, 0x67, 0xfb, 0x02, 0x00, 0x00, 0x00, 0x00,
        0x04, 0x59, 0x5a,
    ];
    assert_eq!(read(PACKED).unwrap().node_count(), 1);
    assert_eq!(read_file(PACKED).unwrap().node_count(), 1);
}

#[test]
fn members_that_nobody_knows_are_passed_over() {
    // Member that the newest V8 may write: the uses of scopes' variables.
    let scopes = r#""scopes":[0,1,0,2,1],"scope_context_vars":[[1,"a,]"],{"b":[2]}],"scope_uses":[]"#;
    let text = format!(
        r#"{{"snapshot":{{"meta":{{"node_fields":["type","name","id","self_size","edge_count"],"node_types":[["synthetic"]],
        "edge_fields":["type","name_or_index","to_node"],"edge_types":[["element"]],"scope_fields":["scope_id"]}},
        "node_count":2,"edge_count":1}},"nodes":[0,0,1,0,1,0,1,3,8,0],"edges":[0,0,5],"locations":[],{scopes},"strings":["","x"]}}"#
    );
    let snapshot = read(text.as_bytes()).unwrap();
    assert_eq!((snapshot.node_count(), snapshot.edge_count()), (2, 1));
    assert!(snapshot.problems().is_empty(), "{:?}", snapshot.problems());
    assert_eq!(snapshot.name(1), b"x");
}
