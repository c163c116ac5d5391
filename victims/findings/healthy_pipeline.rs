//! A pipeline whose queue holds at most a hundred items: nothing grows, nothing stands out.
// build: rust
// finding: none
mod pace;

use std::collections::VecDeque;

struct Item {
    body: Vec<u8>,
}

#[inline(never)]
fn produce(queue: &mut VecDeque<Item>, number: usize) {
    queue.push_back(Item { body: vec![number as u8; 500 + number % 300] });
}

#[inline(never)]
fn consume(queue: &mut VecDeque<Item>) -> usize {
    queue.pop_front().map_or(0, |item| item.body.len())
}

fn main() {
    let mut queue = VecDeque::new();
    let mut sum = 0;
    for number in 0..9000 {
        produce(&mut queue, number);
        if queue.len() > 100 {
            sum += consume(&mut queue);
        }
        pace::pace(number, 9000);
    }
    println!("{sum}");
}
