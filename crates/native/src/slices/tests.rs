use heapr_trace::RootEdge;

use super::*;
use crate::block_map::KnownBlock;

/// Address of the judged block of 16 KiB, number 0.
const AT: u64 = 0x5555_0001_0000;
const SIZE: u64 = 16 << 10;
/// Address of block 1, which holds the references.
const INDEX: u64 = AT + (1 << 20);
/// Address of block 2, of 24 bytes.
const OWNER: u64 = INDEX + (1 << 20);

/// Judges block 0 for the words of block 1, of block 2, and of a global variable.
fn sliced(index: &[u64], owner: &[u64], globals: &[u64]) -> Vec<(u32, u32, u64)> {
    let block =
        |address_avma, size_bytes| KnownBlock { address_avma, size_bytes, usable_bytes: size_bytes + 8 };
    let map = BlockMap::new(vec![block(AT, SIZE), block(INDEX, 4096 * 8), block(OWNER, 24)]);
    let mut found = Scanned { first_edge: vec![0, 0], ..Scanned::default() };
    let mut search = SliceSearch::default();
    let grade_of = |hit: Hit| match hit.offset_bytes {
        0 => EdgeGrade::Start,
        SIZE => EdgeGrade::OnePast,
        _ => EdgeGrade::Interior,
    };
    let bytes = |words: &[u64]| -> Vec<[u8; 8]> { words.iter().map(|word| word.to_le_bytes()).collect() };
    for (block, words) in [(1_u32, bytes(index)), (2, bytes(owner))] {
        for at in 0..words.len() {
            let Some(hit) = map.find(u64::from_le_bytes(words[at])) else { continue };
            let place = (Holder::Block(block, at as u64), found.targets.len());
            search.note(&map, place, (hit, grade_of(hit)), Some((&words, at)));
            found.targets.push(hit.block);
            found.slots.push(at as u32);
            found.grades.push(grade_of(hit));
        }
        found.first_edge.push(found.targets.len() as u32);
    }
    let words = bytes(globals);
    for at in 0..words.len() {
        let Some(hit) = map.find(u64::from_le_bytes(words[at])) else { continue };
        let place = (Holder::Area(0, at as u64), found.roots.len());
        search.note(&map, place, (hit, grade_of(hit)), Some((&words, at)));
        let (offset_bytes, grade) = (at as u64 * 8, grade_of(hit));
        found.roots.push(RootEdge { area: 0, offset_bytes, target: hit.block, grade });
    }
    let blocks = search.sliced(&map, &found);
    blocks.iter().map(|it| (it.node, it.view_count, it.covered_bytes)).collect()
}

#[test]
fn lengths_beside_references_cover_a_part() {
    // Length behind, length before; two views that overlap cover their union.
    assert_eq!(sliced(&[AT + 100, 16], &[], &[]), [(0, 1, 16)]);
    assert_eq!(sliced(&[16, AT + 100, 1 << 40], &[], &[]), [(0, 1, 16)]);
    assert_eq!(sliced(&[AT + 100, 16, 0, AT + 108, 16, 0, AT + 500, 4], &[], &[]), [(0, 3, 28)]);
    assert_eq!(sliced(&[], &[], &[AT + 100, 16]), [(0, 1, 16)]);
}

#[test]
fn a_plain_pointer_or_a_whole_view_keeps_the_block_used() {
    assert_eq!(sliced(&[AT + 100, 16], &[], &[AT, 0]), []);
    assert_eq!(sliced(&[AT + 100, 16, 0, 0, 0, 0, 0, AT + 200, 0], &[], &[]), []);
    assert_eq!(sliced(&[AT + 100, 16], &[], &[AT, SIZE]), []);
    assert_eq!(sliced(&[AT + 100, SIZE / 8], &[], &[]), []);
    // A length beyond the block's end, and the end of the block.
    assert_eq!(sliced(&[AT + 100, SIZE], &[], &[]), []);
    assert_eq!(sliced(&[AT + 100, 16, 0, AT + SIZE, 16], &[], &[]), []);
    // A capacity behind the length: the room belongs to the reference.
    assert_eq!(sliced(&[AT + 100, 16, SIZE - 100], &[], &[]), []);
}

