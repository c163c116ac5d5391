use super::*;

/// Returns the names used by the function that begins at the mark `§` of a script.
fn uses(marked: &str) -> Uses {
    let at = marked.find('§').expect("a mark");
    let text = marked.replacen('§', "", 1);
    let (before, _) = text.split_at(at);
    let line = before.matches('\n').count() as u32;
    let column = before.rsplit('\n').next().unwrap_or("").encode_utf16().count() as u32;
    ScriptText::of(text).expect("it is understood").uses_at(line, column)
}

fn names(marked: &str) -> Vec<String> {
    match uses(marked) {
        Uses::Names(names) => {
            let keywords = [
                "return", "let", "const", "var", "function", "typeof", "new", "if", "class", "async", "await",
            ];
            let mut names: Vec<String> =
                names.into_iter().filter(|name| !keywords.contains(&name.as_str())).collect();
            names.sort();
            names
        }
        Uses::Everything => vec!["(everything)".to_owned()],
    }
}

#[test]
fn names_are_told_from_properties_keys_texts_and_comments() {
    let text =
        "let big;\nconst f = function §() { /* big */ x.big; return { big: 'big', y, [z]: 1 }; } // big";
    assert_eq!(names(text), ["x", "y", "z"]);
    assert_eq!(names("a = §() => `big ${one} ${`${two}`} big`"), ["one", "two"]);
    assert_eq!(names("a = §() => x?.big ?? q ? w : e"), ["e", "q", "w", "x"]);
    assert_eq!(
        names("switch (v) { case 1: f = §() => { switch (w) { case a, big: } } }").last().unwrap(),
        "w"
    );
    assert!(names("f = §() => { switch (w) { case a, big: } }").contains(&"big".to_owned()));
    assert_eq!(names("f = §() => this.#big + ü"), ["this", "ü"]);
}

#[test]
fn regular_expressions_are_told_from_divisions() {
    assert_eq!(names("f = §() => /big'[/`]/g.test(a) / b / c"), ["a", "b", "c"]);
    assert_eq!(names("f = §() => { if (a) /'big/.test(b) }"), ["a", "b"]);
    assert_eq!(names("f = §() => { } \n /x'/.test(y)"), [""; 0]);
    assert_eq!(names("f = §() => (a) / b + `${1}` / c"), ["a", "b", "c"]);
    assert_eq!(names("f = §() => { return /[`]/ }; const g = `x`"), [""; 0]);
    assert_eq!(names("f = §() => i++ / 2 / `${j}`"), ["i", "j"]);
}

#[test]
fn a_function_ends_where_it_ends() {
    assert_eq!(names("a = §x => x + one\nuse(big)"), ["one"]);
    assert_eq!(names("a = [§(x) => one, big]"), ["one"]);
    assert_eq!(names("a = §(x) => one +\n two\nbig()"), ["one", "two"]);
    assert_eq!(names("function f§(a) { return b } big"), ["b"]);
    assert_eq!(names("class A { m§(a) { return b } n() { big } }"), ["b"]);
    assert_eq!(names("class A { get m§() { return b } static async *n() { big } }"), ["b"]);
    assert_eq!(names("o = { async m§() { await b }, big }"), ["b"]);
    assert_eq!(names("a = §async (x) => { await b }; big"), ["b"]);
    assert_eq!(names("a = function* §() { yield b }; big"), ["b", "yield"]);
    assert_eq!(names("\u{2028}ä = '😀'; f = §() => b"), ["b"]);
}

#[test]
fn what_parameters_and_declarations_hide_is_no_use() {
    assert_eq!(names("a = §(big, { c, d = f }, ...r) => { big; c; d; r; b }"), ["b", "f"]);
    assert_eq!(names("a = §() => list.map(big => big.x).filter(({ c }) => c)"), ["list"]);
    assert_eq!(names("a = §() => { const big = 1; return () => big; }"), [""; 0]);
    assert_eq!(names("a = §() => { { let big = 1; } return big; }"), ["big"]);
    assert_eq!(names("a = §(x = big) => { let big; }"), ["big"]);
    assert_eq!(names("a = §() => { g(function (big) { big }); big }"), ["big", "g"]);
    assert_eq!(names("a = §() => { run(big)\n{ big } }"), ["big", "run"]);
}

#[test]
fn what_is_not_understood_uses_everything() {
    assert_eq!(uses("a = §() => { eval(code) }"), Uses::Everything);
    assert_eq!(uses("a = §() => { b\\u0069g }"), Uses::Everything);
    assert_eq!(uses("§let a; (b)"), Uses::Everything);
    for broken in ["(", "a)", "(]", "`${", "'", "\"\n\"", "/* ", "`", "`${1)`", "x = /a", "${", "`\\"] {
        assert!(ScriptText::of(broken.to_owned()).is_none(), "{broken}");
    }
    let text = ScriptText::of("f(a => b)".to_owned()).unwrap();
    assert_eq!(text.uses_at(0, 99), Uses::Everything);
    assert_eq!(text.uses_at(u32::MAX, u32::MAX), Uses::Everything);
}

proptest::proptest! {
    /// Any text may be given as a script.
    #[test]
    fn no_text_is_too_strange(pieces in proptest::collection::vec(
        proptest::sample::select(vec![
            "(", ")", "{", "}", "[", "]", "`", "${", "'", "\"", "/", "\\", "\n", "=>", "a", "async ", "function ",
            "*", ".", "...", "?.", "=", ",", ";", "1", "class ", "#!", "//", "/*", "*/", "ü", "\u{2028}", "😀", ":",
        ]),
        0..40,
    )) {
        let text: String = pieces.concat();
        if let Some(script) = ScriptText::of(text.clone()) {
            for column in 0..text.len() as u32 {
                let _ = script.uses_at(0, column);
                let _ = script.uses_at(1, column);
            }
        }
    }
}
