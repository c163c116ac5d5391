//! A registry that keeps a copy of every event it has seen, among work that frees all it allocates.
// build: rust
// finding: growth in remember_event
mod pace;

struct Event {
    name: String,
    payload: Vec<u8>,
}

#[inline(never)]
fn remember_event(seen: &mut Vec<Box<Event>>, number: usize) {
    seen.push(Box::new(Event { name: format!("an event of the number {number}"), payload: vec![7; 800] }));
}

#[inline(never)]
fn handle(number: usize) -> usize {
    let words: Vec<String> = (0..15).map(|word| format!("a word {word} of the request {number}")).collect();
    words.iter().map(String::len).sum()
}

fn main() {
    let mut seen = Vec::new();
    let mut sum = 0;
    for number in 0..8000 {
        sum += handle(number);
        if number % 3 == 0 {
            remember_event(&mut seen, number);
        }
        pace::pace(number, 8000);
    }
    sum += seen.iter().map(|event| event.name.len() + event.payload.len()).sum::<usize>();
    println!("{sum}");
}
