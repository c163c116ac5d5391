//! Sizes of allocations: 4 bytes each, and those that do not fit in a list.

/// Marks a size that does not fit its column.
const LARGE: u32 = u32::MAX;

/// Sizes, or other amounts, by allocation.
#[derive(Debug, Default, Clone)]
pub(crate) struct SizeColumn {
    stored: Vec<u32>,
    /// Sizes of 4 GiB and more, in order of their allocations.
    large: Vec<(u32, u64)>,
}

impl SizeColumn {
    /// Appends the size of the next allocation.
    pub(crate) fn push(&mut self, size_bytes: u64) {
        let stored = u32::try_from(size_bytes).unwrap_or(LARGE);
        if stored == LARGE {
            self.large.push((self.stored.len() as u32, size_bytes));
        }
        self.stored.push(stored);
    }

    /// Size of an allocation.
    #[inline(always)]
    pub(crate) fn get(&self, allocation: usize) -> u64 {
        let stored = self.stored[allocation];
        if stored == LARGE { self.large(allocation) } else { u64::from(stored) }
    }

    #[cold]
    fn large(&self, allocation: usize) -> u64 {
        let place = self.large.binary_search_by_key(&(allocation as u32), |&(number, _)| number);
        place.map_or(u64::from(LARGE), |place| self.large[place].1)
    }

    /// Sum of all sizes.
    pub(crate) fn sum(&self) -> u128 {
        let small =
            self.stored.iter().filter(|&&size| size != LARGE).map(|&size| u64::from(size)).sum::<u64>();
        let large = self.large.iter().map(|&(_, size_bytes)| u128::from(size_bytes)).sum::<u128>();
        u128::from(small) + large
    }

    /// Reserves memory for further sizes; without it the column grows as needed.
    pub(crate) fn reserve(&mut self, count: usize) {
        let _ = self.stored.try_reserve(count);
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.stored.shrink_to_fit();
        self.large.shrink_to_fit();
    }

    /// Memory of the column in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.stored.capacity() * size_of::<u32>() + self.large.capacity() * size_of::<(u32, u64)>()
    }
}

impl FromIterator<u64> for SizeColumn {
    fn from_iter<I: IntoIterator<Item = u64>>(sizes: I) -> Self {
        let mut column = Self::default();
        sizes.into_iter().for_each(|size_bytes| column.push(size_bytes));
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_any_number_of_bits_are_read_back_and_counted_as_memory() {
        let sizes = [0, 7, u64::from(LARGE) - 1, u64::from(LARGE), 1 << 40, 3];
        let mut column: SizeColumn = sizes.into_iter().collect();
        assert_eq!(sizes, std::array::from_fn(|allocation| column.get(allocation)));
        assert_eq!(column.sum(), sizes.iter().map(|&size| u128::from(size)).sum::<u128>());
        column.shrink_to_fit();
        assert_eq!(column.memory_bytes(), 6 * 4 + 2 * 16);
    }
}
