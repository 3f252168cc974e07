//! The rules of this repository that a compiler does not know.

mod crates;
mod declared;
mod layers;
mod pages;
mod sources;

use sources::{dependencies, files, lines, linked, notebooks, text};

const MACHINE: [&str; 4] = ["pyo3", "cudarc", "nvml-wrapper", "rusqlite"];
const PAGE: [&str; 3] = ["wasm-bindgen", "js-sys", "web-sys"];
const OUTSIDE: [&str; 5] = [
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
];
const CLOCKS: [&str; 2] = ["Instant::", "SystemTime"];
const HTML: [&str; 4] = [
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "set_inner_html",
];
const LATER: [&str; 6] = ["TODO", "FIXME", "XXX", "todo!(", "unimplemented!(", "dbg!("];
/// Shows on GitHub what the quickstart prints.
const WITH_OUTPUTS: &str = "notebooks/quickstart-with-outputs.ipynb";
const HOMES: [&str; 4] = ["/home/", "/root/", "/Users/", "C:\\Users"];
const FIXED_WAITS: [&str; 2] = ["wait_for_timeout", "networkidle"];
const EMPTY_WORDS: [&str; 6] = ["util", "utils", "helper", "helpers", "manager", "misc"];
/// What `analyze` decides with: the extension hands over recordings, and gets findings.
const VERDICTS: [&str; 2] = ["classify_growth(", "classify_allocator("];
/// A text for people that something depends on.
const COMPARED_WORDS: [&str; 3] = ["words() ==", ".words ==", "== words()"];
/// Items of a module: the compiler warns of those that no other crate can reach.
const UNSAFE: [&str; 4] = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
const NO_REASONS: [&str; 3] = ["SAFETY: as above", "SAFETY: likewise", "SAFETY: the same"];

#[test]
fn core_knows_no_machine_and_no_page() {
    for package in crates::of_core() {
        dependencies(&package).among(&MACHINE).none();
        dependencies(&package).among(&PAGE).none();
    }
}

#[test]
fn core_never_looks() {
    for package in crates::of_core() {
        let sources = format!("{}/src/", crates::folder(&package));
        lines(&sources).with_any(&OUTSIDE).none();
        lines(&sources).with_any(&CLOCKS).none();
    }
}

#[test]
fn each_crate_of_core_shows_its_use() {
    for package in crates::of_core() {
        let text = text(&format!("{}/src/lib.rs", crates::folder(&package)));
        assert!(text.contains("\n//! ```\n"), "{package} shows no use");
    }
}

#[test]
fn crates_of_core_depend_on_those_before_them() {
    assert_eq!(crates::upward(), [""; 0]);
}

#[test]
fn the_report_knows_no_file_of_others() {
    dependencies("gpumem-widget")
        .among(&["gpumem-readers", "gpumem-explorer"])
        .none();
}

#[test]
fn the_extension_knows_no_page() {
    dependencies("gpumem-pybind").among(&PAGE).none();
    dependencies("gpumem-pybind")
        .among(&["gpumem-widget"])
        .none();
}

#[test]
fn the_widget_knows_no_machine() {
    dependencies("gpumem-widget").among(&MACHINE).none();
    dependencies("gpumem-widget")
        .among(&["gpumem-pybind"])
        .none();
}

#[test]
fn wings_of_the_extension_use_those_before_them() {
    assert_eq!(layers::upward(), [""; 0]);
}

#[test]
fn modules_of_a_crate_of_core_use_each_other_in_no_circle() {
    for package in crates::of_core() {
        let circles = layers::circles(&format!("{}/src", crates::folder(&package)));
        assert_eq!(circles, [""; 0], "{package}");
    }
}

/// `cargo xtask findings` sets it: the files are written anew.
const WRITES: &str = "GPUMEM_WRITE_FINDINGS";

#[test]
fn what_others_read_of_findings_and_runs_is_what_the_code_declares() {
    for (path, declared) in declared::files() {
        if std::env::var_os(WRITES).is_some() {
            std::fs::write(sources::root().join(path), declared).expect("it can be written");
        } else {
            let is_as_declared = text(path) == declared;
            assert!(is_as_declared, "{path}: `cargo xtask findings` writes it");
        }
    }
}

#[test]
fn every_crate_in_the_wheel_has_its_notice() {
    let notices = text("LICENSE-THIRD-PARTY");
    for package in ["gpumem-pybind", "gpumem-widget", "gpumem-files-page"] {
        linked(package).unless_named_in(&notices).none();
    }
}

