//! A cache of translations by a key that never comes again.
// build: rust
// finding: growth in Translations::translate
mod pace;

use std::collections::HashMap;

struct Translations {
    known: HashMap<String, String>,
}

impl Translations {
    #[inline(never)]
    fn translate(&mut self, text: String) -> usize {
        if let Some(known) = self.known.get(&text) {
            return known.len();
        }
        let translated = text.to_uppercase().repeat(20);
        let length = translated.len();
        self.known.insert(text, translated);
        length
    }
}

fn main() {
    let mut translations = Translations { known: HashMap::new() };
    let mut sum = 0;
    for number in 0..5000_usize {
        let key = if number % 4 == 0 { number } else { number % 30 };
        sum += translations.translate(format!("a sentence to be translated, {key}"));
        pace::pace(number, 5000);
    }
    println!("{sum}");
}
