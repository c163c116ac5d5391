//! Sizes of V8's bytecodes in bytes, by version, to decode the position tables of baseline code.
//! They are read from `Bytecodes::kBytecodeSizes` of the programs that nodejs.org builds.

/// One digit (to 36) per bytecode: its size alone, and after the prefix that doubles its operands'
/// width.
#[derive(Debug)]
pub(crate) struct BytecodeSizes {
    single: &'static [u8],
    double: &'static [u8],
}

impl BytecodeSizes {
    /// Returns the size in bytes of the instruction that begins `code`; `None` if there is no valid
    /// one.
    pub(crate) fn of_first(&self, code: &[u8]) -> Option<usize> {
        let &first = code.first()?;
        // Two prefixes, for operands of two and of four bytes, and the same two for a debugger.
        if first > 3 {
            return self.of(first, 0);
        }
        self.of(*code.get(1)?, if first & 1 == 0 { 1 } else { 3 })?.checked_add(1)
    }

    /// Returns the size of a bytecode whose operands are `more` times longer than alone.
    fn of(&self, bytecode: u8, more: usize) -> Option<usize> {
        let digit = |digits: &[u8]| {
            let digit = char::from(*digits.get(usize::from(bytecode))?).to_digit(36)?;
            Some(digit as usize)
        };
        let (single, double) = (digit(self.single)?, digit(self.double)?);
        Some(single.wrapping_add(double.checked_sub(single)?.wrapping_mul(more)))
    }
}

pub(crate) const V10_2: BytecodeSizes = BytecodeSizes {
    single: b"11111234556212111112442223222111233342244244344333444445233333333333333333333333\
              32222111222554565345556445533333333222214412414342333311132222222222222222222222\
              42335211112112454412211111111111111111",
    double: b"11111357979313111113773335333111255573377377477555777778355555555555555555555555\
              533331113339979b9579979669955555555333316613616563555511153333333333333333333333\
              73559311113113797713311111111111111111",
};

pub(crate) const V11_3: BytecodeSizes = BytecodeSizes {
    single: b"11111234556212111112442223222111233342244244344333444545333333333333333333333333\
              22221112224554565345556445533333333222215412414342333311142222222222222222222222\
              42335211112112454412211111111111111111",
    double: b"11111357979313111113773335333111255573377377477555777878555555555555555555555555\
              333311133379979b9579979669955555555333317613616563555511173333333333333333333333\
              73559311113113797713311111111111111111",
};

pub(crate) const V12_4: BytecodeSizes = BytecodeSizes {
    single: b"11111234556212111112442223222111233342422442443443533444545333333333333333333333\
              33322221112224554565345556445533333333312221154124143423333111422222222222222222\
              2222242335211112112454412211111111111111111",
    double: b"11111357979313111113773335333111255573733773774775955777878555555555555555555555\
              555333311133379979b9579979669955555555513331176136165635555111733333333333333333\
              3333373559311113113797713311111111111111111",
};

pub(crate) const V13_6: BytecodeSizes = BytecodeSizes {
    single: b"11111234556212111112444222232221112333424224442444344353344454533333333333333333\
              33333332222112222455456534555644553333333331222115412414342333311142222222222422\
              222222222244235211112112454412211111111111111111",
    double: b"11111357979313111113777333353331112555737337773777477595577787855555555555555555\
              5555555333311333379979b957997966995555555551333117613616563555511173333333333733\
              333333333377359311113113797713311111111111111111",
};

pub(crate) const V14_1: BytecodeSizes = BytecodeSizes {
    single: b"11111234556212111112444222232221112333424224442444344353344454523333333333334333\
              33333333322221122224554565345556445533333333312221154124143423333311142222222222\
              4222222222222442352411112112454412211111111111111111",
    double: b"11111357979313111113777333353331112555737337773777477595577787835555555555556555\
              555555555333311333379979b9579979669955555555513331176136165635555511173333333333\
              7333333333333773593711113113797713311111111111111111",
};

pub(crate) const V14_6: BytecodeSizes = BytecodeSizes {
    single: b"11111234556212111112444222232221112333424224442444344353344454533333333333334333\
              33333333322221122224554565345556445534444443312221154124143423333311142222222222\
              4222222222222442352511112112454412211111111111111111",
    double: b"11111357979313111113777333353331112555737337773777477595577787855555555555556555\
              555555555333311333379979b9579979669955555555513331176136165635555511173333333333\
              7333333333333773593911113113797713211111111111111111",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_widens_operands_and_no_bytecode_has_no_size() {
        // LdaZero, and a bytecode with three operands.
        assert_eq!(V11_3.of_first(&[12]), Some(1));
        for sizes in [&V10_2, &V11_3, &V12_4, &V13_6, &V14_1, &V14_6] {
            assert_eq!(sizes.single.len(), sizes.double.len());
            for code in 0..=u8::MAX {
                let is_known = usize::from(code) < sizes.single.len();
                assert_eq!(sizes.of_first(&[code, 40]).is_some(), is_known, "{code}");
                let (one, two, four) =
                    (sizes.of(code, 0), sizes.of_first(&[0, code]), sizes.of_first(&[1, code]));
                assert!(!is_known || (one.unwrap() < two.unwrap() && two <= four), "{code}");
            }
        }
        assert_eq!(V11_3.of_first(&[]), None);
        assert_eq!(V11_3.of_first(&[1]), None);
    }
}
