//! Type of a block by the names of the functions that allocated it. Templates and generic functions
//! of the standard libraries carry the type in their names, also when they are inlined.
//!
//! ```text
//!  operator new
//!  std::__new_allocator<Foo>::allocate          elements of type Foo ...
//!  std::vector<Foo, std::allocator<Foo> >::_M_realloc_insert<Foo>     ... of a vector
//!  fill                                         user code: functions further out say nothing
//! ```

/// Beginning of a function's name, and the description of what such a function allocates.
struct Row {
    /// Beginning of the name, up to the type's arguments.
    start: &'static str,
    /// Description; each `{}` stands for the next argument of the type.
    says: &'static str,
}

const fn row(start: &'static str, says: &'static str) -> Row {
    Row { start, says }
}

/// Types that containers allocate through an allocator of this type; each describes the block
/// alone.
const NODES: [Row; 10] = [
    row("std::_Sp_counted_ptr_inplace<", "make_shared<{}>"),
    row("std::_Sp_counted_ptr<", "control block of shared_ptr<{}>"),
    row("std::_Sp_counted_deleter<", "control block of shared_ptr<{}>"),
    row("std::_List_node<", "node of list<{}>"),
    row("std::_Fwd_list_node<", "node of forward_list<{}>"),
    row("std::_Rb_tree_node<", "node of map or set<{}>"),
    row("std::__detail::_Hash_node<", "node of unordered_map or set<{}>"),
    row("std::__1::__list_node<", "node of list<{}>"),
    row("std::__1::__tree_node<", "node of map or set<{}>"),
    row("std::__1::__hash_node<", "node of unordered_map or set<{}>"),
];

/// Allocators: their argument is the element's type.
const ALLOCATORS: [Row; 5] = [
    row("std::__new_allocator<", "{}[]"),
    row("__gnu_cxx::new_allocator<", "{}[]"),
    row("std::allocator<", "{}[]"),
    row("std::allocator_traits<std::allocator<", "{}[]"),
    row("std::__1::allocator<", "{}[]"),
];

/// Containers and functions such as `make_shared`.
const CONTAINERS: [Row; 24] = [
    row("std::__cxx11::basic_string<", "text of string"),
    row("std::basic_string<", "text of string"),
    row("std::__1::basic_string<", "text of string"),
    row("std::_Vector_base<", "elements of vector<{}>"),
    row("std::vector<", "elements of vector<{}>"),
    row("std::__1::vector<", "elements of vector<{}>"),
    row("std::_Deque_base<", "part of deque<{}>"),
    row("std::deque<", "part of deque<{}>"),
    row("std::_Hashtable<", "buckets of unordered_map or set<{}>"),
    row("std::make_unique<", "make_unique<{}>"),
    row("std::__1::make_unique<", "make_unique<{}>"),
    row("std::make_shared<", "make_shared<{}>"),
    row("std::__1::make_shared<", "make_shared<{}>"),
    row("<alloc::boxed::Box<", "Box<{}>"),
    row("<alloc::sync::Arc<", "Arc<{}>"),
    row("<alloc::rc::Rc<", "Rc<{}>"),
    row("<alloc::vec::Vec<", "elements of Vec<{}>"),
    row("<alloc::raw_vec::RawVec<", "elements of Vec<{}>"),
    row("<alloc::collections::vec_deque::VecDeque<", "elements of VecDeque<{}>"),
    row("<alloc::collections::btree::map::BTreeMap<", "node of BTreeMap<{}, {}>"),
    row("<alloc::string::String", "text of String"),
    row("<hashbrown::raw::RawTable<", "table of HashMap<{}>"),
    row("<hashbrown::map::HashMap<", "table of HashMap<{}, {}>"),
    row("<std::collections::hash::map::HashMap<", "table of HashMap<{}, {}>"),
];

/// Beginnings of functions that may stand before the one that names the type; the search goes on
/// outwards.
const ON_THE_WAY: [&str; 16] = [
    "std::",
    "__gnu_cxx::",
    "operator new",
    "malloc",
    "calloc",
    "realloc",
    "aligned_alloc",
    "posix_memalign",
    "alloc::",
    "<alloc::",
    "__rust",
    "__rdl_",
    "__rustc",
    "<std::",
    "hashbrown::",
    "<hashbrown::",
];

/// Describes a block by the functions that allocated it, innermost first.
pub fn made_type<'n>(functions: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let mut of_allocator = None;
    for function in functions {
        if let Some(said) = told(function, &CONTAINERS) {
            return Some(said);
        }
        if let Some(element) = argument_of(function, &ALLOCATORS) {
            if let Some(said) = told(element, &NODES) {
                return Some(said);
            }
            if of_allocator.is_none() && element != "char" {
                of_allocator = Some(format!("{element}[]"));
            }
        } else if !ON_THE_WAY.iter().any(|start| place_of(function, start).is_some()) {
            break;
        }
    }
    of_allocator
}