#[test]
fn the_extension_passes_no_verdict() {
    lines("pybind/")
        .in_code()
        .with_any(&VERDICTS)
        .outside("pybind/python/")
        .outside("pybind/src/python/growth.rs")
        .none();
    lines("pybind/")
        .in_code()
        .with_any(&["Rules::default()"])
        .outside("pybind/python/")
        .outside("pybind/src/python/rules.rs")
        .none();
    lines("pybind/src/recording/recorder")
        .in_code()
        .with_any(&["gpumem_analyzer"])
        .unless_with("gpumem_analyzer::inspection")
        .none();
}

#[test]
fn the_widget_decides_by_no_kind_of_finding_and_by_no_word() {
    // What is drawn below a finding differs from kind to kind.
    lines("widget/src/")
        .in_code()
        .with_any(&["FindingKind::", "PartKind::"])
        .outside("widget/src/card_details/")
        .none();
    lines("widget/src/")
        .in_code()
        .with_any(&COMPARED_WORDS)
        .none();
    lines("widget/src/")
        .in_code()
        .with_any(&["DeviceKind::Host"])
        .none();
}

#[test]
fn charts_tell_parts_apart_by_no_word() {
    for drawn in ["scene", "charts", "explorer"] {
        lines(&format!("core/{drawn}/src/"))
            .in_code()
            .with_any(&COMPARED_WORDS)
            .none();
    }
}

#[test]
fn only_one_source_names_cudarc() {
    lines(".rs")
        .in_code()
        .with_any(&["cudarc"])
        .outside("pybind/machine/src/sources/cuda.rs")
        .none();
}

#[test]
fn only_one_source_names_nvml_wrapper() {
    lines(".rs")
        .in_code()
        .with_any(&["nvml_wrapper"])
        .outside("pybind/machine/src/sources/nvml.rs")
        .none();
}

#[test]
fn only_nsights_database_names_sqlite() {
    lines(".rs")
        .in_code()
        .with_any(&["rusqlite"])
        .outside("pybind/src/python/nsight/database.rs")
        .none();
}

#[test]
fn only_the_extension_played_cuda_and_fuzzers_are_unsafe() {
    // The first calls C, the second is called as C, the third counts what is allocated.
    lines(".rs")
        .in_code()
        .with_any(&UNSAFE)
        .outside("pybind/")
        .outside("tests/played-cuda/")
        .outside("tests/fuzz/src/counted.rs")
        .none();
}

#[test]
fn what_is_unsafe_says_why_it_is_sound() {
    for folder in ["pybind/", "tests/played-cuda/", "tests/fuzz/"] {
        lines(folder)
            .in_code()
            .with_any(&UNSAFE)
            .unless_above("SAFETY:")
            .none();
        lines(folder).with_any(&NO_REASONS).none();
    }
}

#[test]
fn every_exception_to_a_lint_has_its_reason() {
    lines(".rs")
        .in_code()
        .with_any(&["[allow(", "[expect("])
        .unless_in_attribute("reason =")
        .none();
    lines(".py").with_any(&["# noqa"]).unless_with(" (").none();
}

#[test]
fn the_page_never_parses_text_as_html() {
    lines("js/").with_any(&HTML).none();
    lines("widget/src/").with_any(&HTML).none();
}

#[test]
fn a_test_of_the_page_waits_for_what_it_awaits() {
    lines("tests/browser/").with_any(&FIXED_WAITS).none();
}

#[test]
fn notebooks_are_stored_without_outputs() {
    notebooks().with_outputs().outside(WITH_OUTPUTS).none();
}

#[test]
fn nothing_is_left_for_later() {
    // A picture in base64 has any letters.
    let letters = lines("").outside("Cargo.lock").outside(WITH_OUTPUTS);
    letters.with_any(&LATER).none();
}

#[test]
fn nothing_names_a_folder_of_one_machine() {
    lines("")
        .with_any(&HOMES)
        .outside("tests/packaging/test_contents.py")
        .none();
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    assert_eq!(pages::dead_links(), [""; 0]);
}

#[test]
fn the_readme_has_only_links_that_pypi_can_follow() {
    assert_eq!(pages::relative_links("README.md"), [""; 0]);
}

#[test]
fn every_page_of_the_docs_is_linked_to() {
    assert_eq!(pages::unlinked("docs/"), [""; 0]);
}

#[test]
fn a_name_says_more_than_that_it_helps() {
    files("").named_any(&EMPTY_WORDS).none();
}

#[test]
fn the_compiler_is_the_users_own() {
    files("").named_any(&["rust-toolchain"]).none();
}
