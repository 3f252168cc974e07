//! Every suite, two at a time, and what they ran together.

mod suites;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};

use crate::played::{self, PlayedDriver};
use crate::project::Project;
use crate::python::Environment;
use crate::tally::Tally;
use crate::wheel::WheelPurpose;
use crate::{run, step, wheel};
use suites::{NEWEST, SUITES, TORCHES};

/// Tests that one runner runs.
struct Suite {
    name: &'static str,
    lane: Lane,
    run: fn(&SuiteContext<'_>) -> Result<Ran>,
}

/// What compiles runs one after the other, and beside it what waits: programs that are tested often do,
/// and compilers never. When all is compiled, two that wait run side by side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    Compiles,
    Waits,
}

/// What a suite did.
enum Ran {
    Tests(Tally),
    /// Nothing, because this machine cannot, with the reason.
    Nothing(String),
}

/// Made once, at first use; other threads wait for it.
struct Once<T>(OnceLock<Result<T, String>>);

impl<T> Once<T> {
    const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        let made = self
            .0
            .get_or_init(|| make().map_err(|error| format!("{error:#}")));
        made.as_ref().map_err(|error| anyhow!(error.clone()))
    }
}

/// What every suite is run with.
struct SuiteContext<'a> {
    project: &'a Project,
    /// For the runner of the one suite: which tests, and how.
    arguments: &'a [String],
    wheel: Once<PathBuf>,
    driver: Once<Option<PlayedDriver>>,
    /// Held while a wheel is installed: suites share environments.
    installing: Mutex<()>,
    torches: [Once<Environment>; 3],
}

/// An environment with a torch, installed while other suites run.
#[derive(Clone, Copy)]
enum TorchVariant {
    /// With JAX and TensorFlow, for the CPU.
    Frameworks,
    /// The newest for CUDA, without NVIDIA's packages.
    Cuda,
    /// One for CUDA 12.
    Cuda12,
}

impl SuiteContext<'_> {
    /// For a suite whose checks cannot be picked.
    fn without_arguments(&self) -> Result<&Project> {
        if !self.arguments.is_empty() {
            bail!("this suite takes nothing after `--`");
        }
        Ok(self.project)
    }

    fn wheel(&self) -> Result<&PathBuf> {
        self.wheel
            .get(|| wheel::build(self.project, WheelPurpose::Try))
    }

    fn driver(&self) -> Result<Option<&PlayedDriver>> {
        let driver = self.driver.get(|| PlayedDriver::build(self.project))?;
        Ok(driver.as_ref())
    }

    /// The private environment with the wheel in it.
    fn installed(&self) -> Result<Environment> {
        self.with_wheel(Environment::main(self.project)?)
    }

    fn with_wheel(&self, environment: Environment) -> Result<Environment> {
        let wheel = self.wheel()?;
        let _installing = locked(&self.installing);
        environment.install(self.project, wheel)?;
        Ok(environment)
    }

    /// An environment with torch and the wheel, or `None` if no framework is wanted.
    fn torch(&self, which: TorchVariant) -> Result<Option<Environment>> {
        if is_set(NO_FRAMEWORKS) {
            return Ok(None);
        }
        let environment = self.installation(which)?.clone();
        if !matches!(which, TorchVariant::Frameworks)
            && let Some(driver) = self.driver()?
        {
            driver.furnish(self.project, &environment)?;
        }
        self.with_wheel(environment).map(Some)
    }

    fn installation(&self, which: TorchVariant) -> Result<&Environment> {
        self.torches[which as usize].get(|| match which {
            TorchVariant::Frameworks => Environment::with(self.project, "frameworks"),
            TorchVariant::Cuda => Environment::with(self.project, "cuda"),
            TorchVariant::Cuda12 => Environment::cuda_12(self.project),
        })
    }
}

/// Set to this, the frameworks are not installed, and their suite is skipped.
const NO_FRAMEWORKS: (&str, &str) = ("GPUMEM_FRAMEWORKS", "none");

fn is_set((variable, value): (&str, &str)) -> bool {
    std::env::var_os(variable).is_some_and(|it| it == value)
}

fn without_frameworks() -> Ran {
    let (variable, value) = NO_FRAMEWORKS;
    Ran::Nothing(format!("{variable} is {value}"))
}

/// The names that `cargo xtask test` takes.
pub(crate) fn names() -> [&'static str; SUITES.len()] {
    SUITES.map(|suite| suite.name)
}

