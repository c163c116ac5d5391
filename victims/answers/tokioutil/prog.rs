// serves requests, each with a token of its own for its part of the work
use tokio_util::sync::CancellationToken;
#[inline(never)]
fn serve_request(n: u64) -> u64 {
    let request = CancellationToken::new();
    let part = request.child_token().child_token();
    request.cancel();
    u64::from(part.is_cancelled()) + n % 2
}
fn main() {
    let n: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut sum = 0;
    for k in 0..n {
        sum += serve_request(k);
        if k % 200 == 0 { std::thread::sleep(std::time::Duration::from_millis(1)); }
    }
    println!("{sum}");
}
