//! Layouts of Ruby's objects by version: offsets in bytes, 64-bit release builds.

/// Places of the parts of objects.
#[derive(Debug)]
pub(super) struct Layout {
    /// Version: `0x0301`.
    pub(super) version: u32,
    /// Size of a page of slots, and of its address's alignment.
    pub(super) page_bytes: u64,
    /// Bits of marked slots in the record of a page.
    pub(super) page_marks: u64,
    /// The object that stands for no value.
    pub(super) undefined: u64,
    /// Whether instance variables are named by shapes; else by the class's table.
    pub(super) has_shapes: bool,
    /// Bytes of a string inside of its object, and whether its size is among the flags.
    pub(super) string_inside: u64,
    pub(super) has_string_size_in_flags: bool,
    /// Mask of an array's number of items inside of its object.
    pub(super) array_inside_mask: u64,
    /// Flag of an array whose contents others share: where its room was, their number is.
    pub(super) array_root_flag: u64,
    /// Mask of a struct's number of members inside of its object.
    pub(super) struct_inside_mask: u64,
    /// Instance variables outside of the object.
    pub(super) object_variables: u64,
    /// Default of a hash, and its table: an address, or the table itself.
    pub(super) hash_default: u64,
    pub(super) hash_table: u64,
    pub(super) has_table_inside: bool,
    /// Rest of a class: an address at 24, or right behind the head of 32 bytes.
    pub(super) has_class_rest_inside: bool,
    /// In the rest: constants, and methods that were called.
    pub(super) constants: u64,
    pub(super) called_methods: u64,
    /// Methods: in the rest or, if that is inside, in the class itself.
    pub(super) methods: u64,
    /// In the rest: variables of the class (a table, or an array by shape), path, attached object.
    pub(super) class_variables: u64,
    pub(super) class_path: Option<u64>,
    pub(super) attached: Option<u64>,
    /// Code: size of its body, and in it the names of local variables and their number.
    pub(super) code_bytes: u64,
    pub(super) local_names: u64,
    pub(super) local_count: u64,
    /// Whether the first line of code is an object.
    pub(super) is_line_an_object: bool,
    /// Execution context in a thread.
    pub(super) thread_context: u64,
    /// Size of a control frame, and of the virtual machine's structure.
    pub(super) frame_bytes: u64,
    pub(super) machine_bytes: u64,
}

const V3_1: Layout = Layout {
    version: 0x0301,
    page_bytes: 16 << 10,
    page_marks: 120,
    undefined: 0x34,
    has_shapes: false,
    string_inside: 16,
    has_string_size_in_flags: true,
    array_inside_mask: 0x1_8000,
    array_root_flag: 1 << 17,
    struct_inside_mask: 0x6000,
    object_variables: 24,
    hash_default: 24,
    hash_table: 16,
    has_table_inside: false,
    has_class_rest_inside: false,
    constants: 24,
    called_methods: 32,
    methods: 16,
    class_variables: 8,
    class_path: None,
    attached: None,
    code_bytes: 312,
    local_names: 152,
    local_count: 240,
    is_line_an_object: true,
    thread_context: 40,
    frame_bytes: 64,
    machine_bytes: 9440,
};

const V3_3: Layout = Layout {
    version: 0x0303,
    page_bytes: 64 << 10,
    page_marks: 272,
    undefined: 0x24,
    has_shapes: true,
    string_inside: 24,
    has_string_size_in_flags: false,
    array_inside_mask: 0x3f_8000,
    array_root_flag: 1 << 24,
    struct_inside_mask: 0xf_e000,
    object_variables: 16,
    hash_default: 16,
    hash_table: 24,
    has_table_inside: true,
    has_class_rest_inside: true,
    constants: 8,
    called_methods: 16,
    methods: 24,
    class_variables: 0,
    class_path: Some(120),
    attached: Some(96),
    code_bytes: 304,
    local_names: 144,
    local_count: 232,
    is_line_an_object: false,
    thread_context: 48,
    frame_bytes: 56,
    machine_bytes: 9600,
};

/// All versions that are known.
const LAYOUTS: [&Layout; 2] = [&V3_1, &V3_3];

/// Layout of a version.
pub(super) fn of_version(version: u32) -> Option<&'static Layout> {
    LAYOUTS.into_iter().find(|layout| layout.version == version)
}
