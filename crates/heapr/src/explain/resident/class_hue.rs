//! The colour of a class of resident memory, the same in every picture.

use heapr_resident::Class;

/// A hue in degrees, by the class's key: neighbours in the list of classes differ.
pub(super) fn class_hue(key: &str) -> usize {
    let place = Class::ALL.iter().position(|class| class.key() == key).unwrap_or(Class::ALL.len());
    place * 137 % 360
}
