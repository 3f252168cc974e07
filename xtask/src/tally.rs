//! How many tests a runner ran, from what it prints.

use std::fmt;
use std::ops::AddAssign;
use std::process::ExitCode;

/// Tests by how they ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Tally {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
    /// Of those that passed, how many did so in a second try only.
    pub(crate) second: u32,
}

impl Tally {
    pub(crate) const ONE_PASSED: Self = Self::new(1, 0, 0);
    pub(crate) const ONE_FAILED: Self = Self::new(0, 1, 0);
    pub(crate) const ONE_SKIPPED: Self = Self::new(0, 0, 1);

    pub(crate) const fn new(passed: u32, failed: u32, skipped: u32) -> Self {
        Self {
            passed,
            failed,
            skipped,
            second: 0,
        }
    }

    /// Counts as passed what failed when the machine was busy, and passed alone.
    pub(crate) fn passed_alone(&mut self) {
        self.second = self.failed;
        self.passed += self.failed;
        self.failed = 0;
    }

    /// Adds up the `test result:` lines of `cargo test`, one for each binary.
    pub(crate) fn from_cargo(printed: &str) -> Self {
        sum(printed
            .lines()
            .filter(|line| line.starts_with("test result:")))
    }

    /// Reads the last line of pytest that says how long it took.
    pub(crate) fn from_pytest(printed: &str) -> Self {
        sum(printed.lines().rfind(|line| line.contains(" in ")))
    }

    /// Adds up the `# pass 3` lines of `node --test`.
    pub(crate) fn from_node(printed: &str) -> Self {
        sum(printed.lines().filter(|line| line.starts_with("# ")))
    }

    /// What the process that ran them ends with.
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(u8::from(self.failed > 0))
    }
}

/// Every `12 passed` and `pass 12` of lines.
fn sum<'a>(lines: impl IntoIterator<Item = &'a str>) -> Tally {
    let mut tally = Tally::default();
    for line in lines {
        let words = line.split(|c: char| !c.is_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            // `node` names a number before it.
            let (number, word) = if line.starts_with('#') {
                (pair[1], pair[0])
            } else {
                (pair[0], pair[1])
            };
            let Ok(n) = number.parse::<u32>() else {
                continue;
            };
            match word {
                "passed" | "pass" => tally.passed += n,
                "failed" | "fail" | "error" | "errors" => tally.failed += n,
                "skipped" | "ignored" | "xfailed" => tally.skipped += n,
                _ => {}
            }
        }
    }
    tally
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.second += other.second;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        if self.second > 0 {
            write!(f, ", {} in a second try", self.second)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runner_is_counted() {
        let check = |tally: Tally, expected: &str| assert_eq!(tally.to_string(), expected);
        let cargo = "running 2 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; finished in 0.00s\n\
            test result: FAILED. 3 passed; 1 failed; 0 ignored; 7 filtered out\n";
        check(Tally::from_cargo(cargo), "5 passed, 1 failed, 1 skipped");
        let broken = "error: could not compile";
        check(Tally::from_cargo(broken), "0 passed, 0 failed");
        let pytest = "3 passed in 1s\n1 failed, 2 passed, 3 skipped, 1 xfailed, 2 errors in 1.0s\n";
        check(Tally::from_pytest(pytest), "2 passed, 3 failed, 4 skipped");
        let none = "3 passed\nno tests ran in 0.01s\n\n";
        check(Tally::from_pytest(none), "0 passed, 0 failed");
        let node = "# tests 4\n# pass 3\n# fail 1\n# skipped 0\n";
        check(Tally::from_node(node), "3 passed, 1 failed");
        let mut busy = Tally::new(2, 1, 0);
        busy.passed_alone();
        check(busy, "3 passed, 0 failed, 1 in a second try");
    }
}
