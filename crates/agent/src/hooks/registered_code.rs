//! The runtime library's functions by which a program registers unwind tables for JIT code: see
//! [`crate::modules::registered_frames`]. Only a call shows whether that library is loaded.
//!
//! Some of these functions call others internally, and both calls may come here: a section is
//! entered once.

use core::ffi::c_void;

use crate::hooks::real::Real;
use crate::modules::{self, link_map, registered_frames};
use crate::state::AGENT;

type Pointer = *mut c_void;
type Function = unsafe extern "C" fn(Pointer, Pointer, Pointer, Pointer) -> Pointer;

/// Meaning of such a call.
#[derive(Clone, Copy)]
enum News {
    /// A section is registered.
    Section,
    /// Several sections are registered, in a list of addresses that ends with a null.
    Sections,
    /// A section, or such a list, is deregistered.
    Gone,
}

/// Makes the call with four words; the function ignores those that it does not take.
fn pass_on(real: &Real, arguments: [Pointer; 4]) -> Pointer {
    let mut address = real.address();
    if address == 0 {
        address = link_map::find_after_agent(real.name);
        real.set(address);
    }
    if address == 0 {
        return core::ptr::null_mut();
    }
    let [first, second, third, fourth] = arguments;
    // SAFETY: the runtime library's function of this name, with the words that the program has
    // passed.
    unsafe { core::mem::transmute::<usize, Function>(address)(first, second, third, fourth) }
}

fn carry_out(news: News, real: &Real, arguments: [Pointer; 4]) -> Pointer {
    let [begin, ..] = arguments;
    if !AGENT.is_active() || begin.is_null() {
        return pass_on(real, arguments);
    }
    let key = begin as usize;
    match news {
        News::Section => registered_frames::register(key, key),
        News::Sections => {
            let mut place = begin.cast::<usize>();
            // SAFETY: the program's list, which the runtime library reads in the same way.
            while let section @ 1.. = unsafe { place.read_unaligned() } {
                registered_frames::register(section, key);
                place = place.wrapping_add(1);
            }
        }
        News::Gone => {
            if registered_frames::deregister(key) {
                modules::forget_code();
            }
        }
    }
    pass_on(real, arguments)
}

macro_rules! functions {
    ($($name:ident $news:ident;)*) => {
        /// The real functions.
        pub(crate) mod real {
            use crate::hooks::real::Real;
            $(
                #[allow(non_upper_case_globals, reason = "named as the C functions")]
                pub(crate) static $name: Real = Real::new(stringify!($name).as_bytes());
            )*
        }
        $(
            /// The runtime library's function of this name.
            ///
            /// # Safety
            /// As the runtime library has it.
            #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
            pub(crate) unsafe extern "C" fn $name(
                begin: Pointer,
                object: Pointer,
                text_base: Pointer,
                data_base: Pointer,
            ) -> Pointer {
                carry_out(News::$news, &real::$name, [begin, object, text_base, data_base])
            }
        )*
    };
}

functions! {
    __register_frame Section;
    __register_frame_info Section;
    __register_frame_info_bases Section;
    __register_frame_table Sections;
    __register_frame_info_table Sections;
    __register_frame_info_table_bases Sections;
    __deregister_frame Gone;
    __deregister_frame_info Gone;
    __deregister_frame_info_bases Gone;
}
