//! The real torch on a played CUDA: its allocator, its statistics and its errors, without a GPU.

use anyhow::Result;

use super::{Ran, SIDE_BY_SIDE, Setting, is_without_frameworks, tests_in, without_frameworks};
use crate::played::{self, Driver};
use crate::tally::Tally;
use crate::wheel::Use;

const WHAT_IT_IS: &str = "the real torch on a played CUDA: levels and errors are torch's own, \
    computed numbers are garbage\n\
    it replaces no GPU: run `cargo xtask test gpu` on a machine that has one, too";

/// What runs on the newest torch, and on the older one: there nothing that needs the tensors that a graph
/// keeps, which torch 2.8 shows only to who unpacks them, nor torch's newer statistics.
const TESTS: [&[&str]; 2] = [
    &["tests/cuda", "tests/gallery"],
    &[
        "tests/cuda/test_faults.py",
        "tests/cuda/test_fragmentation.py",
        "tests/cuda/test_levels.py",
        "tests/cuda/test_observer.py",
        "tests/cuda/test_oom.py",
        "tests/cuda/test_played.py",
        "tests/cuda/test_trace.py",
        "tests/cuda/test_others.py",
        "tests/cuda/test_runs.py",
        "tests/cuda/test_allocators.py::test_a_graph_keeps_its_pool_and_a_replay_keeps_nothing",
        "tests/cuda/test_release.py::test_every_step_in_turn",
    ],
];

pub(super) fn run(setting: &Setting<'_>) -> Result<Ran> {
    println!("{WHAT_IT_IS}");
    if is_without_frameworks() {
        return Ok(without_frameworks());
    }
    let project = setting.project;
    let driver = Driver::build(project)?.filter(|_| played::CAN_BE_LINKED);
    let Some(driver) = driver else {
        let reason = "torch for CUDA is for Linux on x86-64";
        return Ok(Ran::Nothing(reason.to_owned()));
    };
    let wheel = setting.wheel(Use::Testing)?;
    let mut sum = Tally::default();
    for (installation, tests) in setting.cuda.iter().zip(TESTS) {
        let environment = match installation.environment() {
            Ok(Some(environment)) => environment,
            Ok(None) => return Ok(without_frameworks()),
            Err(error) => return Ok(Ran::Nothing(cannot_be_had(&error))),
        };
        environment.install(project, &wheel)?;
        played::furnish(project, environment)?;
        println!(
            "torch {} on Python 3.{}",
            environment.installed_version("torch")?,
            environment.minor()
        );
        let path = environment.search_path_after(driver.programs());
        let mut variables = driver.variables().to_vec();
        variables.push(("LD_LIBRARY_PATH", driver.libraries().as_os_str()));
        variables.push(("PATH", &path));
        let options = [&["-p", "tests.cuda.on_played", "-rs"], &SIDE_BY_SIDE[..]].concat();
        let paths = [tests, &["-k", "cuda"]].concat();
        sum += tests_in(setting, environment, &options, &paths, &variables)?;
    }
    Ok(Ran::Tests(sum))
}

/// Without the wheel there is nothing to test; what pip said last is the reason.
fn cannot_be_had(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    format!(
        "a wheel of torch could not be had: {}",
        last.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_for_a_missing_wheel_is_one_line() {
        let error = anyhow::anyhow!("pip ended with exit status: 1\nlooking\nERROR: no torch\n");
        assert_eq!(
            cannot_be_had(&error),
            "a wheel of torch could not be had: ERROR: no torch"
        );
    }
}
