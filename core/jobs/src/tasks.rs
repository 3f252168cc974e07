//! What dask's tasks are called.
//!
//! ```
//! assert_eq!(gpumem_jobs::tasks::prefix("train_step-7d5c4a2b9e1f00aa"), "train_step");
//! ```

/// The name that dask gives all tasks of a kind, as its `key_split` has it: the words before the first one that is no name.
pub fn prefix(key: &str) -> &str {
    let mut end = 0;
    let mut start = 0;
    for word in key.split('-') {
        let is_hash = word.len() == 8 && word.chars().all(|c| c.is_ascii_hexdigit());
        let is_name = !word.is_empty() && word.chars().all(char::is_alphabetic) && !is_hash;
        if start > 0 && !is_name {
            break;
        }
        end = start + word.len();
        start = end + 1;
    }
    &key[..end]
}

#[cfg(test)]
mod tests {
    use super::prefix;

    #[test]
    fn prefixes_are_dasks() {
        for (key, expected) in [
            ("train_step-7d5c4a2b9e1f00aa", "train_step"),
            ("train_step-0", "train_step"),
            ("read-csv-0123456789abcdef0123456789abcdef", "read-csv"),
            ("x", "x"),
            ("", ""),
        ] {
            assert_eq!(prefix(key), expected);
        }
    }
}
