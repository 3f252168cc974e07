//! The rules of this repository that a compiler does not know, each on one line.

mod sources;

use sources::{Found, dependencies, files, lines, notebooks};

#[test]
fn core_knows_no_gpu_no_python_and_no_page() {
    none(dependencies("gpumem-core").among(&[
        "pyo3",
        "cudarc",
        "nvml-wrapper",
        "wasm-bindgen",
        "web-sys",
        "js-sys",
    ]));
}

#[test]
fn core_is_told_and_never_looks() {
    none(lines("core/src/").with_any(&[
        "std::fs",
        "std::env",
        "std::net",
        "std::process",
        "std::thread",
        "Instant",
        "SystemTime",
    ]));
}

#[test]
fn the_extension_knows_no_page() {
    none(dependencies("gpumem-pybind").among(&["gpumem-widget", "wasm-bindgen", "web-sys"]));
}

#[test]
fn the_widget_knows_no_python_and_no_gpu() {
    none(dependencies("gpumem-widget").among(&["gpumem-pybind", "pyo3", "cudarc", "nvml-wrapper"]));
}

#[test]
fn only_its_own_source_names_cudarc() {
    none(
        lines(".rs")
            .with_any(&["cudarc"])
            .outside(&["pybind/src/sources/cuda.rs"])
            .in_code(),
    );
}

#[test]
fn only_the_extension_is_unsafe() {
    none(
        lines(".rs")
            .with_any(&["unsafe "])
            .in_code()
            .outside(&["pybind/src/", "tests/fake-driver/"]),
    );
}

#[test]
fn what_is_unsafe_says_why_it_is_sound() {
    none(
        lines("pybind/src/")
            .with_any(&["unsafe {", "unsafe impl", "unsafe fn", "unsafe extern"])
            .in_code()
            .without_above("SAFETY:"),
    );
}

#[test]
fn every_exception_to_a_lint_has_its_reason() {
    none(
        lines(".rs")
            .with_any(&["[allow(", "[expect("])
            .in_code()
            .without_below("reason ="),
    );
    none(lines(".py").with_any(&["# noqa"]).without_same("("));
}

#[test]
fn the_page_never_parses_text_as_html() {
    let parsers = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "set_inner_html",
        "document.write",
        "eval(",
    ];
    none(lines("js/").with_any(&parsers));
    none(lines("widget/src/").with_any(&parsers));
}

#[test]
fn notebooks_are_stored_without_outputs() {
    none(notebooks().with_outputs());
}

#[test]
fn nothing_is_left_for_later() {
    none(
        lines("")
            .with_any(&["TODO", "FIXME", "XXX", "todo!(", "unimplemented!(", "dbg!("])
            .outside(&["Cargo.lock"]),
    );
}

#[test]
fn nothing_names_a_folder_of_one_machine() {
    none(lines("").with_any(&["/home/", "/Users/", "/root/", "C:\\Users"]));
}

#[test]
fn a_name_says_more_than_that_it_helps() {
    none(files("").named_any(&[
        "util", "utils", "helper", "helpers", "manager", "misc", "common",
    ]));
}

#[test]
fn the_compiler_is_the_users_own() {
    none(files("").named_any(&["rust-toolchain"]));
}

/// Fails with every place that breaks the rule.
#[track_caller]
fn none(found: Found) {
    assert!(found.is_empty(), "\n{found}\n");
}
