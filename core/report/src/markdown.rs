//! The conclusion as Markdown, for an issue.

use gpumem_analyzer::Analysis;
use gpumem_charts::cells;
use gpumem_model::printable::{printable, printable_report};
use gpumem_model::recording::{DeviceIdx, Recording};
use gpumem_model::units::Units;
use gpumem_wording::{OutputLimits, Presentation, Prose, Span, counts, healthy, present_verdict};

/// The findings, the worst one with its fix, and what each cell kept on a device.
pub fn markdown(recording: &Recording, analysis: &Analysis, device: DeviceIdx) -> String {
    let mut lines = Vec::new();
    let verdicts = analysis.verdicts();
    if verdicts.is_empty() {
        let calm = healthy(recording, analysis, device, Units::Binary);
        lines.push(head(&calm, &marked(&calm.outlook)));
    }
    for (idx, verdict) in verdicts.iter().enumerate() {
        let finding = present_verdict(recording, verdict, Units::Binary);
        if idx > 0 {
            lines.push(format!("- {} {}", finding.sign, marked(&finding.row)));
            continue;
        }
        let outlook = marked(&finding.outlook.clone().capitalised());
        lines.push(head(&finding, &outlook));
        let Some(remedy) = finding.remedy else {
            continue;
        };
        if let Some(reason) = remedy.reason {
            // Its lines begin with a sign, so that none ends the block.
            let side = |mark: char, code: &str| {
                let lines = code
                    .lines()
                    .map(|line| format!("{mark} {}\n", printable(line)));
                lines.collect::<String>()
            };
            let before = remedy.before.map(|code| side('-', &code));
            let (before, after) = (before.unwrap_or_default(), side('+', &remedy.after));
            let why = marked(&reason.sentence());
            lines.push(format!("```diff\n{before}{after}```\n{why}\n"));
            lines.extend(finding.link.map(|link| format!("{link}\n")));
        }
    }
    lines.push("\n| | cell | In | kept | state |\n|---|---|---|---:|---|".to_owned());
    lines.extend(rows(recording, analysis, device));
    let label = recording.devices().get(device.get());
    let label = label.map_or_else(String::new, |it| {
        markdown_text(&format!(" · {} {}", it.label, it.name))
    });
    lines.push(format!("\ngpumem · {}{label}", counts(recording)));
    printable_report(&lines.join("\n"))
}

/// A line for each cell, in the order of the page.
fn rows(recording: &Recording, analysis: &Analysis, device: DeviceIdx) -> Vec<String> {
    let rows = cells(recording, analysis, device).rows.into_iter();
    let lines = rows.take(OutputLimits::MARKDOWN.n_cells).map(|row| {
        // Also in code a bar would end the column.
        let name = markdown_code(&row.name).replace('|', "\\|");
        let number = row.execution_count;
        let number = number.map_or(String::new(), |n| format!("[{n}]"));
        let sign = row.sign.map_or("", |(sign, _)| sign.glyph());
        format!(
            "| {sign} | {name} | {number} | {} | {} |",
            row.total, row.state
        )
    });
    lines.collect()
}

fn head(finding: &Presentation, outlook: &str) -> String {
    let (sign, title) = (finding.sign, marked(&finding.title));
    format!("### {sign} {title}\n\n{outlook}\n")
}

fn marked(prose: &Prose) -> String {
    let spans = prose.spans().iter().map(|span| match span {
        Span::Plain(text) => markdown_text(text),
        Span::Code(text) => markdown_code(text),
        Span::Figure(text) => format!("**{}**", markdown_text(text)),
    });
    spans.collect()
}

/// A text as it stands, whatever it holds: no link, picture, tag or column of a table comes of it.
///
/// ```
/// use gpumem_report::markdown_text;
///
/// assert_eq!(markdown_text("![x](y) <b>"), "![x]\\(y) \\<b>");
/// assert_eq!(markdown_text("# In [3] | 2\n- x"), "\\# In [3] \\| 2 - x");
/// assert_eq!(markdown_text("__name__ in data_set &lt;"), "\\_\\_name_\\_ in data_set \\&lt;");
/// ```
pub fn markdown_text(text: &str) -> String {
    let mut escaped = String::new();
    let mut before = None;
    for letter in printable(text).chars() {
        let is_special = match letter {
            '\\' | '`' | '*' | '<' | '|' | '&' | '~' => true,
            '#' | '+' | '-' | '=' | '>' => before.is_none(),
            '(' | '[' | ':' => before == Some(']'),
            // Inside of a word it emphasises nothing.
            '_' => !before.is_some_and(char::is_alphanumeric),
            _ => false,
        };
        if is_special {
            escaped.push('\\');
        }
        escaped.push(letter);
        before = Some(letter);
    }
    escaped
}

/// A name or a line as code.
///
/// ```
/// use gpumem_report::markdown_code;
///
/// assert_eq!(markdown_code("a`b\nc"), "`a'b c`");
/// ```
pub fn markdown_code(text: &str) -> String {
    let text = printable(text).replace('`', "'");
    if text.trim().is_empty() {
        return text;
    }
    format!("`{text}`")
}
