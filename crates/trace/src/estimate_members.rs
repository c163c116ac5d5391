//! Estimates as members of a JSON object: `x` and, unless it was counted, `x_plus_minus`.

use heapr_table::interval_key;
use serde::Serializer;

/// Writes estimates as a map, or into the object that contains them: all values under their keys,
/// then halves of the 95 % intervals. A member is a key, a value and the half, which is 0 and not
/// written if the value was counted.
///
/// # Errors
/// Returns the errors of the serializer.
pub fn serialize_members<S: Serializer>(
    members: &[(&'static str, u64, u64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let values = members.iter().map(|&(key, value, _)| (key.to_owned(), value));
    let estimates = members.iter().filter(|(.., half)| *half > 0);
    serializer.collect_map(values.chain(estimates.map(|&(key, _, half)| (interval_key(key), half))))
}

/// Declares amounts of blocks for answers in JSON, where they are flattened. A member has the name
/// of its key; in place of a type it has the part of the amount, `bytes` or `count`.
///
/// ```
/// heapr_trace::block_members! {
///     /// Blocks that live.
///     pub struct LiveBlocks { live_bytes: bytes, live_count: count }
/// }
/// let live = heapr_trace::BlockEstimate {
///     bytes: heapr_trace::Estimate::new(3 << 20, 0),
///     count: heapr_trace::Estimate::new(100, 25),
/// };
/// let json = serde_json::to_string(&LiveBlocks::from(live)).unwrap();
/// assert_eq!(json, r#"{"live_bytes":3145728,"live_count":100,"live_count_plus_minus":10}"#);
/// ```
#[macro_export]
macro_rules! block_members {
    (@half $blocks:ident bytes) => { $blocks.bytes_plus_minus() };
    (@half $blocks:ident count) => { $blocks.count_plus_minus() };
    ($($(#[$meta:meta])* $vis:vis struct $name:ident { $($key:ident: $part:ident),+ $(,)? })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy)]
        $vis struct $name($crate::BlockEstimate);

        impl From<$crate::BlockEstimate> for $name {
            fn from(blocks: $crate::BlockEstimate) -> Self {
                Self(blocks)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let blocks = self.0;
                let members = [$((
                    stringify!($key),
                    blocks.$part.value,
                    $crate::block_members!(@half blocks $part),
                )),+];
                $crate::serialize_members(&members, serializer)
            }
        }
    )+};
}
