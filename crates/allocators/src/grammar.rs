//! Parser of the table's language, which the head of `allocators.txt` describes. A user's file is
//! untrusted.

use std::collections::HashMap;
use std::sync::LazyLock;

use heapr_wire::{CALLED, InnerAction, POOL_BEFORE_BLOCK, Signature};

use crate::row::{Allocator, FunctionRow};

/// An invalid line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// Number of the line, from 1.
    pub line: usize,
    /// Description of the fault.
    pub what: String,
}

/// Largest number of functions of one allocator.
const FUNCTIONS_MAX: usize = 1000;
const NAME_BYTES_MAX: usize = 256;

pub(crate) fn parse(text: &str) -> Result<Vec<Allocator>, ParseError> {
    let mut allocators: Vec<Allocator> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let error = |what: String| ParseError { line: number + 1, what };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        if word == "allocator" {
            if rest.is_empty() || rest.len() > NAME_BYTES_MAX {
                return Err(error("an allocator has a name".to_owned()));
            }
            allocators.push(Allocator { name: rest.to_owned(), ..Allocator::default() });
            continue;
        }
        let Some(allocator) = allocators.last_mut() else {
            return Err(error("no `allocator NAME` comes before it".to_owned()));
        };
        match word {
            "any-prefix" => allocator.any_prefix.push(rest.to_owned()),
            "needs" => allocator.needs.extend(rest.split_whitespace().map(str::to_owned)),
            "any-of" => allocator.any_of.push(rest.split_whitespace().map(str::to_owned).collect()),
            "absent" => allocator.absent.extend(rest.split_whitespace().map(str::to_owned)),
            "last" => allocator.is_last = true,
            "alone" => allocator.is_alone = true,
            "named" => allocator.is_named = true,
            "heap" => allocator.heap = rest.to_owned(),
            _ if allocator.functions.len() >= FUNCTIONS_MAX => {
                return Err(error("it has too many functions".to_owned()));
            }
            _ => allocator.functions.push(function(line).map_err(error)?),
        }
    }
    Ok(allocators)
}

/// Argument numbers of the words in the brackets.
#[derive(Default)]
struct Arguments {
    block: Option<u8>,
    count: Option<u8>,
    size: Option<u8>,
    more: Option<u8>,
    pool: Option<u8>,
    is_place: bool,
}

fn function(line: &str) -> Result<FunctionRow, String> {
    let (name, rest) = line.split_once('(').ok_or("it is neither a keyword nor FUNCTION(ARGUMENTS)")?;
    let (inside, rest) = rest.split_once(')').ok_or("the bracket does not end")?;
    let name = name.trim();
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_whitespace) {
        return Err(format!("{name:?} is no name of a function"));
    }
    let mut arguments = arguments(inside)?;
    let (mut shown_as, mut instead, mut action, mut fixed) = (name, None, None, None);
    let mut words = rest.split_whitespace();
    while let Some(word) = words.next() {
        let mut next = || words.next().ok_or(format!("something must come behind `{word}`"));
        match word {
            "as" => shown_as = next()?,
            "throws" => instead = Some(next()?.to_owned()),
            "answers" => match next()? {
                "size" => action = Some(InnerAction::Resize),
                "text" => action = Some(InnerAction::Text),
                other => return Err(format!("it answers `size` or `text`, not {other:?}")),
            },
            "in-place" => action = Some(InnerAction::Expand),
            "any" => action = Some(InnerAction::Any),
            "clears" => action = Some(InnerAction::Clear),
            "quiet" => action = Some(InnerAction::Quiet),
            "dissolves" => action = Some(InnerAction::Dissolve),
            "control" => action = Some(InnerAction::Control),
            "control-by-mib" => action = Some(InnerAction::ControlByMib),
            "name-to-mib" => action = Some(InnerAction::NameToMib),
            "chain" => action = Some(InnerAction::Chain),
            "tree" => action = Some(InnerAction::Tree),
            "pool-before" if arguments.pool.is_none() => arguments.pool = Some(POOL_BEFORE_BLOCK),
            "fixed" => {
                let bytes = next()?;
                fixed = Some(bytes.parse().map_err(|_| format!("{bytes:?} is no number of bytes"))?);
            }
            other => return Err(format!("{other:?} is not known")),
        }
    }
    let has_pool = arguments.pool.is_some_and(|pool| pool != POOL_BEFORE_BLOCK);
    if matches!(action, Some(InnerAction::Clear | InnerAction::Dissolve)) && !has_pool {
        return Err("what it clears must be told: `pool`".to_owned());
    }
    if action == Some(InnerAction::Chain) && arguments.block.is_none() {
        return Err("where the chain begins must be told: `block`".to_owned());
    }
    let action = match (action, arguments.block, arguments.size) {
        _ if instead.is_some() => InnerAction::New,
        (Some(action), ..) => action,
        _ if fixed.is_some() => InnerAction::Allocate,
        (_, Some(_), Some(_)) if arguments.is_place => InnerAction::Store,
        (_, Some(_), Some(_)) => InnerAction::Reallocate,
        (_, Some(_), None) => InnerAction::Free,
        (_, None, Some(_)) => InnerAction::Allocate,
        (_, None, None) => return Err("it has neither a size nor a block".to_owned()),
    };
    let signature = Signature {
        action,
        block: arguments.block,
        count: arguments.count,
        size: arguments.size,
        more: arguments.more,
        pool: arguments.pool,
        fixed_bytes: fixed.unwrap_or(0),
        called: number_of(shown_as, action),
    };
    Ok(FunctionRow { name: name.to_owned(), signature, instead })
}

