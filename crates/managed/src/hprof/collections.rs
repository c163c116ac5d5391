//! Collections of Java's libraries, and the classes that they are made of.
//!
//! A collection owns what it holds. Its table, its nodes and its links are storage: they are never
//! named, and nothing is added up at them.

/// Packages whose collections are known by the names of their nodes.
const PACKAGES: [&str; 8] = [
    "java.util.",
    "com.google.common.",
    "com.github.benmanes.caffeine.",
    "io.netty.util.",
    "it.unimi.dsi.fastutil.",
    "org.eclipse.collections.",
    "gnu.trove.",
    "android.util.",
];

/// Packages whose collections keep the contents of their subclasses, too.
const PACKAGES_OF_PARENTS: [&str; 2] = ["java.util.", "android.util."];

/// Ends of the names of collections' links.
const LINKS: [&str; 9] =
    ["$Node", "$TreeNode", "$Entry", "$TreeBin", "$Index", "$Segment", "$StrongEntry", "$Bucket", "Entry"];

/// Ends of the names of collections.
const COLLECTIONS: [&str; 12] = [
    "Map",
    "Set",
    "List",
    "Deque",
    "Queue",
    "Vector",
    "Stack",
    "Hashtable",
    "Cache",
    "Table",
    "Bag",
    "Array",
];

/// Fields of collections that lead to another collection, which holds the contents.
const INNER: [(&str, &str); 10] = [
    ("java.util.HashSet", "map"),
    ("java.util.TreeSet", "m"),
    ("java.util.concurrent.ConcurrentHashMap$KeySetView", "map"),
    ("java.util.concurrent.ConcurrentSkipListSet", "m"),
    ("java.util.concurrent.CopyOnWriteArraySet", "al"),
    ("java.util.Collections$SetFromMap", "m"),
    ("java.util.Collections$Synchronized", "m"),
    ("java.util.Collections$Synchronized", "c"),
    ("java.util.Collections$Unmodifiable", "m"),
    ("java.util.PriorityBlockingQueue", "q"),
];

/// Whether objects of a class are part of a collection.
pub(super) fn is_storage(class: &str) -> bool {
    if class.starts_with("java.lang.ThreadLocal$ThreadLocalMap") {
        return true;
    }
    is_of_known_package(class) && class.contains('$') && LINKS.iter().any(|end| class.ends_with(end))
}

/// Whether objects of a class hold their contents by key or position.
pub(super) fn is_collection(class: &str) -> bool {
    let outer = class.split('$').next().unwrap_or_default();
    let inner = inner_name(class);
    is_of_known_package(class)
        && !is_storage(class)
        && !is_view(class)
        && (COLLECTIONS.iter().any(|end| inner.ends_with(end))
            || outer == "java.util.Collections" && !inner.ends_with("Comparator"))
}

/// Whether subclasses of a class are collections, too. Abstract ones have no contents.
pub(super) fn has_contents_of_subclasses(class: &str) -> bool {
    PACKAGES_OF_PARENTS.iter().any(|package| class.starts_with(package))
        && is_collection(class)
        && !inner_name(class).starts_with("Abstract")
}

/// Whether objects of a class show the contents of another collection.
pub(super) fn is_view(class: &str) -> bool {
    is_of_known_package(class) && ["Values", "EntrySet", "KeySet"].contains(&inner_name(class))
}

/// Name of a class without its package and its outer classes.
fn inner_name(class: &str) -> &str {
    class.rsplit(['$', '.']).next().unwrap_or_default()
}

/// Whether a field of a collection leads to the collection that holds its contents.
pub(super) fn leads_to_inner(class: &str, field: &str) -> bool {
    INNER.iter().any(|&(known, name)| {
        name == field && (class == known || known.ends_with(['d', 'e']) && is_of_family(class, known))
    })
}

/// Whether a class is one of those that begin alike: `Collections$SynchronizedMap`.
fn is_of_family(class: &str, family: &str) -> bool {
    matches!(family, "java.util.Collections$Synchronized" | "java.util.Collections$Unmodifiable")
        && class.starts_with(family)
}

fn is_of_known_package(class: &str) -> bool {
    PACKAGES.iter().any(|package| class.starts_with(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_and_their_parts_are_told_apart() {
        for collection in [
            "java.util.HashMap",
            "java.util.ArrayList",
            "java.util.ArrayDeque",
            "java.util.concurrent.ConcurrentHashMap",
            "java.util.concurrent.LinkedBlockingQueue",
            "java.util.Collections$SynchronizedMap",
            "java.util.Arrays$ArrayList",
            "com.google.common.cache.LocalCache$LocalManualCache",
        ] {
            assert!(is_collection(collection) && !is_storage(collection), "{collection}");
        }
        for storage in [
            "java.util.HashMap$Node",
            "java.util.LinkedHashMap$Entry",
            "java.util.TreeMap$Entry",
            "java.util.concurrent.ConcurrentHashMap$TreeBin",
            "java.lang.ThreadLocal$ThreadLocalMap$Entry",
            "com.google.common.cache.LocalCache$StrongEntry",
        ] {
            assert!(is_storage(storage) && !is_collection(storage), "{storage}");
        }
        for other in
            ["java.util.HashMap$Values", "java.util.Random", "com.shop.CartMap", "com.shop.Cart$Node"]
        {
            assert!(!is_collection(other) && !is_storage(other), "{other}");
        }
        assert!(has_contents_of_subclasses("java.util.LinkedHashMap"));
        assert!(!has_contents_of_subclasses("java.util.AbstractSet"));
        assert!(!has_contents_of_subclasses("io.netty.util.DefaultAttributeMap"));
        assert!(leads_to_inner("java.util.HashSet", "map"));
        assert!(leads_to_inner("java.util.Collections$SynchronizedMap", "m"));
        assert!(!leads_to_inner("java.util.HashMap", "table"));
    }
}
