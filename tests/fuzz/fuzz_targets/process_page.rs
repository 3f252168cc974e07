#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpumem_fuzz::read("process_page", bytes));
