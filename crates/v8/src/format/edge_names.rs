//! Names of edges in three bytes each.

use std::sync::Mutex;

/// Mark of a name in the list of wide ones: that name and all above it are there.
const WIDE: u32 = 0xff_ffff;

/// Number of a string, or index of an element, of each edge.
///
/// ```text
///  low    u16   lower bits
///  high   u8    upper bits; all bits set: see wide
///  wide   edge and number, by edge
/// ```
#[derive(Debug, Default)]
pub(crate) struct EdgeNames {
    low: Vec<u16>,
    high: Vec<u8>,
    wide: Vec<(u32, u32)>,
}

impl EdgeNames {
    /// Returns `count` names that are 0.
    pub(crate) fn zeros(count: usize) -> Self {
        Self { low: vec![0; count], high: vec![0; count], wide: Vec::new() }
    }

    /// Packs the names.
    pub(crate) fn of(names: &[u32]) -> Self {
        let mut packed = Self::zeros(names.len());
        let wide = WideNames::default();
        packed.rows(&wide).store(names.iter().copied(), 0);
        packed.take_wide(wide);
        packed
    }

    /// Name of an edge.
    #[inline]
    pub(crate) fn get(&self, edge: u32) -> u32 {
        let name = u32::from(self.low[edge as usize]) | u32::from(self.high[edge as usize]) << 16;
        if name == WIDE { self.wide_name(edge) } else { name }
    }

    #[cold]
    fn wide_name(&self, edge: u32) -> u32 {
        let place = self.wide.binary_search_by_key(&edge, |&(at, _)| at);
        place.map_or(WIDE, |place| self.wide[place].1)
    }

    /// Names of all edges.
    pub(crate) fn all(&self) -> impl Iterator<Item = u32> + '_ {
        let narrow =
            self.low.iter().zip(&self.high).map(|(&low, &high)| u32::from(low) | u32::from(high) << 16);
        (0..).zip(narrow).map(move |(edge, name)| if name == WIDE { self.wide_name(edge) } else { name })
    }

    /// Replaces the names for which `new` has another one.
    pub(crate) fn replace(&mut self, new: impl Fn(u32, u32) -> Option<u32>) {
        for edge in 0..self.low.len() as u32 {
            let Some(name) = new(edge, self.get(edge)) else { continue };
            let place = self.wide.binary_search_by_key(&edge, |&(at, _)| at);
            match (place, name >= WIDE) {
                (Ok(place), true) => self.wide[place].1 = name,
                (Err(place), true) => self.wide.insert(place, (edge, name)),
                // The list keeps an entry that nothing leads to.
                (_, false) => {}
            }
            let narrow = name.min(WIDE);
            self.low[edge as usize] = narrow as u16;
            self.high[edge as usize] = (narrow >> 16) as u8;
        }
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.low.truncate(count);
        self.low.shrink_to_fit();
        self.high.truncate(count);
        self.high.shrink_to_fit();
    }

    /// Returns the columns to be filled.
    pub(crate) fn rows<'a>(&'a mut self, wide: &'a WideNames) -> NameRows<'a> {
        NameRows { low: &mut self.low, high: &mut self.high, wide }
    }

    /// Takes over the large numbers that were found while the columns were filled.
    pub(crate) fn take_wide(&mut self, wide: WideNames) {
        self.wide = wide.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.wide.sort_unstable();
    }
}

/// Large numbers that the threads found.
#[derive(Debug, Default)]
pub(crate) struct WideNames(Mutex<Vec<(u32, u32)>>);

/// Some rows of the columns.
pub(crate) struct NameRows<'a> {
    low: &'a mut [u16],
    high: &'a mut [u8],
    wide: &'a WideNames,
}

impl NameRows<'_> {
    /// Splits off the first `count` rows.
    pub(crate) fn split_at(self, count: usize) -> (Self, Self) {
        let (low, more_low) = self.low.split_at_mut(count);
        let (high, more_high) = self.high.split_at_mut(count);
        let wide = self.wide;
        (Self { low, high, wide }, Self { low: more_low, high: more_high, wide })
    }

    /// Stores names of three bytes. Returns whether all are such names.
    #[inline(always)]
    pub(crate) fn store_narrow(&mut self, names: impl Iterator<Item = u32>) -> bool {
        let mut greatest = 0;
        for ((low, high), name) in self.low.iter_mut().zip(&mut *self.high).zip(names) {
            greatest = greatest.max(name);
            *low = name as u16;
            *high = (name >> 16) as u8;
        }
        greatest < WIDE
    }

    /// Stores the names of the edges from `first` on.
    pub(crate) fn store(mut self, names: impl Iterator<Item = u32> + Clone, first: usize) {
        if self.store_narrow(names.clone()) {
            return;
        }
        let mut all = self.wide.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for ((row, (low, high)), name) in self.low.iter_mut().zip(&mut *self.high).enumerate().zip(names) {
            if name >= WIDE {
                (*low, *high) = (u16::MAX, u8::MAX);
                all.push(((first + row) as u32, name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_come_back_and_can_be_replaced() {
        let names = [0, 7, 65535, 65536, WIDE - 1, WIDE, WIDE + 1, u32::MAX, 5];
        let mut packed = EdgeNames::of(&names);
        assert_eq!(packed.all().collect::<Vec<_>>(), names);
        let new = [u32::MAX, 7, WIDE, 1, 2, 3, u32::MAX - 1, 4, 5];
        packed.replace(|edge, old| (old != new[edge as usize]).then_some(new[edge as usize]));
        assert_eq!(packed.all().collect::<Vec<_>>(), new);
        packed.truncate(3);
        assert_eq!((packed.all().count(), packed.get(2)), (3, WIDE));
    }
}
