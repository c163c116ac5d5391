//! Stacks with their amounts as a tree of callers: common outer frames are stored once. All formats
//! are written from it, stack by stack.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use heapr_query::{Answer, FrameView, Group, Metric, Report, StackFold};
use heapr_trace::Amounts;

use crate::SampleFrame;

/// Node of the tree: a stack, defined by its innermost frame and its caller. 0 is the empty stack.
pub(crate) type Node = u32;

/// Hasher for keys of numbers that are hashes already, or that one multiplication mixes well
/// enough.
#[derive(Debug, Default)]
pub(crate) struct MixedHasher(u64);

impl Hasher for MixedHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

pub(crate) type MixedMap<K, V> = HashMap<K, V, BuildHasherDefault<MixedHasher>>;

/// Stack and its amounts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) stack: Node,
    pub(crate) amounts: Amounts,
}

/// Stacks with their amounts, see the module.
#[derive(Debug, Clone)]
pub struct Samples {
    frames: Vec<SampleFrame>,
    /// By node: its caller, which has a smaller number, and its frame.
    nodes: Vec<(Node, u32)>,
    rows: Vec<Row>,
}

impl Default for Samples {
    fn default() -> Self {
        Self { frames: Vec::new(), nodes: vec![(0, 0)], rows: Vec::new() }
    }
}

impl Samples {
    /// Collects the stacks of an answer to [`Format::query`](crate::Format::query). `progress` is
    /// called with the number of finished stacks and the number of all.
    pub fn of_report(report: &Report<'_>, progress: &mut dyn FnMut(usize, usize)) -> Self {
        let rankings = report.sections.iter().filter_map(|section| match &section.answer {
            Answer::Ranking(ranking) => Some(ranking),
            Answer::Functions(_) | Answer::Tree(_) => None,
        });
        let groups: Vec<&Group> = rankings.flat_map(|ranking| &ranking.groups).collect();
        let mut builder = SamplesBuilder::default();
        let mut fold = StackFold::new(report);
        for (done, group) in groups.iter().enumerate() {
            if done % 1024 == 0 {
                progress(done, groups.len());
            }
            let (stack, away) = fold.of_group(group, &mut |caller, view| builder.step(caller, view));
            let stack = builder.samples.caller(stack, away);
            builder.samples.rows.push(Row { stack, amounts: group.amounts });
        }
        builder.samples.keep_used();
        builder.samples
    }

    /// Collects stacks given as frames, innermost first, with their amounts.
    pub fn of_stacks(stacks: impl IntoIterator<Item = (Vec<SampleFrame>, Amounts)>) -> Self {
        let mut builder = SamplesBuilder::default();
        let mut known: HashMap<SampleFrame, u32> = HashMap::new();
        for (frames, amounts) in stacks {
            let mut at = 0;
            for frame in frames.into_iter().rev() {
                let number = match known.get(&frame) {
                    Some(&number) => number,
                    None => {
                        let number = builder.new_frame(frame.clone());
                        known.insert(frame, number);
                        number
                    }
                };
                at = builder.node(at, number);
            }
            builder.samples.rows.push(Row { stack: at, amounts });
        }
        builder.samples
    }

    /// Number of stacks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the number of stacks is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Iterator over all stacks: frames, innermost first, and amounts.
    pub fn stacks(&self) -> impl Iterator<Item = (Vec<&SampleFrame>, &Amounts)> {
        let frame = |number: u32| &self.frames[number as usize];
        self.rows.iter().map(move |row| (self.frame_numbers(row.stack).map(frame).collect(), &row.amounts))
    }

    /// Whether any amount is larger than `most`.
    #[must_use]
    pub fn has_more_than(&self, most: u64) -> bool {
        self.rows.iter().any(|row| Metric::all().any(|metric| metric.of(&row.amounts) > most))
    }

