//! Tree of a profile's stacks by function names alone, with the amounts of each node. Formats
//! without source lines are written from it.

use std::collections::HashMap;

use heapr_query::Metric;

use crate::samples::{MixedMap, Node, Samples};

/// Amount of a stack, either its own or with that of all its callees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) amount: u64,
    /// Variance of `amount`, where it is an estimate.
    pub(crate) variance: u64,
}

impl Held {
    fn add(&mut self, other: Self) {
        self.amount = self.amount.saturating_add(other.amount);
        self.variance = self.variance.saturating_add(other.variance);
    }
}

/// Tree of names, see the module. Node 0 is the root, which calls all others.
#[derive(Debug)]
pub(crate) struct NameTree {
    names: Vec<String>,
    /// By node: its caller, which has a smaller number, and the index of its name.
    nodes: Vec<(Node, u32)>,
    /// By node: its own amount, without callees.
    own: Vec<Held>,
    /// Callees of all nodes. Those of a node are adjacent and in order of their names.
    callees: Vec<Node>,
    /// By node: index of its first callee in `callees`. Has one more entry than there are nodes.
    first_callee: Vec<u32>,
}

impl NameTree {
    /// Builds the tree of the stacks whose `value` is not 0. `name` converts a frame's name to its
    /// written form.
    pub(crate) fn new(samples: &Samples, value: Metric, name: impl Fn(&str) -> String) -> Self {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut names: Vec<String> = Vec::new();
        let name_of: Vec<u32> = samples
            .frames()
            .iter()
            .map(|frame| {
                *numbers.entry(name(&frame.name)).or_insert_with_key(|name| {
                    names.push(name.clone());
                    names.len() as u32 - 1
                })
            })
            .collect();
        drop(numbers);
        let (nodes, own) = Self::merged(samples, value, &name_of);
        let (callees, first_callee) = Self::in_order(&nodes, &names);
        Self { names, nodes, own, callees, first_callee }
    }

    fn merged(samples: &Samples, value: Metric, name_of: &[u32]) -> (Vec<(Node, u32)>, Vec<Held>) {
        let mut nodes: Vec<(Node, u32)> = vec![(0, 0)];
        let mut number_of: MixedMap<(Node, u32), Node> = MixedMap::default();
        let mut merged: Vec<Node> = vec![0; samples.nodes().len()];
        for (place, &(caller, frame)) in samples.nodes().iter().enumerate().skip(1) {
            let key = (merged[caller as usize], name_of[frame as usize]);
            merged[place] = *number_of.entry(key).or_insert_with(|| {
                nodes.push(key);
                nodes.len() as Node - 1
            });
        }
        let mut own = vec![Held::default(); nodes.len()];
        for row in samples.rows() {
            let held = Held { amount: value.of(&row.amounts), variance: value.variance(&row.amounts) };
            if held.amount > 0 {
                own[merged[row.stack as usize] as usize].add(held);
            }
        }
        (nodes, own)
    }

    fn in_order(nodes: &[(Node, u32)], names: &[String]) -> (Vec<Node>, Vec<u32>) {
        let mut by_name: Vec<u32> = (0..names.len() as u32).collect();
        by_name.sort_unstable_by_key(|&name| &names[name as usize]);
        let mut rank = vec![0; names.len()];
        by_name.iter().enumerate().for_each(|(place, &name)| rank[name as usize] = place);
        let mut callees: Vec<Node> = (1..nodes.len() as Node).collect();
        let key = |node: Node| {
            let (caller, name) = nodes[node as usize];
            (caller, rank[name as usize])
        };
        callees.sort_unstable_by_key(|&node| key(node));
        let mut first_callee = vec![0; nodes.len() + 1];
        nodes.iter().skip(1).for_each(|&(caller, _)| first_callee[caller as usize + 1] += 1);
        (1..first_callee.len()).for_each(|place| first_callee[place] += first_callee[place - 1]);
        (callees, first_callee)
    }

    pub(crate) fn name(&self, node: Node) -> &str {
        &self.names[self.nodes[node as usize].1 as usize]
    }

    pub(crate) fn own(&self, node: Node) -> Held {
        self.own[node as usize]
    }

    /// Callees of a node, in order of their names.
    pub(crate) fn callees(&self, node: Node) -> &[Node] {
        let place = |node: usize| self.first_callee[node] as usize;
        &self.callees[place(node as usize)..place(node as usize + 1)]
    }

    /// By node: its amount with that of all its callees.
    pub(crate) fn inclusive(&self) -> Vec<Held> {
        let mut held = self.own.clone();
        for (place, &(caller, _)) in self.nodes.iter().enumerate().skip(1).rev() {
            let of_it = held[place];
            held[caller as usize].add(of_it);
        }
        held
    }
}
