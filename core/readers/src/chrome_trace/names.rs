//! Each text once.

use std::collections::HashMap;
use std::sync::Arc;

/// Texts by number; number 0 is the empty text.
#[derive(Debug)]
pub(super) struct InternedNames {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    n_bytes: usize,
}

impl InternedNames {
    pub(super) fn new() -> Self {
        let mut names = Self {
            texts: Vec::new(),
            numbers: HashMap::new(),
            n_bytes: 0,
        };
        names.number("");
        names
    }

    pub(super) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(0);
        let text: Arc<str> = text.into();
        self.n_bytes += text.len() + 120;
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    pub(super) fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", |text| text)
    }

    /// About how many bytes they take.
    pub(super) const fn n_bytes(&self) -> usize {
        self.n_bytes
    }
}
