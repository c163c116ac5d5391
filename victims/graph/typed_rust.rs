// Rust's containers without symbols; a variable holds each. The only reference to a table leads
// behind its elements, and is a sure one all the same.
// types: elements of Vec or the like (by its shape)
// types: text of String or the like (by its shape)
// types: table of HashMap (by its shape)
// types: shared by Arc or the like (by its shape)
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

#[derive(Clone)]
struct Point(u64, u64, u64);

struct Held {
    points: Vec<Point>,
    text: String,
    table: HashMap<u64, u64>,
    shared: Vec<Arc<[u64; 5]>>,
}

#[inline(never)]
fn build() -> Box<Held> {
    let one = Arc::new([7; 5]);
    Box::new(Held {
        points: (0..100).map(|number| Point(number, 1, 2)).collect(),
        text: "text ".repeat(50),
        table: (0..1000).map(|number| (number, number)).collect(),
        shared: (0..6).map(|_| Arc::clone(&one)).collect(),
    })
}

static HELD: std::sync::OnceLock<Box<Held>> = std::sync::OnceLock::new();

fn main() {
    let held = HELD.get_or_init(build);
    let sum = held.points.len() + held.text.len() + held.table.len() + held.shared.len();
    let mut out = std::io::stdout();
    let _ = writeln!(out, "ready {}", std::process::id() as usize + sum - sum);
    let _ = out.flush();
    loop {
        std::thread::park();
    }
}
