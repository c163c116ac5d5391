//! Languages whose heaps are analysed: the questions that the analyses ask of each.
//!
//! No analysis and no command knows a language. A language is a row: [`JAVASCRIPT`], [`PYTHON`],
//! [`JAVA`], [`RUBY`], [`DOTNET`].

mod dotnet;
mod java;
mod javascript;
mod python;
mod ruby;

use std::fmt::Debug;

use crate::{EdgeKind, NodeKind};

pub(crate) use dotnet::DOTNET;
pub(crate) use java::JAVA;
pub(crate) use javascript::JAVASCRIPT;
pub(crate) use python::PYTHON;
pub(crate) use ruby::RUBY;

/// Name of the root of objects without any reference from outside of them.
const GARBAGE: &str = "(garbage, not yet collected)";
/// Reason why garbage is no leak.
const IS_GARBAGE: &str = "is garbage that nothing refers to, until the collector runs";
/// All languages.
const ROWS: [&dyn Language; 5] = [&JAVASCRIPT, &PYTHON, &JAVA, &RUBY, &DOTNET];

/// A reference on the way from a named holder down to an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) kind: EdgeKind,
    /// Name; `None` for a position.
    pub(crate) name: Option<&'a str>,
    pub(crate) holder: NodeKind,
    pub(crate) target: NodeKind,
}

/// Answers of a language to the questions of the analyses.
pub(crate) trait Language: Debug + Sync {
    /// Name in the header of a snapshot.
    fn name(&self) -> &'static str;

    /// Whether a root of this name refers to objects only for the moment, as a running function
    /// does.
    fn is_passing(&self, root: &str) -> bool;

    /// Whether a node of this name begins the names of what it holds.
    fn begins_names(&self, _node: &str) -> bool {
        false
    }

    /// Whether a reference of this name begins the names of what it leads to.
    fn reference_begins_names(&self, _reference: &str) -> bool {
        false
    }

    /// Whether a name that would have too many fields begins at the nearest object of a class of
    /// the program instead.
    fn begins_at_program_objects(&self) -> bool {
        false
    }

    /// Returns how a reference appears in a name; `None` for plumbing.
    fn field(&self, _step: Step<'_>) -> Option<String> {
        None
    }

    /// Class in the name of an object.
    fn class_in_name<'c>(&self, class: &'c str) -> &'c str {
        class
    }

    /// Class of all nodes of a kind; `None` if a node's name is its class.
    fn class_of_kind(&self, kind: NodeKind) -> Option<&'static str>;

    /// Class that the name of a holder begins with, or that a node stands for.
    fn class_of_base<'b>(&self, base: &'b str) -> &'b str {
        base
    }

    /// Whether a name of a field says nothing about why its target is alive.
    fn is_untelling(&self, _field: &str) -> bool {
        false
    }

    /// Whether a collection refers to its items itself, rather than by a store.
    fn holds_items_itself(&self) -> bool {
        false
    }

    /// Whether a reference of the runtime of this name leads to an object's attributes.
    fn leads_to_attributes(&self, _reference: &str) -> bool {
        false
    }

    /// Whether the bytes of a store count for the object that alone leads to it.
    fn counts_store_for_owner(&self) -> bool {
        false
    }

    /// Whether a heap's bytes are told by V8's kinds of objects, such as code and arrays.
    fn has_kinds_of_v8(&self) -> bool {
        false
    }

    /// Returns why objects that only a root of this name leads to are no leak.
    fn no_leak(&self, root: &str) -> Option<&'static str> {
        root.starts_with(GARBAGE).then_some(IS_GARBAGE)
    }

    /// Whether a node of this name counts as one thing with all that it alone holds. Growth is
    /// added up at such a node, and nothing below it is its holder.
    fn is_one_thing(&self, _node: &str) -> bool {
        false
    }

    /// Words for what is left out of the growth, if anything is.
    fn left_out(&self) -> Option<&'static str> {
        None
    }
}

/// Language of a name in the header of a snapshot.
pub(crate) fn language(name: Option<&str>) -> &'static dyn Language {
    ROWS.into_iter().find(|row| name == Some(row.name())).unwrap_or(&PYTHON)
}

