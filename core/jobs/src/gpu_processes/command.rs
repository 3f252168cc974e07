//! A command line without its secrets: what runs, and little else.
//!
//! Options are left out with their values, because a value may be a password, a token or a private
//! path. So is every word that is not clearly a name.

use gpumem_model::printable::printable;

/// At most this many words after the script.
const N_WORDS: usize = 2;
/// A word that is longer is data, not a name.
const LONGEST_WORD: usize = 40;
/// This many letters and digits in a row, with at least one digit, may be a key.
const SHORTEST_KEY: usize = 16;
const SCRIPTS: [&str; 5] = [".py", ".ipynb", ".sh", ".R", ".jl"];
const INTERPRETERS: [&str; 9] = [
    "node", "ruby", "perl", "Rscript", "julia", "bash", "sh", "zsh", "dash",
];

/// Program and script of a command line; with `words`, the first plain ones after them too.
pub fn shortened(command: &[String], words: bool) -> Option<String> {
    let arguments = command.iter().map(String::as_str);
    let mut arguments: Vec<&str> = arguments.filter(|it| !it.is_empty()).collect();
    // A process that names itself does so in one word with blanks: `ray::train step 4`.
    if let [title] = arguments[..]
        && let Some((name, _)) = title.split_once(' ')
        && !title.starts_with('/')
    {
        arguments = vec![name, "…"];
    }
    let (program, rest) = arguments.split_first()?;
    let program = base_name(program).trim_start_matches('-');
    let (mut shown, rest) = if is_interpreter(program) {
        script(program, rest)
    } else {
        (vec![program.to_owned()], rest)
    };
    let plain = if words { plain_words(rest) } else { Vec::new() };
    let has_more = rest.len() > plain.len();
    let later = rest[plain.len()..].iter().find(|it| is_script(it));
    shown.extend(plain);
    if has_more {
        shown.push("…".to_owned());
    }
    shown.extend(later.filter(|_| words).map(|it| base_name(it).to_owned()));
    Some(printable(&shown.join(" ")))
}

pub(super) fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

pub(super) fn is_python(program: &str) -> bool {
    program.starts_with("python") || program.starts_with("pypy")
}

fn is_interpreter(program: &str) -> bool {
    is_python(program) || INTERPRETERS.contains(&program)
}

/// The script that an interpreter runs, and what follows it.
fn script<'a>(program: &str, arguments: &'a [&'a str]) -> (Vec<String>, &'a [&'a str]) {
    let mut rest = arguments;
    while let Some((argument, after)) = rest.split_first() {
        match *argument {
            "-m" if is_python(program) => {
                let (module, after) = after.split_first().unwrap_or((&"", after));
                let shown = [program, "-m", module].map(ToOwned::to_owned);
                return (shown.to_vec(), after);
            }
            // What follows is source text, and its own words.
            "-c" | "-e" => return (vec![format!("{program} {argument} …")], &[]),
            "-W" | "-X" => rest = after.get(1..).unwrap_or_default(),
            option if option.starts_with('-') => rest = after,
            // A program that is a script, as pip installs them.
            path if is_python(program) && !base_name(path).contains('.') => {
                return (vec![base_name(path).to_owned()], after);
            }
            path => return (vec![program.to_owned(), base_name(path).to_owned()], after),
        }
    }
    (vec![program.to_owned()], rest)
}

fn plain_words(rest: &[&str]) -> Vec<String> {
    let plain = rest.iter().map_while(|word| {
        let is_path = word.starts_with(['/', '.', '~']);
        is_plain(word).then(|| if is_path { base_name(word) } else { word }.to_owned())
    });
    plain.take(N_WORDS).collect()
}

fn is_plain(word: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._/-~".contains(c);
    let mut runs = word.split(|c: char| !c.is_ascii_alphanumeric());
    let is_key =
        runs.any(|run| run.len() >= SHORTEST_KEY && run.contains(|c: char| c.is_ascii_digit()));
    let is_name = !word.starts_with('-') && word.chars().all(is_name);
    is_name && !is_key && (1..=LONGEST_WORD).contains(&word.len())
}

fn is_script(word: &str) -> bool {
    SCRIPTS.iter().any(|end| word.ends_with(end)) && is_plain(base_name(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, own: &str, of_others: &str) {
        let command: Vec<String> = line.split(' ').map(ToOwned::to_owned).collect();
        assert_eq!(shortened(&command, true).as_deref(), Some(own));
        assert_eq!(shortened(&command, false).as_deref(), Some(of_others));
    }

    #[test]
    fn a_program_is_shown_with_its_script() {
        check(
            "/usr/bin/python3 /srv/jobs/train.py",
            "python3 train.py",
            "python3 train.py",
        );
        check(
            "python -u -X dev train.py fit big",
            "python train.py fit big",
            "python train.py …",
        );
        check(
            "python3 -m torch.distributed.run",
            "python3 -m torch.distributed.run",
            "python3 -m torch.distributed.run",
        );
        check(
            "/opt/env/bin/python3 /opt/env/bin/vllm serve org/Model-8B",
            "vllm serve org/Model-8B",
            "vllm …",
        );
        check(
            "torchrun --nproc-per-node 2 /srv/train.py --lr 1",
            "torchrun … train.py",
            "torchrun …",
        );
        check("-bash", "bash", "bash");
        check(
            r"C:\Python\python.exe train.py",
            "python.exe train.py",
            "python.exe train.py",
        );
    }

    #[test]
    fn possible_secrets_are_not_shown() {
        check(
            "python train.py --token abc --wandb xyz",
            "python train.py …",
            "python train.py …",
        );
        check(
            "python train.py token=abc",
            "python train.py …",
            "python train.py …",
        );
        check("serve hf_AbCdEfGhIjKl0123456789xyz", "serve …", "serve …");
        check("serve https://me:pass@host/", "serve …", "serve …");
        check(
            "python -c import(x);key='abc'",
            "python -c …",
            "python -c …",
        );
        check("mysql -psecret db", "mysql …", "mysql …");
    }

    #[test]
    fn a_terminal_obeys_nothing_of_it() {
        let command = ["\u{1b}[2Jrm".to_owned()];
        assert_eq!(shortened(&command, true).as_deref(), Some(" [2Jrm"));
        assert_eq!(shortened(&[String::new()], true), None);
    }

    #[test]
    fn a_process_that_names_itself_shows_its_first_word() {
        let command = [
            "ray::Trainer step of secret-experiment".to_owned(),
            String::new(),
        ];
        assert_eq!(shortened(&command, true).as_deref(), Some("ray::Trainer …"));
    }
}
