//! Checks the instructions of the built agent. It must not compute in floating point, whose flags
//! and traps are the program's, nor touch registers that only one function saves.

use std::path::Path;
use std::process::Command;

/// Function that saves and restores all registers of the processor; only it may name the wide ones.
const SAVING: &str = "wide_registers::call_keeping";

/// Stems of the SSE and AVX arithmetic instructions, before the kind of number.
const ARITHMETIC: &[&str] = &[
    "add", "addsub", "cmp", "comi", "div", "dp", "hadd", "hsub", "max", "min", "mul", "rcp", "round",
    "rsqrt", "sqrt", "sub", "ucomi",
];
/// Suffixes of the kinds of numbers.
const NUMBERS: [&str; 4] = ["ss", "sd", "ps", "pd"];
/// Other instructions that change the state of floating point, or all of it.
const STATE: &[&str] = &["emms", "fxrstor", "ldmxcsr", "vldmxcsr", "wait", "xrstor", "xrstors"];

/// Returns one sentence for each function and instruction that breaks the rules.
pub(crate) fn breaches(agent: &Path) -> anyhow::Result<Vec<String>> {
    let mut command = Command::new("objdump");
    let text = crate::output_of(command.args(["-d", "-C", "--no-show-raw-insn"]).arg(agent))?;
    let mut breaches = Vec::new();
    let mut function = "";
    let mut instruction_count = 0_usize;
    for line in text.lines() {
        if let Some((_, name)) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            function = name;
        } else if let Some((_, instruction)) = line.split_once(":\t") {
            instruction_count += 1;
            if !function.contains(SAVING) && is_forbidden(instruction) {
                breaches.push(format!("{function} has `{}`", instruction.trim()));
            }
        }
    }
    // A disassembly that is not understood proves nothing.
    if instruction_count < 10_000 {
        breaches.push(format!("objdump shows {instruction_count} instructions of it"));
    }
    Ok(breaches)
}

fn is_forbidden(instruction: &str) -> bool {
    let mut words = instruction.split_whitespace();
    let mnemonic = words.next().unwrap_or_default();
    let operands = words.next().unwrap_or_default();
    let plain = mnemonic.strip_prefix('v').unwrap_or(mnemonic);
    let is_arithmetic = NUMBERS.iter().any(|number| {
        plain
            .strip_suffix(number)
            .is_some_and(|operation| ARITHMETIC.iter().any(|name| is_form_of(operation, name)))
    });
    let has_wide_register = ["%ymm", "%zmm", "%k", "%mm", "%st"].iter().any(|name| operands.contains(name));
    is_arithmetic
        || plain.starts_with("cvt")
        // All x87 instructions begin so, and no others.
        || mnemonic.starts_with('f')
        || STATE.contains(&mnemonic)
        || mnemonic.starts_with("vzero")
        || has_wide_register
}

/// Whether an operation is a form of a stem. Comparisons have their condition in the name: `cmplt`,
/// `cmpneq`.
fn is_form_of(operation: &str, name: &str) -> bool {
    operation == name || (name == "cmp" && operation.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_and_wide_registers_are_told_from_moves() {
        for forbidden in [
            "cvtsi2sd %rax,%xmm0",
            "divsd  %xmm1,%xmm0",
            "vmulpd %ymm1,%ymm0,%ymm0",
            "ucomisd 0x10(%rip),%xmm0",
            "cmpneqss %xmm1,%xmm0",
            "fldt   0x10(%rsp)",
            "vmovdqu %ymm0,(%rax)",
            "kmovq  %k1,%rax",
            "vzeroupper",
            "ldmxcsr (%rax)",
            "movq   %mm0,%rax",
        ] {
            assert!(is_forbidden(forbidden), "{forbidden}");
        }
        for allowed in [
            "movups %xmm0,(%rax)",
            "movss  %xmm0,(%rax)",
            "movsd  (%rax),%xmm0",
            "xorps  %xmm0,%xmm0",
            "shufpd $0x1,%xmm0,%xmm0",
            "punpcklqdq %xmm1,%xmm0",
            "pcmpeqd %xmm1,%xmm0",
            "cmpxchg %rcx,(%rax)",
            "sub    $0x38,%rsp",
            "mov    %fs:0x0,%rax",
            "jmp    1234 <kept>",
        ] {
            assert!(!is_forbidden(allowed), "{allowed}");
        }
    }
}
