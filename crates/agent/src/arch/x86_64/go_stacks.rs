//! Frames at which Go's code called C: the call runs on the thread's own stack, and the goroutine's
//! frames are on another one.
//!
//! ```text
//! thread's stack      [malloc's caller] [C function] [asmcgocall]
//! goroutine's stack                                  [main._Cfunc_make] [main.fill] [main.main]
//! ```
//!
//! `runtime.asmcgocall` makes no frame and leaves the frame pointer of its caller,
//! `runtime.cgocall`. So unwinding continues by the frame pointer, onto the other stack. Its own
//! table describes the state before the change of stacks. The code after the call, which changes
//! back, is the same from Go 1.5 on, except the location of two words. The function is recognised
//! by that code.

/// Number of bytes of code that are compared.
pub(crate) const CODE_BYTES: usize = 32;
/// `mov rdi, [rsp + n]`: loads the goroutine.
const GOROUTINE: [u8; 4] = [0x48, 0x8b, 0x7c, 0x24];
/// `mov rsi, [rdi + 8]`: loads the upper end of its stack.
const STACK_END: [u8; 4] = [0x48, 0x8b, 0x77, 0x08];
/// `sub rsi, [rsp + n]`, or without the `n`: subtracts the depth.
const DEPTH: [u8; 4] = [0x48, 0x2b, 0x74, 0x24];
const DEPTH_AT_TOP: [u8; 4] = [0x48, 0x2b, 0x34, 0x24];
/// `mov rcx, [rip + n]`, and `mov rcx, n`: location of the thread's goroutine, in
/// position-independent code.
const THREAD_PLACE: [[u8; 3]; 2] = [[0x48, 0x8b, 0x0d], [0x48, 0xc7, 0xc1]];

/// True if the code after a call is that of the function which has called C. Then a goroutine's
/// frame, on another stack, is the caller.
pub(crate) fn comes_back(code: &[u8; CODE_BYTES]) -> bool {
    let mut rest: &[u8] = code;
    if THREAD_PLACE.iter().any(|place| rest.starts_with(place)) {
        rest = rest.get(7..).unwrap_or_default();
    }
    let Some(rest) = rest.strip_prefix(&GOROUTINE).and_then(|rest| rest.get(1..)) else { return false };
    let Some(rest) = rest.strip_prefix(&STACK_END) else { return false };
    rest.starts_with(&DEPTH) || rest.starts_with(&DEPTH_AT_TOP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(bytes: &[u8]) -> bool {
        let mut code = [0xcc; CODE_BYTES];
        code[..bytes.len()].copy_from_slice(bytes);
        comes_back(&code)
    }

    #[test]
    fn the_way_back_from_c_is_known_in_each_form_of_it() {
        let go_1_19 = [0x48, 0x8b, 0x7c, 0x24, 0x30, 0x48, 0x8b, 0x77, 0x08, 0x48, 0x2b, 0x74, 0x24, 0x28];
        let later = [0x48, 0x8b, 0x7c, 0x24, 0x08, 0x48, 0x8b, 0x77, 0x08, 0x48, 0x2b, 0x34, 0x24];
        let anywhere = [&[0x48, 0x8b, 0x0d, 1, 2, 3, 4][..], &later].concat();
        assert!(is_found(&go_1_19) && is_found(&later) && is_found(&anywhere));
        for place in [0, 1, 2, 3, 5, 8, 9, 11] {
            let mut other = go_1_19;
            other[place] ^= 0x01;
            assert!(!is_found(&other), "{place}");
        }
        assert!(!is_found(&[]));
    }
}
