//! Synthetic cores, whole, cut and changed.

use super::*;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn note(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = [5_u32, body.len() as u32, kind].map(u32::to_le_bytes).concat();
    bytes.extend_from_slice(b"CORE\0\0\0\0");
    bytes.extend_from_slice(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A core with one thread, a program at 0x1000 of which only the data is contained, brk memory, and
/// a stack.
fn made() -> Vec<u8> {
    let mut status = vec![0; 336];
    status[32..36].copy_from_slice(&77_u32.to_le_bytes());
    let mut put = |place: usize, value: u64| {
        status[112 + place * 8..120 + place * 8].copy_from_slice(&value.to_le_bytes());
    };
    [(10, 0xa), (19, 0x9010), (21, 0xf5)].iter().for_each(|&(place, value)| put(place, value));
    let files = [words(&[1, 4096, 0x1000, 0x3000, 0]), b"/bin/made\0".to_vec()].concat();
    let vector = words(&[3, 0x1040, 31, 0x9ff0, 0, 0]);
    let notes = [note(1, &status), note(2, &words(&[1, 2])), note(6, &vector), note(FILE, &files)];
    let notes = notes.concat();
    let at = 64 + 56 * 4;
    let header = |kind: u64, flags: u64, off: u64, avma: u64, core_bytes: u64, bytes: u64| {
        words(&[kind | flags << 32, off, avma, 0, core_bytes, bytes, 4096])
    };
    let memory_off = at + notes.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend_from_slice(&[4, 0, 62, 0, 1, 0, 0, 0]);
    file.extend(words(&[0, 64, 0]));
    file.extend_from_slice(&[0, 0, 0, 0, 64, 0, 56, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(header(4, 0, at, 0, notes.len() as u64, 0));
    file.extend(header(1, 6, memory_off, 0x2000, 0x1000, 0x1000));
    file.extend(header(1, 6, memory_off + 0x1000, 0x5000, 0x1000, 0x1000));
    file.extend(header(1, 6, memory_off + 0x2000, 0x9000, 0x800, 0x1000));
    file.extend(notes);
    file.extend((0..0x2800_u32).map(|number| (number >> 8) as u8));
    file
}

const FILE: u32 = 0x4649_4c45;

#[test]
fn threads_mappings_and_memory_come_back() {
    let core = CoreFile::of_bytes(made()).unwrap();
    let [thread] = core.threads() else { panic!("{:?}", core.threads()) };
    assert_eq!((thread.tid, thread.stack_pointer, thread.thread_pointer), (77, 0x9010, 0xf5));
    assert_eq!((thread.registers[0], &thread.registers[19..]), (0xa, &[1, 2][..]));
    assert_eq!(core.executable(), "/bin/made");
    let names = core.mappings().iter().map(|mapping| (mapping.start_avma, mapping.name.as_str()));
    // The file mapping that the core leaves out overlaps with a segment, so that it is dropped.
    let expected = [(0x2000, "/bin/made"), (0x5000, "[heap]"), (0x9000, "[stack]")];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    let mut bytes = [0; 0x20];
    assert_eq!(core.read_memory(0x5ff0, &mut bytes), 0x10, "nothing is mapped behind");
    assert_eq!(bytes[0], 0x1f);
    assert_eq!(core.read_memory(0x97f0, &mut bytes), 0x10, "the rest was not kept");
    assert_eq!(core.read_memory(0x4000, &mut bytes), 0);
    assert_eq!(core.kept_parts(0x9000, 0xa000), [(0x9000, 0x9800)]);
}

#[test]
fn a_core_of_another_processor_or_kind_is_refused_with_its_reason() {
    let changed = |at: usize, value: u8| {
        let mut core = made();
        core[at] = value;
        CoreFile::of_bytes(core).map(|_| ()).unwrap_err().to_string()
    };
    const AARCH64: u8 = 183;
    const RISC_V: u8 = 243;
    let mut of_aarch64 = made();
    of_aarch64[18] = AARCH64;
    assert!(CoreFile::of_bytes(of_aarch64).is_ok());
    assert!(changed(18, RISC_V).ends_with("it is of another processor"));
    assert!(changed(4, 1).ends_with("it is of a 32-bit program"));
    assert!(changed(16, 2).ends_with("it is an ELF file of another kind"));
    assert!(changed(1, b'e').ends_with("it does not begin as one"));
}

#[test]
fn a_core_that_is_cut_or_changed_anywhere_is_read_or_refused() {
    let whole = made();
    for length in 0..whole.len().min(1200) {
        let _ = CoreFile::of_bytes(whole[..length].to_vec());
    }
    for place in 0..1000 {
        for value in [0, 0x7f, 0xff] {
            let mut changed = whole.clone();
            changed[place] = value;
            let Ok(mut core) = CoreFile::of_bytes(changed) else { continue };
            core.use_files(|_| "/nonexistent".into());
            let mut bytes = [0; 64];
            for mapping in core.mappings() {
                assert!(core.read_memory(mapping.start_avma, &mut bytes) <= 64);
            }
            assert!(core.kept_parts(0, u64::MAX).iter().all(|part| part.0 < part.1));
        }
    }
    assert!(CoreFile::of_bytes(b"no core".to_vec()).is_err());
}
