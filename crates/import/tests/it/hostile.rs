//! Hostile files: refused with an offset, or read as far as they are valid.

use std::io::Write as _;

use heapr_import::Error;

const HEAPTRACK: &str =
    "v 10400 3\nX ./a\ns 4 leaf\ns 4 main\ni 1 0 1 0 0\nt 1 0\na 10 1\n+ 0\n+ 0\n- 0\nR 5\nc 1\n";
const MASSIF: &str = "desc: x\ncmd: ./a b\ntime_unit: ms\n#-----------\nsnapshot=0\n#-----------\ntime=5\nmem_heap_B=30\n\
                      mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=peak\nn1: 30 (heap)\n n1: 30 0x1: f (a.c:1)\n  n0: 20 0x2: main (a.c:2)\n";
const DHAT: &str = r#"{"dhatFileVersion":2,"mode":"heap","bklt":true,"tu":"instrs","cmd":"./a","pid":7,"te":9,"tg":4,
    "pps":[{"tb":9,"tbk":3,"gb":6,"gbk":2,"eb":3,"ebk":1,"fs":[1]}],"ftbl":["[root]","0x1: f (a.c:1)"]}"#;
const JEMALLOC: &str = "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x10 0x20\n  t*: 1: 8 [2: 16]\n\nMAPPED_LIBRARIES:\n";
/// Sample type inuse_space, one sample of 300 at location 1, function f.
const PPROF: &[u8] =
    b"\x0a\x04\x08\x01\x10\x02\x12\x07\x0a\x01\x01\x12\x02\xac\x02\x22\x08\x08\x01\x22\x04\x08\x01\x10\x07\
                       \x2a\x04\x08\x01\x10\x03\x32\x00\x32\x0binuse_space\x32\x05bytes\x32\x01f";

fn samples() -> Vec<Vec<u8>> {
    let texts = [HEAPTRACK, MASSIF, DHAT, JEMALLOC].map(|text| text.as_bytes().to_vec());
    texts.into_iter().chain([PPROF.to_vec()]).collect()
}

#[test]
fn small_files_of_each_kind_are_read() {
    let expected = [(16, 32), (0, 30), (3, 6), (8, 0), (300, 0)];
    for (bytes, expected) in samples().iter().zip(expected) {
        let trace = heapr_import::from_bytes(bytes).unwrap();
        let amounts = crate::totals::of_report(&trace);
        assert_eq!((amounts.outstanding_bytes, amounts.peak_bytes).1, expected.1, "{trace:?}");
        if expected.0 != 0 {
            assert_eq!(amounts.outstanding_bytes, expected.0, "{trace:?}");
        }
    }
}

/// Every cut and many changed bytes give an error or a trace, never a panic.
#[test]
fn nothing_makes_it_panic() {
    let mut random = 88_172_645_463_325_252_u64;
    let mut below = |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 16) as usize % limit
    };
    for bytes in samples() {
        for end in 0..bytes.len() {
            let _ = heapr_import::from_bytes(&bytes[..end]);
        }
        for _ in 0..400 {
            let mut changed = bytes.clone();
            for _ in 0..1 + below(4) {
                let place = below(changed.len());
                changed[place] = below(256) as u8;
            }
            if let Ok(trace) = heapr_import::from_bytes(&changed) {
                assert!(trace.damage().is_empty());
            }
        }
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let broken = MASSIF.replace("n0: 20", "n0: x");
    let error = heapr_import::from_bytes(broken.as_bytes()).unwrap_err();
    let place = broken.find("  n0").unwrap() as u64;
    assert!(matches!(error, Error::Malformed { offset, .. } if offset == place), "{error}");
    let newer = HEAPTRACK.replace("v 10400 3", "v 10900 4");
    assert!(matches!(heapr_import::from_bytes(newer.as_bytes()), Err(Error::NewerVersion { found: 4, .. })));
    let raw = heapr_import::from_bytes(b"v 10400 3\nx 4 /bin\n").unwrap_err().to_string();
    assert!(raw.contains("offset 10") && raw.contains("heaptrack_interpret"), "{raw}");
    let memray = heapr_import::from_bytes(b"memray\0\x0c\0\0\0").unwrap_err().to_string();
    assert!(memray.contains("memray stats --json"), "{memray}");
    let cpu = PPROF.to_vec().escape_ascii().to_string().replace("inuse_space", "samplecount");
    assert!(cpu.contains("samplecount"));
    assert!(matches!(heapr_import::from_bytes(b"hello"), Err(Error::Unknown { .. })));
}

/// A megabyte that unpacks to gigabytes of names is refused before they are stored.
#[test]
fn a_bomb_is_refused() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(b"v 10200 2\n").unwrap();
    let line = [&b"s "[..], &[b'x'; 60_000], b"\n"].concat();
    for _ in 0..3000 {
        encoder.write_all(&line).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let error = heapr_import::from_bytes(&bomb).unwrap_err();
    assert!(matches!(error, Error::Swells { .. }), "{error}");
}

/// A file whose writer was killed is read up to its end, with a notice.
#[test]
fn a_file_that_ends_in_its_middle_is_read() {
    let text = [HEAPTRACK, &"+ 0\n- 0\n".repeat(100_000)].concat();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let trace = heapr_import::from_bytes(&packed[..packed.len() / 2]).unwrap();
    assert!(trace.notices().iter().any(|notice| notice.text.contains("ends in the middle")));
    assert!(crate::totals::of_report(&trace).total_count > 1000);
}
