//! Looking through what the repository holds, and what it depends on.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Places that a rule speaks of.
pub(crate) struct Found(Vec<Place>);

struct Place {
    path: String,
    /// Counted from 1; none where the place is a whole file or a package.
    line: Option<usize>,
    text: String,
}

/// Files of the repository whose path starts or ends so.
pub(crate) fn files(which: &str) -> Found {
    Found(
        paths(which)
            .into_iter()
            .map(|path| Place {
                path,
                line: None,
                text: String::new(),
            })
            .collect(),
    )
}

/// Lines of text in those files.
pub(crate) fn lines(which: &str) -> Found {
    let of_file = |path: String| {
        let content = fs::read_to_string(root().join(&path)).unwrap_or_default();
        let place = |(idx, text): (usize, &str)| Place {
            path: path.clone(),
            line: Some(idx + 1),
            text: text.to_owned(),
        };
        content.lines().enumerate().map(place).collect::<Vec<_>>()
    };
    let places: Vec<_> = paths(which).into_iter().flat_map(of_file).collect();
    assert!(
        !places.is_empty(),
        "no file of the repository is like `{which}`"
    );
    Found(places)
}

/// The notebooks of the repository.
pub(crate) fn notebooks() -> Found {
    files(".ipynb")
}

/// Every package that one of ours is built from, on this machine.
pub(crate) fn dependencies(package: &str) -> Found {
    tree(package, &["--all-features", "--edges", "normal"])
}

/// Every package that is linked into one of ours, on any system.
pub(crate) fn linked(package: &str) -> Found {
    let edges = "normal,no-proc-macro";
    tree(
        package,
        &["--all-features", "--target", "all", "--edges", edges],
    )
}

fn tree(package: &str, options: &[&str]) -> Found {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--locked", "--prefix", "none", "--package", package]);
    let printed = output(cargo.args(options));
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let place = |line: &str| Place {
        path: format!("{package} depends on {}", name(line)),
        line: None,
        text: line.to_owned(),
    };
    let lines = printed.lines().skip(1).filter(|line| !line.is_empty());
    Found(lines.map(place).collect())
}

impl Found {
    /// Fails with every place that breaks the rule.
    #[track_caller]
    pub(crate) fn none(self) {
        assert!(self.0.is_empty(), "\n{self}\n");
    }

    fn keep(mut self, is_kept: impl Fn(&Place) -> bool) -> Self {
        self.0.retain(is_kept);
        self
    }

    /// Packages with one of these names.
    pub(crate) fn among(self, names: &[&str]) -> Self {
        self.keep(|place| {
            place
                .text
                .split(' ')
                .next()
                .is_some_and(|name| names.contains(&name))
        })
    }

    /// Packages of others that a text does not name with their version.
    pub(crate) fn unless_named_in(self, text: &str) -> Self {
        self.keep(|place| {
            let mut words = place.text.split(' ');
            let [name, version] = [words.next(), words.next()].map(Option::unwrap_or_default);
            let named = format!("{name} {}", version.trim_start_matches('v'));
            let is_ours = place.text.contains(" (/");
            !is_ours && !text.contains(&named)
        })
    }

    /// Lines that hold one of these.
    pub(crate) fn with_any(self, words: &[&str]) -> Self {
        self.keep(|place| words.iter().any(|word| place.text.contains(word)))
    }

    /// Lines that are more than a comment.
    pub(crate) fn in_code(self) -> Self {
        self.keep(|place| !place.text.trim_start().starts_with("//"))
    }

    /// What is not in this file or folder.
    pub(crate) fn outside(self, allowed: &str) -> Self {
        self.keep(|place| !place.path.starts_with(allowed))
    }

    /// Lines that do not hold this.
    pub(crate) fn unless_with(self, word: &str) -> Self {
        self.keep(|place| !place.text.contains(word))
    }

    /// Lines without this in the comment above them.
    pub(crate) fn unless_above(self, word: &str) -> Self {
        self.keep(|place| {
            let file = place.file();
            let above = file[..place.idx()].iter().rev();
            !above
                .take_while(|line| is_comment_or_attribute(line))
                .any(|line| line.contains(word))
        })
    }

    /// Lines without this in the attribute that they start.
    pub(crate) fn unless_in_attribute(self, word: &str) -> Self {
        self.keep(|place| {
            let file = place.file();
            let attribute = &file[place.idx()..];
            let n_lines = attribute
                .iter()
                .take_while(|line| !line.trim_end().ends_with(")]"))
                .count();
            !attribute
                .iter()
                .take(n_lines + 1)
                .any(|line| line.contains(word))
        })
    }

    /// Files with one of these names, whatever their kind.
    pub(crate) fn named_any(self, names: &[&str]) -> Self {
        self.keep(|place| {
            let stem = Path::new(&place.path)
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy();
            names.contains(&stem.as_ref())
        })
    }

    /// Notebooks that keep what a run of them printed.
    pub(crate) fn with_outputs(self) -> Self {
        self.keep(|place| {
            let text = fs::read_to_string(root().join(&place.path)).unwrap_or_default();
            let notebook: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let cells = notebook["cells"].as_array().cloned().unwrap_or_default();
            let is_clean = |cell: &serde_json::Value| {
                cell["execution_count"].is_null()
                    && cell["outputs"].as_array().is_none_or(Vec::is_empty)
            };
            cells.is_empty() || !cells.iter().all(is_clean)
        })
    }
}

impl Place {
    fn idx(&self) -> usize {
        self.line.map_or(0, |line| line - 1)
    }

    /// Every line of the file that it is in.
    fn file(&self) -> Vec<String> {
        let content = fs::read_to_string(root().join(&self.path)).unwrap_or_default();
        content.lines().map(str::to_owned).collect()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Place { path, line, text } in &self.0 {
            match line {
                Some(line) => writeln!(f, "{path}:{line}: {}", text.trim())?,
                None => writeln!(f, "{path}")?,
            }
        }
        Ok(())
    }
}

fn is_comment_or_attribute(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || line.starts_with("#[")
}

/// What a file of the repository holds.
pub(crate) fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("the file is in the repository")
}

pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask is a folder of the repository")
}

/// What is committed, or would be, but for these rules and the words they forbid.
pub(crate) fn paths(which: &str) -> Vec<String> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let said = output(Command::new("git").args(list));
    let is_meant = |path: &&str| path.starts_with(which) || path.ends_with(which);
    said.lines()
        .filter(|path| !path.starts_with("tests/tidy/"))
        .filter(is_meant)
        .filter(|path| root().join(path).is_file())
        .map(str::to_owned)
        .collect()
}

fn output(command: &mut Command) -> String {
    let output = command
        .current_dir(root())
        .output()
        .expect("git and cargo are there");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("paths are UTF-8")
}
