//! The entry points while a session samples: each counts down and jumps on to the real function. A
//! call that is no sample, and a free of a block on an unmarked page, executes only these
//! instructions of heapr's. Their only store is that of the countdown.

/// Counts a word plus one down, so that blocks of size 0 are counted, too. The word is an argument
/// by its number, or the product that calloc computes. Jumps to `2` below if the countdown has run
/// out.
macro_rules! count_down {
    (1) => {
        $crate::arch::sampling_entries::count_down!("x0")
    };
    (2) => {
        $crate::arch::sampling_entries::count_down!("x1")
    };
    (3) => {
        $crate::arch::sampling_entries::count_down!("x2")
    };
    ($bytes:literal) => {
        concat!(
            "adrp x16, :gottprel:heapr_thread_slot; ldr x16, [x16, :gottprel_lo12:heapr_thread_slot];",
            "mrs x17, tpidr_el0; add x16, x16, x17; ldr x17, [x16, 8]; sub x17, x17, ",
            $bytes,
            "; sub x17, x17, 1; str x17, [x16, 8]; tbnz x17, 63, 2f"
        )
    };
}

/// Jumps to `$label` if the page of the first argument, an address, is marked. The address's lower
/// half determines the page's word, whatever the upper half is.
macro_rules! jump_if_marked {
    ($label:literal) => {
        concat!(
            $crate::arch::assembly::load_word!("x17", "{marks}"),
            "; ubfx x16, x0, 12, 20; add x17, x17, x16, lsl 2; ldrb w17, [x17]; cbnz w17, ",
            $label
        )
    };
}

/// Goes on to the real function; at `2` to the hook, with the extra words after `$words` arguments.
/// `$more` follows.
macro_rules! counting_entry {
    ($name:ident [$($count:tt)*] $words:tt [$($more:tt)*] $real:path, $field:expr, $hook:path $(, ($($operands:tt)*))?) => {
        $crate::arch::assembly::assembly_fn! {
            pub(super) $name [
                $($count)*,
                $crate::arch::assembly::jump_by_word!("{real} + {field}"),
                "2:",
                $crate::arch::assembly::place_words!($words),
                "b {hook}"
                $($more)*
            ]
            real = sym $real,
            field = const $field,
            hook = sym $hook,
            $($($operands)*)?
        }
    };
}

/// Functions that return a block, each with the number of its arguments, and which one is the size.
macro_rules! block_entries {
    ($real:path; $($name:ident $words:tt $size:tt $field:expr, $hook:path;)*) => {$(
        $crate::arch::sampling_entries::counting_entry! {
            $name [$crate::arch::sampling_entries::count_down!($size)] $words [] $real, $field, $hook
        }
    )*};
}

/// calloc, whose words are multiplied.
macro_rules! calloc_entry {
    ($real:path; $field:expr, $hook:path) => {
        $crate::arch::sampling_entries::counting_entry! {
            calloc [
                "umulh x9, x0, x1",
                "cbnz x9, 2f",
                "mul x9, x0, x1",
                $crate::arch::sampling_entries::count_down!("x9")
            ] 2 [] $real, $field, $hook
        }
    };
}

/// realloc: the old block may be a sample, and the new one.
macro_rules! realloc_entry {
    ($real:path; $marks:path, $field:expr, $hook:path, $candidate:path) => {
        $crate::arch::sampling_entries::counting_entry! {
            realloc [
                $crate::arch::sampling_entries::jump_if_marked!("3f"),
                $crate::arch::sampling_entries::count_down!(2)
            ] 2 [
                , "3:", $crate::arch::assembly::place_words!(2), "b {candidate}"
            ] $real, $field, $hook, (marks = sym $marks, candidate = sym $candidate,)
        }
    };
}

/// free of a block, which may be a sample.
macro_rules! free_entry {
    ($real:path; $marks:path, $field:expr, $hook:path) => {
        $crate::arch::sampling_entries::counting_entry! {
            free [$crate::arch::sampling_entries::jump_if_marked!("2f")] 1 []
            $real, $field, $hook, (marks = sym $marks,)
        }
    };
}

pub(crate) use {
    block_entries, calloc_entry, count_down, counting_entry, free_entry, jump_if_marked, realloc_entry,
};