#[test]
fn a_number_beside_the_start_alone_is_no_length() {
    // As a count of references is.
    assert_eq!(sliced(&[AT, 1], &[], &[]), []);
    assert_eq!(sliced(&[AT, 16, 0, AT + 100, 16], &[], &[]), [(0, 2, 32)]);
}

#[test]
fn an_owner_that_only_views_refer_to_belongs_to_them() {
    let owner = [AT, SIZE, 1];
    let view = [0x7f00_0000_0000, AT, 16, OWNER];
    assert_eq!(sliced(&view, &owner, &[]), [(0, 1, 16)]);
    // Another block refers to the owner, or no reference leads to it.
    assert_eq!(sliced(&view, &owner, &[OWNER]), []);
    assert_eq!(sliced(&[view[0], AT, 16, 0], &owner, &[]), []);
    // A view of Python: place, object, length.
    assert_eq!(sliced(&[AT + 132, AT, 16, 1], &[], &[]), [(0, 1, 16)]);
    // The start with a tag, in place of an owner.
    assert_eq!(sliced(&[0x7f00_0000_0000, AT + 64, 16, AT | 1], &[], &[]), [(0, 1, 16)]);
}

#[test]
fn what_stands_around_a_reference_shows_that_it_is_no_view() {
    // Control bytes of a hash table of 1024 places, with its mask; a view that ends near the end.
    let control = AT + SIZE - 1024 - 16;
    assert_eq!(sliced(&[control, 1023, 896, 500], &[], &[]), []);
    assert_eq!(sliced(&[1023, control, 0, 896], &[], &[]), []);
    assert_eq!(sliced(&[control, 1000], &[], &[]), [(0, 1, 1000)]);
    // Two places side by side; a cursor of a buffer; what is left of an arena.
    assert_eq!(sliced(&[AT + 100, AT + 200, 16], &[], &[]), []);
    assert_eq!(sliced(&[AT, AT + 100, 16, SIZE], &[], &[]), []);
    assert_eq!(sliced(&[AT, AT + SIZE - 64, 64], &[], &[]), []);
    // Numbers of dimensions.
    assert_eq!(sliced(&[AT + 800, 2, 0, AT, 2], &[], &[]), []);
    // 256 items of 64 bytes, and ten of these; rows and columns beside an owner.
    assert_eq!(sliced(&[256, AT, 256, 0, 0, 0, 0, 0, AT + 640, 10], &[], &[]), []);
    assert_eq!(sliced(&[OWNER, AT, 100, 20], &[AT, SIZE, 1], &[]), []);
}

#[test]
fn a_block_with_many_references_of_its_own_is_an_arena() {
    let block = |at, size_bytes| KnownBlock { address_avma: at, size_bytes, usable_bytes: size_bytes + 8 };
    let map = BlockMap::new(vec![block(AT, SIZE), block(INDEX, 64)]);
    let told = |own_count: u64| {
        let mut search = SliceSearch::default();
        let words = [AT + 128, 16].map(u64::to_le_bytes);
        let hit = Hit { block: 0, offset_bytes: 128 };
        search.note(&map, (Holder::Block(1, 0), 0), (hit, EdgeGrade::Interior), Some((&words, 0)));
        (0..own_count).for_each(|_| search.note_own(&map, 0));
        let found = Scanned {
            first_edge: vec![0, 0, 1],
            targets: vec![0],
            slots: vec![0],
            grades: vec![EdgeGrade::Interior],
            ..Scanned::default()
        };
        search.sliced(&map, &found).len()
    };
    assert_eq!((told(SIZE / BYTES_PER_EDGE), told(SIZE / BYTES_PER_EDGE + 1)), (1, 0));
}
