//! Nodes grouped by class, in the order of lists, so that a class's nodes are found without a scan
//! of all nodes.

/// Nodes by class.
///
/// ```text
///  borders   0     b1        b2     b3      b4 …     two for each class, and the count of nodes
///  nodes     |class 0        |class 1        | …
///            | > 0 B | 0 B   | > 0 B | 0 B   |       nodes with a self size above 0 first: those that summaries count
/// ```
///
/// Each part is sorted by descending retained bytes, then by position in the file.
#[derive(Debug)]
pub(crate) struct NodesByClass {
    pub(crate) borders: Vec<u32>,
    pub(crate) nodes: Vec<u32>,
}

impl NodesByClass {
    /// Sorts the nodes. `class_of` holds the class of each node, `class_count` the number of
    /// classes.
    pub(crate) fn of(
        class_of: &[u32],
        class_count: u32,
        self_bytes: impl Fn(u32) -> u64,
        retained: &[u64],
    ) -> Self {
        let part = |node: u32, class: u32| class as usize * 2 + usize::from(self_bytes(node) == 0);
        let mut borders = vec![0_u32; class_count as usize * 2 + 1];
        for (node, &class) in (0..).zip(class_of) {
            borders[part(node, class) + 1] += 1;
        }
        let mut sum = 0;
        for border in &mut borders {
            sum += *border;
            *border = sum;
        }
        let mut nodes = vec![0; class_of.len()];
        let mut next = borders.clone();
        for (node, &class) in (0..).zip(class_of) {
            let slot = &mut next[part(node, class)];
            nodes[*slot as usize] = node;
            *slot += 1;
        }
        let mut keyed = Vec::new();
        for pair in borders.windows(2) {
            let part = &mut nodes[pair[0] as usize..pair[1] as usize];
            // The keys are stored next to the nodes, because looking each one up again would wait
            // for memory. Most objects of a class have the same few sizes, which a stable sort
            // exploits.
            keyed.clear();
            keyed.extend(part.iter().map(|&node| (u64::MAX - retained[node as usize], node)));
            keyed.sort_by_key(|&(key, _)| key);
            for (slot, &(_, node)) in part.iter_mut().zip(&keyed) {
                *slot = node;
            }
        }
        Self { borders, nodes }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_part_of_a_class_is_in_the_order_of_lists(
            rows in prop::collection::vec((0_u32..5, 0_u64..2, prop_oneof![0_u64..4, Just(u64::MAX)]), 0..200),
        ) {
            let class_of: Vec<u32> = rows.iter().map(|row| row.0).collect();
            let retained: Vec<u64> = rows.iter().map(|row| row.2).collect();
            let made = NodesByClass::of(&class_of, 6, |node| rows[node as usize].1, &retained);
            prop_assert_eq!(made.borders.len(), 13);
            prop_assert_eq!((made.borders[0], made.borders[12]), (0, rows.len() as u32));
            for class in 0..6 {
                for (at, is_without_bytes) in [(class * 2, false), (class * 2 + 1, true)] {
                    let mut expected: Vec<u32> = (0..rows.len() as u32)
                        .filter(|&node| {
                            let row = rows[node as usize];
                            row.0 as usize == class && (row.1 == 0) == is_without_bytes
                        })
                        .collect();
                    expected.sort_by_key(|&node| (std::cmp::Reverse(retained[node as usize]), node));
                    let found = &made.nodes[made.borders[at] as usize..made.borders[at + 1] as usize];
                    prop_assert_eq!(found, &expected[..]);
                }
            }
        }
    }
}
