//! The page's types of answers, generated from the server's types: `ui/src/api/answers.ts`.
//!
//! The sources are parsed: every struct and enum that is written as JSON has its fields and `serde`
//! attributes there. Answers built without a type (`json!`) are typed by the page itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use syn::parse::{Parse as _, Parser as _};
use syn::{Attribute, Field, Fields, GenericArgument, Item, Lit, PathArguments, Type};

/// Types that another generated file contains.
const ELSEWHERE: [(&str, &str); 2] = [("Amounts", "metrics"), ("TotalIntervals", "metrics")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares the file; `HEAPR_WRITE_GENERATED=1` writes it.
#[test]
fn the_page_has_the_types_of_the_answers() {
    let path = root().join("ui/src/api/answers.ts");
    let text = typescript();
    if std::env::var_os("HEAPR_WRITE_GENERATED").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "run this test with HEAPR_WRITE_GENERATED=1, then build the page");
}

fn typescript() -> String {
    let mut files = Vec::new();
    let server = root().join("crates/server/src");
    sources(&server, &mut files);
    for other in [
        "query/src/json.rs",
        "findings/src/finding.rs",
        "findings/src/where_it_is/piece.rs",
        "resident/src/saved_detail.rs",
        "resident/src/page_cells.rs",
    ] {
        files.push(root().join("crates").join(other));
    }
    files.sort();
    let mut types: BTreeMap<String, String> = BTreeMap::new();
    for file in files {
        let source = syn::parse_file(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let is_of_server = file.starts_with(&server);
        for item in source.items.iter().filter(|item| derives(attributes(item), "Serialize")) {
            // A choice of a request; its text is for commands.
            if is_of_server && derives(attributes(item), "Deserialize") {
                continue;
            }
            let (name, text) = declaration(item);
            assert!(types.insert(name.clone(), text).is_none(), "two types of answers are called {name}");
        }
        for (name, text) in source.items.iter().filter_map(block_members).flatten() {
            assert!(types.insert(name.clone(), text).is_none(), "two types of answers are called {name}");
        }
    }
    let mut text =
        "/** The answers' types of crates/server, written by its test `answer_types`: not to be edited. */\n"
            .to_owned();
    for (name, file) in ELSEWHERE {
        let _ = writeln!(text, "import type {{ {name} }} from './{file}';");
    }
    types.values().fold(text, |text, one| text + "\n" + one)
}

/// Name of a variant, as `rename_all = "snake_case"` writes it.
fn snake_case(name: &str) -> String {
    let mut written = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !written.is_empty() {
            written.push('_');
        }
        written.extend(letter.to_lowercase());
    }
    written
}

/// Types that `heapr_trace::block_members` declares: each key, and its half of an interval.
fn block_members(item: &Item) -> Option<Vec<(String, String)>> {
    let Item::Macro(call) = item else { return None };
    call.mac.path.segments.last().filter(|last| last.ident == "block_members")?;
    let structs = syn::File::parse.parse2(call.mac.tokens.clone()).unwrap();
    let one = |item: &Item| {
        let Item::Struct(item) = item else { panic!("only structs are declared so") };
        let keys: Vec<String> =
            item.fields.iter().map(|field| field.ident.as_ref().unwrap().to_string()).collect();
        let values = keys.iter().map(|key| format!("  {key}: number;\n"));
        let halves = keys.iter().map(|key| format!("  {key}_plus_minus?: number;\n"));
        let fields: String = values.chain(halves).collect();
        let text = format!("{}export interface {} {{\n{fields}}}\n", comment(&item.attrs, ""), item.ident);
        (item.ident.to_string(), text)
    };
    Some(structs.items.iter().map(one).collect())
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether a type derives a trait.
fn derives(attributes: &[Attribute], name: &str) -> bool {
    let mut is_derived = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        let _ = attribute.parse_nested_meta(|derived| {
            is_derived |= derived.path.segments.last().is_some_and(|last| last.ident == name);
            Ok(())
        });
    }
    is_derived
}

/// `serde` attributes of a field.
#[derive(Default)]
struct Serde {
    name: Option<String>,
    is_flat: bool,
    is_skipped: bool,
    is_optional: bool,
    is_text: bool,
}

fn serde(attributes: &[Attribute]) -> Serde {
    let mut said = Serde::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let _ = attribute.parse_nested_meta(|word| {
            let value = word.value().and_then(|value| value.parse::<Lit>()).ok();
            if word.path.is_ident("rename")
                && let Some(Lit::Str(name)) = value
            {
                said.name = Some(name.value());
            }
            said.is_flat |= word.path.is_ident("flatten");
            said.is_skipped |= word.path.is_ident("skip");
            said.is_optional |= word.path.is_ident("skip_serializing_if");
            said.is_text |= word.path.is_ident("serialize_with");
            Ok(())
        });
    }
    said
}