/// Description by the first row that fits.
fn told(name: &str, rows: &[Row]) -> Option<String> {
    rows.iter().find_map(|row| {
        let rest = &name[place_of(name, row.start)?..];
        if !row.says.contains("{}") {
            return Some(row.says.to_owned());
        }
        let mut arguments = arguments(rest);
        let mut said = row.says.to_owned();
        while let Some(at) = said.find("{}") {
            said.replace_range(at..at + 2, arguments.next()?);
        }
        Some(said)
    })
}

fn argument_of<'n>(name: &'n str, rows: &[Row]) -> Option<&'n str> {
    rows.iter().find_map(|row| arguments(&name[place_of(name, row.start)?..]).next())
}

/// Offset behind `start` in a name, if the name begins with it or continues with it behind the
/// return type.
fn place_of(name: &str, start: &str) -> Option<usize> {
    if name.starts_with(start) {
        return Some(start.len());
    }
    // A template's name is preceded by its return type: the only space outside of all brackets.
    let mut depth = 0_i32;
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth -= 1,
            b' ' if depth == 0 => {
                return name.get(at + 1..)?.starts_with(start).then(|| at + 1 + start.len());
            }
            _ => {}
        }
    }
    None
}

/// Arguments of a list whose opening bracket precedes `list`.
fn arguments(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let mut ends = Vec::new();
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            // The bracket of an arrow closes nothing.
            b'>' if at > 0 && list.as_bytes()[at - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' if depth == 0 => {
                ends.push(at);
                break;
            }
            b'>' | b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => ends.push(at),
            _ => {}
        }
    }
    let mut start = 0;
    ends.into_iter().map(move |end| {
        let argument = list[start..end].trim();
        start = end + 1;
        argument
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_of(functions: &[&str]) -> Option<String> {
        made_type(functions.iter().copied())
    }

    #[test]
    fn containers_of_cpp_are_told_by_their_templates() {
        let vector = [
            "operator new(unsigned long)",
            "std::__new_allocator<Foo<int, char> >::allocate(unsigned long, void const*)",
            "std::allocator_traits<std::allocator<Foo<int, char> > >::allocate(std::allocator<Foo<int, char> >&, unsigned long)",
            "std::_Vector_base<Foo<int, char>, std::allocator<Foo<int, char> > >::_M_allocate(unsigned long)",
            "fill()",
        ];
        assert_eq!(told_of(&vector).as_deref(), Some("elements of vector<Foo<int, char>>"));
        let emplaced = [
            "malloc",
            "operator new(unsigned long)",
            "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int)",
        ];
        assert_eq!(told_of(&emplaced).as_deref(), Some("elements of vector<int>"));
        let map = [
            "operator new(unsigned long)",
            "std::__new_allocator<std::_Rb_tree_node<std::pair<int const, Bar> > >::allocate(unsigned long, void const*)",
        ];
        assert_eq!(told_of(&map).as_deref(), Some("node of map or set<std::pair<int const, Bar>>"));
        let shared = [
            "std::__new_allocator<std::_Sp_counted_ptr_inplace<Bar, std::allocator<void>, (__gnu_cxx::_Lock_policy)2> >::allocate(unsigned long, void const*)",
        ];
        assert_eq!(told_of(&shared).as_deref(), Some("make_shared<Bar>"));
        let string = [
            "operator new(unsigned long)",
            "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_create(unsigned long&, unsigned long)",
        ];
        assert_eq!(told_of(&string).as_deref(), Some("text of string"));
    }

    #[test]
    fn generic_types_of_rust_are_told_by_their_functions() {
        let boxed = ["malloc", "alloc::alloc::alloc", "<alloc::boxed::Box<app::Session>>::new", "app::main"];
        assert_eq!(told_of(&boxed).as_deref(), Some("Box<app::Session>"));
        let table =
            ["alloc::alloc::alloc", "<hashbrown::raw::RawTable<(u32, fn(&str) -> bool)>>::reserve_rehash"];
        assert_eq!(told_of(&table).as_deref(), Some("table of HashMap<(u32, fn(&str) -> bool)>"));
    }

    #[test]
    fn what_the_program_calls_itself_tells_nothing() {
        assert_eq!(
            told_of(&["malloc", "make_node", "std::vector<int, std::allocator<int> >::push_back(int&&)"]),
            None
        );
        assert_eq!(told_of(&["operator new(unsigned long)", "main"]), None);
        assert_eq!(told_of(&[]), None);
        for broken in ["std::vector<", "std::vector<a<", "<alloc::boxed::Box<", "std::map>>>", "a <<<"] {
            assert_eq!(told_of(&[broken]), None, "{broken}");
        }
    }
}
