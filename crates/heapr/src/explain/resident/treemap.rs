//! Rectangles whose areas are amounts.

/// A rectangle of a treemap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Divides `area` in proportion to `amounts`, the largest of which stand first; rows are cut off
/// along the shorter side, each as long as that makes its rectangles squarer.
pub(super) fn divide(area: Area, amounts: &[u64]) -> Vec<Area> {
    let total: f64 = amounts.iter().map(|amount| *amount as f64).sum();
    let mut found = Vec::with_capacity(amounts.len());
    if total <= 0.0 {
        return vec![Area { width: 0.0, height: 0.0, ..area }; amounts.len()];
    }
    let scale = area.width * area.height / total;
    let mut left = area;
    let mut rest = amounts;
    while !rest.is_empty() {
        let side = left.width.min(left.height).max(f64::MIN_POSITIVE);
        let mut count = 1;
        while count < rest.len()
            && worst(&rest[..count + 1], side, scale) <= worst(&rest[..count], side, scale)
        {
            count += 1;
        }
        let (row, others) = rest.split_at(count);
        let row_total: f64 = row.iter().map(|amount| *amount as f64 * scale).sum();
        let depth = row_total / side;
        let mut along = 0.0;
        for amount in row {
            let length = if row_total > 0.0 { *amount as f64 * scale / row_total * side } else { 0.0 };
            found.push(if left.width >= left.height {
                Area { left: left.left, top: left.top + along, width: depth, height: length }
            } else {
                Area { left: left.left + along, top: left.top, width: length, height: depth }
            });
            along += length;
        }
        if left.width >= left.height {
            left.left += depth;
            left.width = (left.width - depth).max(0.0);
        } else {
            left.top += depth;
            left.height = (left.height - depth).max(0.0);
        }
        rest = others;
    }
    found
}

/// The worst ratio of sides in a row.
fn worst(row: &[u64], side: f64, scale: f64) -> f64 {
    let total: f64 = row.iter().map(|amount| *amount as f64 * scale).sum();
    let depth = total / side;
    let ratio = |amount: &u64| {
        let length = *amount as f64 * scale / depth.max(f64::MIN_POSITIVE);
        (length / depth.max(f64::MIN_POSITIVE)).max(depth / length.max(f64::MIN_POSITIVE))
    };
    row.iter().map(ratio).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_in_proportion_and_fill_the_whole() {
        let whole = Area { left: 0.0, top: 0.0, width: 600.0, height: 400.0 };
        let amounts = [60, 40, 30, 20, 10, 5, 1, 0];
        let found = divide(whole, &amounts);
        let total: u64 = amounts.iter().sum();
        for (area, amount) in found.iter().zip(amounts) {
            let expected = 240_000.0 * amount as f64 / total as f64;
            assert!((area.width * area.height - expected).abs() < 0.5, "{area:?} of {amount}");
            assert!(area.left >= 0.0 && area.left + area.width <= 600.5 && area.top + area.height <= 400.5);
        }
        assert_eq!(divide(whole, &[0, 0]).len(), 2);
        assert!(divide(whole, &[]).is_empty());
    }
}
