//! Messages that real frameworks wrote, from a folder beside the repository.
//!
//! `GPUMEM_REAL_DATA` names the folder; without it the test says that it had nothing to read.

use std::fs;
use std::path::{Path, PathBuf};

use gpumem_model::recording::Framework;
use gpumem_readers::oom::{OomMessage, parse};
use serde_json::Value;

fn messages() -> Vec<(String, String)> {
    let chosen = std::env::var_os("GPUMEM_REAL_DATA").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let file = chosen
        .unwrap_or_else(beside)
        .join("oom_messages/oom_messages.jsonl");
    let Ok(lines) = fs::read_to_string(&file) else {
        println!("nothing to read: {} is not there", file.display());
        return Vec::new();
    };
    let word = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .map(|line: Value| (word(&line, "note"), word(&line, "text")))
        .collect()
}

#[test]
fn every_real_message_tells_who_asked_and_for_how_much() {
    for (note, text) in messages() {
        let told: OomMessage = parse(&text).unwrap_or_else(|| panic!("{note}: {text}"));
        let expected = match note.to_lowercase() {
            note if note.contains("jax") || note.contains("xla") => Framework::Jax,
            note if note.contains("tensorflow") => Framework::Tensorflow,
            note if note.contains("cupy") => Framework::Cupy,
            note if note.contains("rmm") => Framework::Rmm,
            note if note.contains("numba") => Framework::Numba,
            _ => Framework::Torch,
        };
        assert_eq!(told.framework, Some(expected), "{note}");
        let tells_size = text.to_lowercase().contains("allocat") && text.contains(['b', 'B']);
        assert_eq!(told.figures.wanted.is_some(), tells_size, "{note}: {text}");
    }
}

#[test]
fn what_real_messages_of_pytorch_say_adds_up() {
    for (note, text) in messages() {
        let told: OomMessage = parse(&text).expect("of memory");
        let figures = told.figures;
        if let (Some(allocated), Some(unallocated), Some(reserved)) =
            (figures.allocated, figures.unallocated, figures.reserved)
        {
            assert_eq!(allocated + unallocated, reserved, "{note}");
        }
        let parts = [figures.free, figures.allocated, figures.private_pools];
        for part in parts.into_iter().flatten() {
            assert!(
                figures.total.is_none_or(|total| part <= total),
                "{note}: {part}"
            );
        }
        assert!(!told.device.as_deref().is_some_and(str::is_empty), "{note}");
    }
}
