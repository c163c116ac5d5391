//! Names of types as programmers write them.

/// Largest number of generic arguments inside of each other.
const DEPTH_MAX: usize = 64;

/// Converts a name: ``System.Collections.Generic.List`1[Shop.Line][]`` becomes
/// `System.Collections.Generic.List<Shop.Line>[]`.
pub(super) fn readable(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    let mut closing = Vec::new();
    let mut rest = name.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            // The number of generic arguments.
            '`' => while rest.next_if(char::is_ascii_digit).is_some() {},
            // Dimensions of an array: `[]`, `[,]`, `[*]`.
            '[' if rest.peek().is_some_and(|next| matches!(next, ']' | ',' | '*'))
                || closing.len() >= DEPTH_MAX =>
            {
                shown.push('[');
                closing.push(']');
            }
            '[' => {
                shown.push('<');
                closing.push('>');
            }
            ']' => shown.push(closing.pop().unwrap_or(']')),
            ',' if closing.last() == Some(&'>') => {
                shown.push_str(", ");
                while rest.next_if_eq(&' ').is_some() {}
            }
            other => shown.push(other),
        }
    }
    shown
}

/// Name without generic arguments and dimensions.
pub(super) fn simple(name: &str) -> &str {
    name.split(['<', '[', '`']).next().unwrap_or(name)
}

/// Whether a name is of a library that comes with .NET.
pub(super) fn is_of_dotnet(name: &str) -> bool {
    ["System.", "Microsoft.", "Internal.", "Interop"].iter().any(|start| name.starts_with(start))
}

/// Ends of the names of collections.
const COLLECTIONS: [&str; 14] = [
    "Dictionary",
    "List",
    "Set",
    "Queue",
    "Stack",
    "Bag",
    "Collection",
    "Table",
    "Hashtable",
    "Cache",
    "Builder",
    "Array",
    "Deque",
    "Map",
];
/// Names of the parts of collections: classes inside of others, whose outer name is not told.
const PARTS: [&str; 13] = [
    "Node",
    "Entry",
    "Tables",
    "Bucket",
    "bucket",
    "VolatileNode",
    "LinkedListNode",
    "ConcurrentQueueSegment",
    "Segment",
    "WorkStealingQueue",
    "Slot",
    "Container",
    "CacheEntry",
];

/// Whether objects of a class hold contents by position or key.
pub(super) fn is_collection(name: &str) -> bool {
    let name = simple(name);
    name.starts_with("System.Collections.") && COLLECTIONS.iter().any(|end| name.ends_with(end))
}

/// Whether objects of a class of .NET's own libraries are a part of a collection.
pub(super) fn is_part(name: &str) -> bool {
    let last = simple(name).rsplit(['.', '+']).next().unwrap_or(name);
    PARTS.contains(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (name, expected) in [
            ("System.Collections.Generic.List`1[Shop.Line]", "System.Collections.Generic.List<Shop.Line>"),
            ("Entry[System.String,Shop.Session][]", "Entry<System.String, Shop.Session>[]"),
            ("A.B`2[C`1[D],E[,]][][]", "A.B<C<D>, E[,]>[][]"),
            ("System.String[,]", "System.String[,]"),
            ("<>c", "<>c"),
            ("a]", "a]"),
            ("", ""),
        ] {
            assert_eq!(readable(name), expected);
        }
        assert!(readable(&"[".repeat(500)).len() <= 500);
    }

    #[test]
    fn collections_are_known_by_their_names() {
        assert!(is_collection("System.Collections.Generic.Dictionary<System.String, Shop.Session>"));
        assert!(is_collection("System.Collections.Concurrent.ConcurrentQueue<System.Byte[]>"));
        assert!(!is_collection("Shop.List") && !is_collection("System.Collections.Generic.Comparer<A>"));
        assert!(
            is_part("Entry<System.String, Shop.Session>")
                && is_part("System.Collections.Generic.LinkedListNode<A>")
        );
        assert!(!is_part("Shop.Line"));
    }
}
