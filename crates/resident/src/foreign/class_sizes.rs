//! tcmalloc's table of size classes, found in the data of its module.

/// Block sizes by class; class 0 stands for large blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClassSizes(Vec<u64>);

impl ClassSizes {
    /// Finds the table: sizes that rise from 8 and 16 up to the largest.
    pub(super) fn find(data: &[u64]) -> Option<Self> {
        const FIRST: [u32; 4] = [0, 8, 16, 32];
        const LARGEST: u32 = 256 << 10;
        const MOST_CLASSES: usize = 128;
        let halves = |at: usize| {
            let word = data.get(at / 2).copied()?;
            Some(if at.is_multiple_of(2) { word as u32 } else { (word >> 32) as u32 })
        };
        (0..data.len() * 2).find_map(|at| {
            if halves(at) != Some(FIRST[0]) || halves(at + 1) != Some(FIRST[1]) {
                return None;
            }
            let mut sizes: Vec<u64> = Vec::new();
            for place in at..at + MOST_CLASSES {
                let size = halves(place)?;
                if sizes.last().is_some_and(|last| *last >= u64::from(size)) {
                    break;
                }
                sizes.push(size.into());
            }
            let begins = sizes.iter().zip(FIRST).all(|(size, first)| *size == u64::from(first));
            (begins && sizes.last() == Some(&u64::from(LARGEST))).then_some(Self(sizes))
        })
    }

    /// Size of a class of small blocks.
    pub(super) fn of(&self, class: usize) -> Option<u64> {
        self.0.get(class).copied().filter(|size| *size > 0)
    }

    /// Number of classes, class 0 included.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_found_at_any_half_of_a_word() {
        let sizes: Vec<u32> = [7, 7, 7, 0, 8, 16, 32, 1024, 256 << 10, 3, 0, 0].to_vec();
        let words = |sizes: &[u32]| -> Vec<u64> {
            sizes
                .as_chunks::<2>()
                .0
                .iter()
                .map(|[low, high]| u64::from(*low) | u64::from(*high) << 32)
                .collect()
        };
        let found = ClassSizes::find(&words(&sizes)).unwrap();
        assert_eq!((found.count(), found.of(4), found.of(0), found.of(9)), (6, Some(1024), None, None));
        assert_eq!(ClassSizes::find(&words(&[0, 8, 16, 32, 64, 1])), None);
        assert_eq!(ClassSizes::find(&[]), None);
    }
}
