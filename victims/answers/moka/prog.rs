// remembers who is logged in, and forgets them when they leave
use moka::unsync::Cache;
#[inline(never)]
fn serve_visit(visitors: &mut Cache<String, u32>, number: u32) {
    let name = format!("visitor number {number} of this day, by name");
    visitors.insert(name.clone(), number);
    if visitors.get(&name).is_some() { visitors.invalidate(&name); }
}
fn main() {
    let n: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut visitors = Cache::new(1000);
    for number in 0..n {
        serve_visit(&mut visitors, number);
        if number % 100 == 0 { std::thread::sleep(std::time::Duration::from_millis(1)); }
    }
    println!("{}", visitors.get(&String::new()).is_none());
}
