// subscribers that go away before they have read all; the publisher still knows where to send
use crossbeam_channel::{unbounded, Sender};
#[inline(never)]
fn serve_subscriber(known: &mut Vec<Sender<[u64; 16]>>, id: u64) {
    let (sender, receiver) = unbounded();
    for n in 0..200 { let _ = sender.send([id + n; 16]); }
    receiver.recv().unwrap();
    known.push(sender);
}
fn main() {
    let n: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut known = Vec::new();
    for id in 0..n {
        serve_subscriber(&mut known, id);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    println!("{}", known.len());
}