/// Runs the named suites, or all, also after one has failed.
pub(crate) fn run(project: &Project, chosen: &[String], arguments: &[String]) -> Result<ExitCode> {
    if let (true, [_, _, ..]) = (!arguments.is_empty(), chosen) {
        bail!("what stands after `--` is for one suite: name one");
    }
    let is_chosen = |suite: &&Suite| match chosen {
        [] => ![NEWEST, TORCHES].contains(&suite.name),
        names => names.iter().any(|name| name == suite.name),
    };
    let suites: Vec<&Suite> = SUITES.iter().filter(is_chosen).collect();
    let begun = Instant::now();
    let setting = SuiteContext {
        project,
        arguments,
        wheel: Once::new(),
        driver: Once::new(),
        installing: Mutex::new(()),
        torches: [const { Once::new() }; 3],
    };
    let results = SuiteResults::default();
    if let [suite] = suites[..] {
        results.add(suite, step::timed(suite.name, || (suite.run)(&setting)));
    } else {
        run_all(&setting, &suites, &results);
    }
    Ok(results.print(begun))
}

fn run_all(setting: &SuiteContext<'_>, suites: &[&Suite], results: &SuiteResults) {
    let is_compiling = |suite: &&Suite| suite.lane == Lane::Compiles;
    let (compiling, waiting): (Vec<_>, Vec<_>) = suites.iter().copied().partition(is_compiling);
    let waiting = &Mutex::new(VecDeque::from(waiting));
    thread::scope(|scope| {
        let needs = |names: &[&str]| suites.iter().any(|suite| names.contains(&suite.name));
        let torches = [
            (
                TorchVariant::Frameworks,
                needs(&["frameworks", "sessions", "museum", "harm"]),
            ),
            (TorchVariant::Cuda, needs(&["cuda", TORCHES])),
            (TorchVariant::Cuda12, needs(&[TORCHES])),
        ];
        let is_possible = !is_set(NO_FRAMEWORKS);
        for (torch, is_needed) in torches {
            let is_for_cuda = !matches!(torch, TorchVariant::Frameworks);
            if is_needed && is_possible && (played::CAN_BE_LINKED || !is_for_cuda) {
                scope.spawn(move || setting.installation(torch).map(drop));
            }
        }
        // All that is tested is compiled first: cargo lets only one use its folder.
        if !suites.iter().all(|suite| suite.lane == Lane::Compiles) {
            let _ = setting.wheel();
            let _ = setting.driver();
        }
        for first in [compiling, Vec::new()] {
            scope.spawn(move || {
                let next = || locked(waiting).pop_front();
                for suite in first.into_iter().chain(std::iter::from_fn(next)) {
                    eprintln!("{} runs", suite.name);
                    let run = || step::timed(suite.name, || (suite.run)(setting));
                    let (ran, printed) = run::keeping(run);
                    println!("\n== {} ==\n{printed}", suite.name);
                    results.add(suite, ran);
                }
            });
        }
    });
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the suites did, in the order in which they ended.
#[derive(Default)]
struct SuiteResults(Mutex<(Tally, Vec<String>)>);

impl SuiteResults {
    /// Counts what a suite did. One that broke, or ran nothing without saying why, has failed.
    fn add(&self, suite: &Suite, ran: Result<Ran>) {
        let (tally, reason) = judge(ran);
        let (sum, lines) = &mut *locked(&self.0);
        *sum += tally;
        lines.push(format!("{:<10} {tally}", suite.name));
        lines.extend(reason.map(|reason| format!("{}: {reason}", suite.name)));
    }

    fn print(self, begun: Instant) -> ExitCode {
        let (sum, lines) = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        println!("\n{}\n\n{}", step::times().join("\n"), lines.join("\n"));
        println!("{sum}, {:.0} s", begun.elapsed().as_secs_f64());
        sum.exit_code()
    }
}

fn judge(ran: Result<Ran>) -> (Tally, Option<String>) {
    match ran {
        Err(error) => (Tally::ONE_FAILED, Some(format!("{error:#}"))),
        Ok(Ran::Nothing(reason)) => (Tally::ONE_SKIPPED, Some(format!("skipped, {reason}"))),
        Ok(Ran::Tests(tally)) if tally.passed + tally.failed == 0 => {
            (Tally::ONE_FAILED, Some("ran no test".to_owned()))
        }
        Ok(Ran::Tests(tally)) => (tally, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_that_runs_nothing_has_failed_unless_it_says_why() {
        let check = |ran: Result<Ran>, expected: &str| {
            assert_eq!(judge(ran).0.to_string(), expected);
        };
        let tests = |passed, failed, skipped| Ok(Ran::Tests(Tally::new(passed, failed, skipped)));
        check(tests(3, 1, 0), "3 passed, 1 failed");
        check(tests(0, 0, 0), "0 passed, 1 failed");
        check(tests(0, 0, 5), "0 passed, 1 failed");
        let nothing = Ok(Ran::Nothing("no such program".to_owned()));
        check(nothing, "0 passed, 0 failed, 1 skipped");
        check(Err(anyhow!("did not compile")), "0 passed, 1 failed");
    }
}