/// Returns a field of a runtime's objects as it appears in a name; `None` for names in parentheses.
fn internal(name: &str) -> Option<String> {
    (!name.starts_with(['+', '('])).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plumbing_of_java_is_no_part_of_a_name() {
        let step = |kind, name, holder, target| JAVA.field(Step { kind, name, holder, target });
        let (object, store) = (NodeKind::OBJECT, NodeKind::ARRAY);
        assert_eq!(step(EdgeKind::PROPERTY, Some("byId"), object, object).as_deref(), Some("byId"));
        assert_eq!(step(EdgeKind::INTERNAL, Some("table"), object, store), None);
        assert_eq!(step(EdgeKind::ELEMENT, None, store, store), None);
        assert_eq!(step(EdgeKind::INTERNAL, Some("value"), store, object).as_deref(), Some("[…]"));
        assert_eq!(step(EdgeKind::PROPERTY, Some("CACHE"), object, store).as_deref(), Some("CACHE"));
        assert_eq!(step(EdgeKind::INTERNAL, Some("(class)"), object, object), None);
        assert_eq!(JAVA.class_in_name("java.util.HashMap"), "HashMap");
        assert_eq!(JAVA.class_in_name("com.shop.Cart"), "com.shop.Cart");
        assert_eq!(JAVA.class_of_base("thread-local PoolLocal.AUDIT"), "PoolLocal");
        assert_eq!(JAVA.class_of_base("frame a.Main.work (Main.java:9)"), "a.Main");
        assert_eq!(JAVA.class_of_base("class a.Main"), "a.Main");
        let loader = "class loader app (java.net.URLClassLoader)";
        assert_eq!(JAVA.class_of_base(loader), loader);
        assert!(JAVA.is_one_thing(loader) && !JAVA.is_one_thing("class a.Main"));
    }

    #[test]
    fn references_of_ruby_are_named_by_what_they_lead_to() {
        let step = |kind, name| {
            let (holder, target) = (NodeKind::OBJECT, NodeKind::OBJECT);
            RUBY.field(Step { kind, name, holder, target })
        };
        assert_eq!(step(EdgeKind::PROPERTY, Some("(Hash)")).as_deref(), Some("(Hash)"));
        assert_eq!(step(EdgeKind::ELEMENT, None).as_deref(), Some("[…]"));
        assert_eq!(step(EdgeKind::INTERNAL, Some("(superclass)")), None);
        assert_eq!(RUBY.class_of_base("module Shop"), "Shop");
        assert!(RUBY.begins_names("class Event") && !RUBY.begins_names("Event"));
    }

    #[test]
    fn classes_of_dotnets_libraries_are_named_without_their_namespaces() {
        let of = |class| DOTNET.class_in_name(class);
        assert_eq!(of("System.Collections.Generic.Dictionary<System.String, Shop.Session>"), "Dictionary");
        assert_eq!(of("System.EventHandler"), "EventHandler");
        assert_eq!(of("System.Object[]"), "Object[]");
        assert_eq!(of("System.Collections.Generic.List<Shop.Line>[]"), "List<Shop.Line>[]");
        assert_eq!(of("Shop.Cart<System.String>"), "Shop.Cart<System.String>");
        let step = |kind, holder, target| DOTNET.field(Step { kind, name: Some("(A)"), holder, target });
        let (object, store) = (NodeKind::OBJECT, NodeKind::ARRAY);
        assert_eq!(step(EdgeKind::PROPERTY, object, object).as_deref(), Some("(A)"));
        assert_eq!(step(EdgeKind::INTERNAL, object, store), None);
        assert_eq!(step(EdgeKind::ELEMENT, store, object).as_deref(), Some("[…]"));
        assert_eq!(DOTNET.class_of_base("class Shop.Registry"), "Shop.Registry");
    }

    #[test]
    fn each_language_is_found_by_its_name() {
        for row in ROWS {
            assert_eq!(language(Some(row.name())).name(), row.name());
        }
        assert_eq!(language(None).name(), "python");
    }
}
