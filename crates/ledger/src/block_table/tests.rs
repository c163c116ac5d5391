use heapr_trace::ThreadIndex;

use super::*;

#[test]
fn every_address_has_a_slot_of_its_own() {
    for base in [0_u64, 0x7fff_ffff_f000, u64::MAX - 0xfff] {
        for offset in 0..0x1000 {
            let wanted = base + offset;
            assert_eq!(address(key(wanted), slot(wanted)), wanted);
        }
    }
}

/// Compares with a plain map: blocks come and go all over the address space, through sweeps, growth
/// and the ends of processes.
#[test]
fn it_holds_what_a_plain_map_holds() {
    let mut table = BlockTable::new();
    let mut model = std::collections::HashMap::new();
    let mut random = 7_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for step in 0..300_000_u64 {
        table.tidy_up();
        let (process, heap) = (ProcessIndex((next() % 3) as u32), HeapId((next() % 2) as u8));
        // Each phase has addresses of its own, close together in one and far apart in the next.
        let phase = step / 30_000;
        let shift = if phase.is_multiple_of(2) { 4 } else { 13 };
        let address = (phase << 40) + ((next() % 5_000) << shift) + (next() % 2) * 8;
        if next() % 3 == 0 {
            let block = Block {
                process,
                heap,
                address_avma: address,
                size_bytes: next(),
                stack: StackIndex(step as u32),
                thread: ThreadIndex((step % 9) as u32),
                alloc_ns: step,
                is_realloc: step.is_multiple_of(5),
            };
            let hint = table.hint(process, heap, address);
            let there =
                model.get(&(process, heap, address)).map_or(StackIndex::EMPTY, |block: &Block| block.stack);
            assert_eq!(table.stack_of(table.prefetch(hint, address)), there);
            assert_eq!(table.insert(&block, hint), model.insert((process, heap, address), block));
        } else {
            // With the result of a look-up, or without.
            let looked_up = table.hint(process, heap, address);
            let hint = if next() % 2 == 0 { looked_up } else { Hint::NONE };
            assert_eq!(table.remove(process, heap, address, hint), model.remove(&(process, heap, address)));
        }
        if step % 70_000 == 69_999 {
            table.remove_process(process);
            model.retain(|key, _| key.0 != process);
        }
        assert_eq!(table.len(), model.len());
    }
    let key = |block: &Block| (block.process, block.heap, block.address_avma);
    let mut found: Vec<Block> = table.iter().collect();
    let mut expected: Vec<Block> = model.into_values().collect();
    found.sort_by_key(key);
    expected.sort_by_key(key);
    assert_eq!(found, expected);
    assert_eq!(table.sorted().collect::<Vec<_>>(), expected);
}

/// A program that fills its heap, frees nearly all of it and continues elsewhere: the remaining
/// blocks need no rooms.
#[test]
fn rooms_are_given_back_where_one_block_of_many_stays() {
    let mut table = BlockTable::new();
    let (process, heap) = (ProcessIndex(0), HeapId::MALLOC);
    for group in 0..4 * SWEPT_ROOMS_MIN as u64 {
        let address = |slot: u64| (group << 5 | slot) << 4;
        table.tidy_up();
        for slot in 0..SLOT_COUNT as u64 {
            let block = Block {
                process,
                heap,
                address_avma: address(slot),
                size_bytes: 16,
                stack: StackIndex(1),
                thread: ThreadIndex(0),
                alloc_ns: group,
                is_realloc: false,
            };
            assert_eq!(table.insert(&block, Hint::NONE), None);
        }
        for slot in 1..SLOT_COUNT as u64 {
            assert!(table.remove(process, heap, address(slot), Hint::NONE).is_some());
        }
        assert!(table.rooms.count() <= SWEPT_ROOMS_MIN);
    }
    assert_eq!(table.len(), 4 * SWEPT_ROOMS_MIN);
}
