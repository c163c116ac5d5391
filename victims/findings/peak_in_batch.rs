//! A batch that joins two tables in memory in one of its steps.
// build: rust
// finding: peak in join_tables
mod pace;

#[inline(never)]
fn join_tables() -> usize {
    let left: Vec<String> = (0..15_000).map(|row| format!("left row {row} of the table that is joined")).collect();
    let right: Vec<String> = (0..15_000).map(|row| format!("right row {row} of the table that is joined")).collect();
    left.iter().zip(&right).filter(|(left, right)| left.len() == right.len()).count()
}

#[inline(never)]
fn step(number: usize) -> usize {
    vec![number; 3000].len()
}

fn main() {
    let mut sum = 0;
    for number in 0..600 {
        sum += step(number);
        if number == 250 {
            sum += join_tables();
        }
        pace::pace(number, 600);
    }
    println!("{sum}");
}