/// Text of a doc comment, on one line.
fn comment(attributes: &[Attribute], indent: &str) -> String {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let syn::Meta::NameValue(meta) = &attribute.meta
            && meta.path.is_ident("doc")
            && let syn::Expr::Lit(line) = &meta.value
            && let Lit::Str(line) = &line.lit
        {
            lines.push(line.value().trim().to_owned());
        }
    }
    if lines.is_empty() { String::new() } else { format!("{indent}/** {} */\n", lines.join(" ")) }
}

fn declaration(item: &Item) -> (String, String) {
    match item {
        Item::Struct(item) => {
            let generics: Vec<String> =
                item.generics.type_params().map(|parameter| parameter.ident.to_string()).collect();
            let name = type_name(&item.ident.to_string());
            let head =
                if generics.is_empty() { name.clone() } else { format!("{name}<{}>", generics.join(", ")) };
            let Fields::Named(fields) = &item.fields else { panic!("{name} has no named fields") };
            let (flat, own): (Vec<&Field>, Vec<&Field>) =
                fields.named.iter().partition(|field| serde(&field.attrs).is_flat);
            let parents: Vec<String> = flat.iter().map(|field| type_of(&field.ty)).collect();
            let parents =
                if parents.is_empty() { String::new() } else { format!(" extends {}", parents.join(", ")) };
            let fields: String = own.into_iter().map(field_line).collect();
            let text =
                format!("{}export interface {head}{parents} {{\n{fields}}}\n", comment(&item.attrs, ""));
            (name, text)
        }
        Item::Enum(item) => {
            let name = type_name(&item.ident.to_string());
            let words: Vec<String> = item
                .variants
                .iter()
                .map(|variant| format!("'{}'", snake_case(&variant.ident.to_string())))
                .collect();
            let text = format!("{}export type {name} = {};\n", comment(&item.attrs, ""), words.join(" | "));
            (name, text)
        }
        _ => unreachable!("only these are asked for"),
    }
}

fn field_line(field: &Field) -> String {
    let said = serde(&field.attrs);
    if said.is_skipped {
        return String::new();
    }
    let ident = field.ident.as_ref().unwrap().to_string();
    let name = said.name.unwrap_or_else(|| ident.trim_start_matches("r#").to_owned());
    let mut value = if said.is_text { "string".to_owned() } else { type_of(&field.ty) };
    if said.is_optional {
        value = value.trim_end_matches(" | null").to_owned();
    }
    let mark = if said.is_optional { "?" } else { "" };
    format!("{}  {name}{mark}: {value};\n", comment(&field.attrs, "  "))
}

/// Name of a type on the page: `HeapJson` is `Heap`.
fn type_name(name: &str) -> String {
    name.strip_suffix("Json").unwrap_or(name).to_owned()
}

fn type_of(of: &Type) -> String {
    match of {
        Type::Reference(reference) => type_of(&reference.elem),
        Type::Slice(slice) => list(&type_of(&slice.elem)),
        Type::Array(array) => list(&type_of(&array.elem)),
        Type::Tuple(tuple) => {
            format!("[{}]", tuple.elems.iter().map(type_of).collect::<Vec<_>>().join(", "))
        }
        Type::Path(path) => {
            let last = path.path.segments.last().unwrap();
            let arguments: Vec<String> = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => arguments
                    .args
                    .iter()
                    .filter_map(|argument| match argument {
                        GenericArgument::Type(of) => Some(type_of(of)),
                        _ => None,
                    })
                    .collect(),
                _ => Vec::new(),
            };
            match (last.ident.to_string().as_str(), arguments.as_slice()) {
                (
                    "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "i128"
                    | "isize" | "f32" | "f64",
                    _,
                ) => "number".to_owned(),
                ("bool", _) => "boolean".to_owned(),
                ("String" | "str" | "Cow" | "PathBuf", _) => "string".to_owned(),
                ("Value", _) => "unknown".to_owned(),
                ("Option", [one]) => format!("{one} | null"),
                ("Vec", [one]) => list(one),
                ("Box" | "Arc", [one]) => one.clone(),
                (name, []) => type_name(name),
                (name, arguments) => format!("{}<{}>", type_name(name), arguments.join(", ")),
            }
        }
        _ => panic!("a type that answers do not have"),
    }
}

fn list(of: &str) -> String {
    if of.contains(' ') { format!("({of})[]") } else { format!("{of}[]") }
}
