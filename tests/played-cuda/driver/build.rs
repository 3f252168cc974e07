//! Gives the library the name by which it is looked for, and lets it use its own functions
//! whatever else a process has loaded.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1,-Bsymbolic");
    }
}
