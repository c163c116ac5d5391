//! Parses Callgrind's file of a run. The relevant parts of the file:
//!
//! ```text
//! ob=(3) /var/cache/heapr/heapr-agent-….so     the object of what follows; later `ob=(3)` alone
//! fn=(12) heapr_agent::hooks::malloc
//! 0 12345                                      a position and a cost
//! calls=7 0                                    a call: the cost in the next line is the callee's
//! 0 6789
//! totals: 19134                                all costs
//! ```

use std::collections::BTreeMap;

/// Number of instructions of the whole run.
pub(crate) fn total(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

/// Self cost of each of the agent's functions.
pub(crate) fn agent_functions(text: &str) -> BTreeMap<String, u64> {
    let mut names: BTreeMap<(bool, &str), &str> = BTreeMap::new();
    let mut functions = BTreeMap::new();
    let (mut object, mut function, mut is_callees) = ("", "", false);
    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap_or(("", line));
        match key {
            "ob" => object = named(&mut names, true, value),
            "cob" => {
                named(&mut names, true, value);
            }
            "fn" => function = named(&mut names, false, value),
            "cfn" => {
                named(&mut names, false, value);
            }
            "calls" => is_callees = true,
            "" => {
                let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
                let is_cost = line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first));
                if let Some(cost) = cost.filter(|_| is_cost)
                    && !std::mem::take(&mut is_callees)
                    && object.contains("heapr-agent")
                {
                    *functions.entry(function.to_owned()).or_default() += cost;
                }
            }
            _ => {}
        }
    }
    functions
}

/// Returns the name in `(number) name`, or the one that the number was given before.
fn named<'t>(names: &mut BTreeMap<(bool, &'t str), &'t str>, is_object: bool, value: &'t str) -> &'t str {
    match value.split_once(' ') {
        Some((number, name)) => {
            names.insert((is_object, number), name);
            name
        }
        None => names.get(&(is_object, value)).copied().unwrap_or(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_own_costs_are_summed_without_those_of_what_it_calls() {
        let text = "events: Ir\nob=(1) /x/heapr-agent-12.so\nfl=(1) ???\nfn=(1) heapr_agent::hooks::malloc\n0 100\n\
                    cob=(2) /lib/libc.so.6\ncfn=(2) malloc\ncalls=10 0\n0 5000\n0 7\n\nob=(2)\nfn=(2)\n0 4000\n\
                    cob=(1)\ncfn=(3) heapr_agent::hooks::free\ncalls=1 0\n0 9\n\nob=(1)\nfn=(3)\n0 9\n\nfn=(1)\n+1 3\n* 2\n";
        let functions = agent_functions(text);
        let expected = [("heapr_agent::hooks::free", 9), ("heapr_agent::hooks::malloc", 112)];
        assert_eq!(functions, expected.map(|(name, cost)| (name.to_owned(), cost)).into());
    }
}