    /// Sum of all amounts.
    pub(crate) fn sum(&self) -> Amounts {
        self.rows.iter().map(|row| &row.amounts).sum()
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn frames(&self) -> &[SampleFrame] {
        &self.frames
    }

    /// By node: its caller and its frame. A caller precedes its callees.
    pub(crate) fn nodes(&self) -> &[(Node, u32)] {
        &self.nodes
    }

    /// Removes the nodes and frames that no row uses, such as frames removed by culling.
    fn keep_used(&mut self) {
        let mut is_used = vec![false; self.nodes.len()];
        self.rows.iter().for_each(|row| is_used[row.stack as usize] = true);
        for node in (1..self.nodes.len()).rev() {
            if is_used[node] {
                is_used[self.nodes[node].0 as usize] = true;
            }
        }
        is_used[0] = true;
        let mut nodes: Vec<(Node, u32)> = vec![(0, 0)];
        let mut new_node: Vec<Node> = vec![0; self.nodes.len()];
        let mut new_frame: Vec<Option<u32>> = vec![None; self.frames.len()];
        let mut frames = Vec::new();
        for (node, &(caller, frame)) in
            self.nodes.iter().enumerate().skip(1).filter(|(node, _)| is_used[*node])
        {
            let frame = *new_frame[frame as usize].get_or_insert_with(|| {
                frames.push(std::mem::take(&mut self.frames[frame as usize]));
                frames.len() as u32 - 1
            });
            new_node[node] = nodes.len() as Node;
            nodes.push((new_node[caller as usize], frame));
        }
        self.rows.iter_mut().for_each(|row| row.stack = new_node[row.stack as usize]);
        (self.nodes, self.frames) = (nodes, frames);
    }

    /// Stack without its `away` innermost frames.
    fn caller(&self, stack: Node, away: u32) -> Node {
        (0..away).fold(stack, |stack, _| self.nodes.get(stack as usize).map_or(0, |&(caller, _)| caller))
    }

    /// Numbers of the frames of a stack, innermost first.
    pub(crate) fn frame_numbers(&self, stack: Node) -> impl Iterator<Item = u32> + '_ {
        let mut next = stack;
        std::iter::from_fn(move || {
            if next == 0 {
                return None;
            }
            let (caller, frame) = *self.nodes.get(next as usize)?;
            next = caller;
            Some(frame)
        })
    }
}

/// Identity of a frame: addresses of its texts, its line and offset. A report holds each text once,
/// so equal addresses mean equal texts.
type FramePlace = (usize, usize, usize, u32, u64);

#[derive(Default)]
struct SamplesBuilder {
    samples: Samples,
    frame_of: MixedMap<FramePlace, u32>,
    /// Frames by their texts, as different addresses may have equal texts: for example, two modules
    /// of one path.
    frame_of_text: HashMap<SampleFrame, u32>,
    node_of: MixedMap<(Node, u32), Node>,
}

impl SamplesBuilder {
    fn step(&mut self, caller: Node, view: &FrameView<'_>) -> Node {
        let frame = self.frame(view);
        self.node(caller, frame)
    }

    fn frame(&mut self, view: &FrameView<'_>) -> u32 {
        let place = |text: Option<&str>| text.map_or(0, |text| text.as_ptr() as usize);
        let offset = if view.symbol.is_some() { 0 } else { view.offset };
        let key = (place(view.module), place(view.symbol), place(view.file), view.line.unwrap_or(0), offset);
        if let Some(&known) = self.frame_of.get(&key) {
            return known;
        }
        let frame = SampleFrame::new(view);
        let number = match self.frame_of_text.get(&frame) {
            Some(&known) => known,
            None => {
                let number = self.new_frame(frame.clone());
                self.frame_of_text.insert(frame, number);
                number
            }
        };
        self.frame_of.insert(key, number);
        number
    }

    fn new_frame(&mut self, frame: SampleFrame) -> u32 {
        self.samples.frames.push(frame);
        self.samples.frames.len() as u32 - 1
    }

    fn node(&mut self, caller: Node, frame: u32) -> Node {
        let nodes = &mut self.samples.nodes;
        *self.node_of.entry((caller, frame)).or_insert_with(|| {
            nodes.push((caller, frame));
            nodes.len() as Node - 1
        })
    }
}
