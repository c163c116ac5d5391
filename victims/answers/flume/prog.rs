// polls a stream of orders between other work
use futures::{FutureExt, StreamExt};
use std::time::Duration;
#[inline(never)]
fn poll_orders(orders: &mut flume::r#async::RecvStream<'_, u64>) -> bool {
    orders.next().now_or_never().flatten().is_some()
}
fn main() {
    let rounds: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let (_sender, receiver) = flume::unbounded::<u64>();
    let mut orders = receiver.into_stream();
    for n in 0..rounds {
        poll_orders(&mut orders);
        if n % 200 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
