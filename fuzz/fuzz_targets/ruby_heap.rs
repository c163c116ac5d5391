//! Fuzzes the memory of a Ruby: its heap is read or refused, and is bounded by the memory.
//!
//! `cargo xtask fuzz ruby_heap`: which words of the memory of the installed `ruby` are other ones.
#![no_main]

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};

use heapr_managed::{Contents, HeapRequest, Interpreter, ManagedHeap, write_snapshot};
use heapr_native::Memory;
use heapr_proc::Mapping;
use libfuzzer_sys::fuzz_target;

/// Objects of each kind, with variables, a thread and a fiber.
const PROGRAM: &str = "
    Line = Struct.new(:cart, :text, :count, :more)
    class Cart; @@all = []; def initialize; @lines = {}; @owner = 'x' * 90; @@all << self; end
      def add(n) = @lines[n] = Line.new(self, \"line #{n}\", n, [n] * 9); end
    20.times { |n| cart = Cart.new; 12.times { |k| cart.add(k) }; cart.instance_variable_set(:\"@v#{n}\", n.to_s) }
    $procs = 5.times.map { |n| text = n.to_s; -> { text } }
    fiber = Fiber.new { local = [2**99, 1.5, /a#{1}/, :sym, 1..2]; Fiber.yield local }; fiber.resume
    thread = Thread.new { Thread.current[:jobs] = [1]; sleep }
    $stdout.puts 'ready'; $stdout.flush; $stdin.read
";

/// Memory of a Ruby that stood still, of which some words are others.
struct Bent {
    mappings: Vec<Mapping>,
    contents: Vec<(u64, Vec<u8>)>,
    /// Addresses of objects.
    objects: Vec<u64>,
    words: HashMap<u64, u64>,
}

impl Bent {
    fn new() -> Self {
        let mut program = Command::new("ruby")
            .args(["--disable-gems", "-e", PROGRAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ruby is installed");
        let mut line = String::new();
        BufReader::new(program.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let pid = program.id();
        let mappings = heapr_proc::mappings::read(pid).expect("its mappings");
        let memory = File::open(format!("/proc/{pid}/mem")).expect("its memory");
        let mut contents = Vec::new();
        for mapping in mappings.iter().filter(|mapping| mapping.is_readable) {
            let mut bytes = vec![0; (mapping.end_avma - mapping.start_avma).min(64 << 20) as usize];
            let count = memory.read_at(&mut bytes, mapping.start_avma).unwrap_or(0);
            bytes.truncate(count);
            contents.push((mapping.start_avma, bytes));
        }
        let _ = program.kill();
        let _ = program.wait();
        let mut bent = Self { mappings, contents, objects: Vec::new(), words: HashMap::new() };
        let heap = bent.read_heap().expect("a Ruby in order");
        bent.objects = heap.nodes.iter().map(|node| node.address_avma).collect();
        bent
    }

    fn read_heap(&self) -> heapr_managed::Result<ManagedHeap> {
        Interpreter::Ruby.read(&HeapRequest {
            memory: self,
            mappings: &self.mappings,
            blocks: &[],
            contents: Contents::Strings,
            goes_on: &|| true,
        })
    }

    /// Changes words as bytes say: four of an object, one of the word in it and of a kind, eight of a
    /// value each. Few of them: most would only end the reading early.
    fn bend(&mut self, bytes: &[u8]) {
        self.words.clear();
        let object = |number: u64| self.objects[(number % self.objects.len() as u64) as usize];
        for edit in bytes.as_chunks::<13>().0 {
            let place = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]);
            let value = u64::from_le_bytes(*edit.last_chunk().expect("eight bytes"));
            let at = object(place.into()) / 8 * 8 + u64::from(edit[4] >> 3) % 5 * 8;
            // A word of the objects' structures, instead of one of their own.
            let at = if edit[4] & 0x80 == 0 { at } else { self.word(at) / 8 * 8 + value % 64 * 8 };
            let word = match edit[4] & 7 {
                0 | 1 => object(value),
                2 => value,
                3 => value & 0xffff,
                4 => u64::MAX - (value & 0xff),
                5 => at.wrapping_add(value & 0xfff),
                6 => self.word(at) ^ 1 << (value & 63),
                _ => self.word(object(value) / 8 * 8),
            };
            self.words.insert(at, word);
        }
    }

    fn word(&self, avma: u64) -> u64 {
        let mut bytes = [0; 8];
        self.read(avma, &mut bytes);
        u64::from_le_bytes(bytes)
    }
}

impl Memory for Bent {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        let behind = self.contents.partition_point(|&(start_avma, _)| start_avma <= address_avma);
        let Some((start_avma, bytes)) = behind.checked_sub(1).map(|at| &self.contents[at]) else { return 0 };
        let Some(rest) = bytes.get((address_avma - start_avma) as usize..) else { return 0 };
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        for (&at_avma, word) in &self.words {
            for (number, byte) in word.to_le_bytes().into_iter().enumerate() {
                let place = at_avma.wrapping_add(number as u64).wrapping_sub(address_avma);
                if let Some(at) = usize::try_from(place).ok().and_then(|at| into[..count].get_mut(at)) {
                    *at = byte;
                }
            }
        }
        count
    }
}

thread_local! {
    static BENT: std::cell::RefCell<Bent> = std::cell::RefCell::new(Bent::new());
}

fuzz_target!(|bytes: &[u8]| {
    BENT.with_borrow_mut(|bent| {
        bent.bend(&bytes[..bytes.len().min(13 * 64)]);
        let Ok(mut heap) = bent.read_heap() else { return };
        let word_count: usize = bent.contents.iter().map(|(_, bytes)| bytes.len() / 8).sum();
        assert!(heap.edges.len() <= 4 * word_count && heap.nodes.len() <= word_count);
        let _ = write_snapshot(&mut heap, &mut std::io::sink());
    });
});
