//! Reader of a mangled D name, from its beginning on.

/// Largest nesting depth of a name: types in types, templates in templates.
const DEPTH_MAX: u32 = 64;
/// Largest number of elements read for one name, over all its back references. Long texts count as
/// several.
const STEPS_MAX: u32 = 64 << 10;

/// Reader of a D name. Depth and length of the result are limited, because a name may refer to
/// itself.
pub(super) struct Reader<'n> {
    pub(super) text: &'n str,
    pub(super) at: usize,
    depth: u32,
    steps_left: u32,
}

impl<'n> Reader<'n> {
    /// Starts reading `text` at offset `at`.
    pub(super) fn new(text: &'n str, at: usize) -> Self {
        Self { text, at, depth: 0, steps_left: STEPS_MAX }
    }

    /// Counts some steps; `None` when none are left.
    pub(super) fn spend(&mut self, steps: u32) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(steps)?;
        Some(())
    }

    pub(super) fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    pub(super) fn rest(&self) -> &'n str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn take(&mut self, wanted: u8) -> bool {
        let is_it = self.peek() == wanted;
        self.at += usize::from(is_it);
        is_it
    }

    pub(super) fn take_text(&mut self, wanted: &str) -> bool {
        let is_it = self.rest().starts_with(wanted);
        self.at += if is_it { wanted.len() } else { 0 };
        is_it
    }

    pub(super) fn number(&mut self) -> Option<usize> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let number = self.text.get(self.at..self.at + digits)?.parse().ok()?;
        self.at += digits;
        Some(number)
    }

    /// Reads something one level deeper, if levels and steps are left.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.spend(1)?;
        if self.depth >= DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// Decodes the back reference whose `Q` is at `at`: target and end offset. The distance is in
    /// digits of base 26, the last one in lower case.
    pub(super) fn back_reference(&self, at: usize) -> Option<(usize, usize)> {
        let mut distance = 0_usize;
        for (number, byte) in self.text.as_bytes().get(at + 1..)?.iter().enumerate() {
            let digit = byte.to_ascii_lowercase().checked_sub(b'a').filter(|&digit| digit < 26)?;
            distance = distance.checked_mul(26)?.checked_add(usize::from(digit))?;
            if byte.is_ascii_lowercase() {
                let target = at.checked_sub(distance).filter(|&target| target < at)?;
                return Some((target, at + 2 + number));
            }
        }
        None
    }

    /// Reads the target of a back reference.
    pub(super) fn referred<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let (target, end) = self.back_reference(self.at)?;
        let found = self.deeper(|reader| {
            reader.at = target;
            read(reader)
        });
        self.at = end;
        found
    }
}
