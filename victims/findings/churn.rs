//! A serializer that makes a string of its own for each field and drops it at once.
// build: rust
// finding: churn in escape_field
mod pace;

#[inline(never)]
fn escape_field(number: usize) -> usize {
    let field = format!("{number}\\n");
    field.len()
}

fn main() {
    let mut sum = 0;
    let table = vec![1_u8; 100_000];
    for number in 0..250_000 {
        sum += escape_field(number);
        pace::pace(number, 250_000);
    }
    println!("{}", sum + table.len());
}