fn arguments(inside: &str) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    for (place, word) in inside.split(',').map(str::trim).enumerate() {
        let number = u8::try_from(place).ok().filter(|&number| number < 4);
        let named = match word {
            "" | "-" => continue,
            "block" => &mut arguments.block,
            "count" => &mut arguments.count,
            "size" => &mut arguments.size,
            "more" => &mut arguments.more,
            "pool" => &mut arguments.pool,
            "place" => {
                arguments.is_place = true;
                &mut arguments.block
            }
            other => {
                let known = "block, count, size, more, pool, place or -";
                return Err(format!("an argument is {known}, not {other:?}"));
            }
        };
        let number = number.ok_or("only the first four arguments can be told")?;
        if named.replace(number).is_some() {
            return Err(format!("`{word}` stands there twice"));
        }
    }
    Ok(arguments)
}

/// Number under which a function's calls are shown.
fn number_of(name: &str, action: InnerAction) -> u8 {
    let any = match action {
        InnerAction::Free | InnerAction::Clear | InnerAction::Chain => "(free)",
        InnerAction::Reallocate | InnerAction::Resize | InnerAction::Expand => "(reallocate)",
        _ => "(allocate)",
    };
    called(name).or_else(|| called(any)).unwrap_or(0)
}

/// Number of a name in [`CALLED`].
pub(crate) fn called(name: &str) -> Option<u8> {
    static NUMBERS: LazyLock<HashMap<&str, u8>> = LazyLock::new(|| CALLED.iter().copied().zip(0..).collect());
    NUMBERS.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_allocator_is_read_as_it_is_meant() {
        let text = "allocator my pool\nheap pool\nneeds pool_take\npool_take(-, size)\npool_give(-, block)\n\
                    pool_grow(block, count, size) as realloc\nput(place, -, size)\n";
        let allocators = parse(text).unwrap();
        let [allocator] = allocators.as_slice() else { panic!("{allocators:?}") };
        assert_eq!((allocator.name.as_str(), allocator.heap.as_str()), ("my pool", "pool"));
        let actions: Vec<_> =
            allocator.functions.iter().map(|row| (row.signature.action, row.signature.size)).collect();
        let expected = [
            (InnerAction::Allocate, Some(1)),
            (InnerAction::Free, None),
            (InnerAction::Reallocate, Some(2)),
            (InnerAction::Store, Some(2)),
        ];
        assert_eq!(actions, expected);
        assert_eq!(CALLED[usize::from(allocator.functions[2].signature.called)], "realloc");
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        for (text, line) in [
            ("malloc(size)", 1),
            ("allocator a\nmalloc", 2),
            ("allocator a\n\nf(sizes)", 3),
            ("allocator a\nf(-,-,-,-,size)", 2),
            ("allocator a\nf(size) as", 2),
            ("allocator a\nf()", 2),
            ("allocator a\nf(block) clears", 2),
            ("allocator a\nf(size) chain", 2),
            ("allocator a\nf(pool, size) pool-before", 2),
            ("allocator a\nf(block) pool-before clears", 2),
        ] {
            assert_eq!(parse(text).map_err(|error| error.line), Err(line), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(allocator |needs |f\\(|size|,|\\)| as |\n|.){0,80}") {
            let _ = parse(&text);
        }
    }
}
