//! Looking through what the repository holds, and what it depends on.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Places that a rule speaks of.
pub struct Found(Vec<Place>);

struct Place {
    path: String,
    /// Counted from 1; none where the place is a whole file or a package.
    line: Option<usize>,
    text: String,
}

/// Files of the repository whose path starts or ends so.
pub fn files(which: &str) -> Found {
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
pub fn lines(which: &str) -> Found {
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
pub fn notebooks() -> Found {
    files(".ipynb")
}

/// Every package that one of ours is built from, on this machine.
pub fn dependencies(package: &str) -> Found {
    let tree = [
        "tree",
        "--locked",
        "--all-features",
        "--edges",
        "normal",
        "--prefix",
        "none",
    ];
    let said = output(
        Command::new(env!("CARGO"))
            .args(tree)
            .args(["--package", package]),
    );
    let place = |line: &str| Place {
        path: format!(
            "{package} depends on {}",
            line.split(' ').next().unwrap_or_default()
        ),
        line: None,
        text: line.to_owned(),
    };
    Found(
        said.lines()
            .skip(1)
            .filter(|line| !line.is_empty())
            .map(place)
            .collect(),
    )
}

impl Found {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn keep(mut self, is_kept: impl Fn(&Place) -> bool) -> Self {
        self.0.retain(is_kept);
        self
    }

    /// Packages with one of these names.
    pub fn among(self, names: &[&str]) -> Self {
        self.keep(|place| {
            place
                .text
                .split(' ')
                .next()
                .is_some_and(|name| names.contains(&name))
        })
    }

    /// Lines that hold one of these.
    pub fn with_any(self, words: &[&str]) -> Self {
        self.keep(|place| words.iter().any(|word| place.text.contains(word)))
    }

    /// Lines that are more than a comment.
    pub fn in_code(self) -> Self {
        self.keep(|place| !place.text.trim_start().starts_with("//"))
    }

    /// What is in none of these files and folders.
    pub fn outside(self, allowed: &[&str]) -> Self {
        self.keep(|place| !allowed.iter().any(|prefix| place.path.starts_with(prefix)))
    }

    /// Lines that do not hold this.
    pub fn without_same(self, word: &str) -> Self {
        self.keep(|place| !place.text.contains(word))
    }

    /// Lines without this in the comment above them.
    pub fn without_above(self, word: &str) -> Self {
        self.keep(|place| {
            let above = place.neighbours(|idx| idx.saturating_sub(6)..idx);
            let comment = above
                .iter()
                .rev()
                .take_while(|line| is_comment_or_attribute(line));
            !comment.clone().any(|line| line.contains(word))
        })
    }

    /// Lines without this in them or in the attribute that they start.
    pub fn without_below(self, word: &str) -> Self {
        self.keep(|place| {
            let attribute = place.neighbours(|idx| idx..idx + 8);
            let end = attribute
                .iter()
                .position(|line| line.trim_end().ends_with(")]"));
            let attribute = &attribute[..=end.unwrap_or(0)];
            !attribute.iter().any(|line| line.contains(word))
        })
    }

    /// Files with one of these names, whatever their kind.
    pub fn named_any(self, names: &[&str]) -> Self {
        self.keep(|place| {
            let stem = Path::new(&place.path)
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy();
            names.contains(&stem.as_ref())
        })
    }

    /// Notebooks that keep what a run of them printed.
    pub fn with_outputs(self) -> Self {
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
    fn neighbours(&self, range: impl Fn(usize) -> std::ops::Range<usize>) -> Vec<String> {
        let content = fs::read_to_string(root().join(&self.path)).unwrap_or_default();
        let all: Vec<String> = content.lines().map(str::to_owned).collect();
        let range = range(self.line.unwrap_or(1) - 1);
        all[range.start.min(all.len())..range.end.min(all.len())].to_vec()
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

fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask is a folder of the repository")
}

/// What is committed, or would be, but for these rules and the words they forbid.
fn paths(which: &str) -> Vec<String> {
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
