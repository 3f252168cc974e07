//! What the test runners say that they ran.

use std::fmt;
use std::ops::AddAssign;
use std::process::ExitCode;

/// Tests by how they ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Tally {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
}

impl Tally {
    /// Adds up the `test result:` lines of `cargo test`.
    pub(crate) fn of_cargo(said: &str) -> Self {
        said.lines()
            .filter(|line| line.starts_with("test result:"))
            .map(counts)
            .fold(Self::default(), |mut sum, counts| {
                sum += counts;
                sum
            })
    }

    /// Reads pytest's last line.
    pub(crate) fn of_pytest(said: &str) -> Self {
        said.lines()
            .rfind(|line| !line.trim().is_empty())
            .map(counts)
            .unwrap_or_default()
    }

    /// Reads the `# pass 3` lines of `node --test`.
    pub(crate) fn of_node(said: &str) -> Self {
        let count = |word: &str| {
            let numbers = said.lines().filter_map(|line| line.strip_prefix(word));
            numbers
                .filter_map(|number| number.trim().parse::<u32>().ok())
                .sum()
        };
        Self {
            passed: count("# pass "),
            failed: count("# fail "),
            skipped: count("# skipped "),
        }
    }

    /// What the process that ran them ends with.
    pub(crate) fn exit_code(self) -> ExitCode {
        if self.failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// Every `12 passed` of a line, whatever stands between them.
fn counts(line: &str) -> Tally {
    let mut tally = Tally::default();
    let words: Vec<&str> = line
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    for pair in words.windows(2) {
        let Ok(n) = pair[0].parse::<u32>() else {
            continue;
        };
        match pair[1] {
            "passed" => tally.passed += n,
            "failed" | "error" | "errors" => tally.failed += n,
            "skipped" | "ignored" | "xfailed" => tally.skipped += n,
            _ => {}
        }
    }
    tally
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tally: Tally, expected: &str) {
        assert_eq!(tally.to_string(), expected);
    }

    #[test]
    fn cargo_says_one_line_for_each_binary() {
        let said = "running 2 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s\n";
        check(Tally::of_cargo(said), "5 passed, 1 failed, 1 skipped");
        check(
            Tally::of_cargo("error: could not compile"),
            "0 passed, 0 failed",
        );
    }

    #[test]
    fn pytest_says_it_in_its_last_line() {
        check(
            Tally::of_pytest("..x\n12 passed in 0.50s\n"),
            "12 passed, 0 failed",
        );
        check(
            Tally::of_pytest("== 1 failed, 2 passed, 3 skipped, 1 xfailed, 2 errors in 1.0s =="),
            "2 passed, 3 failed, 4 skipped",
        );
        check(
            Tally::of_pytest("3 passed\nno tests ran in 0.01s\n\n"),
            "0 passed, 0 failed",
        );
    }

    #[test]
    fn node_says_one_number_a_line() {
        check(
            Tally::of_node("# tests 4\n# pass 3\n# fail 1\n# skipped 0\n"),
            "3 passed, 1 failed",
        );
        check(
            Tally::of_node("Could not find 'js'\n"),
            "0 passed, 0 failed",
        );
    }
}
