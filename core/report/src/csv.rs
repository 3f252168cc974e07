//! The runs as a table with commas, for a spreadsheet.

use super::columns::or_else;
use gpumem_analyzer::{Analysis, Peak, RunRow, cell_label};
use gpumem_model::printable::{printable, printable_report};
use gpumem_model::recording::{Recording, Run};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

const COLUMNS: &str = "run,cell,execution_count,device,status,started_nanos,ended_nanos,metric,\
                       before_bytes,after_bytes,kept_bytes,peak_bytes,peak_exact,capacity_bytes,\
                       overlaps,overlap_bytes";

/// One line per run and device as CSV, with a header. Sizes are bytes, times nanoseconds since the
/// recording's start; an unknown figure is empty.
pub fn csv(recording: &Recording, analysis: &Analysis) -> String {
    let lines = analysis.rows.iter().map(|row| line(recording, row));
    let head = std::iter::once(COLUMNS.to_owned());
    head.chain(lines).map(|line| line + "\r\n").collect()
}

fn line(recording: &Recording, row: &RunRow) -> String {
    let run = recording.run(row.run);
    let known = |bytes: Option<Bytes>| or_else(bytes.map(Bytes::get), "");
    let fields = [
        run.idx.0.to_string(),
        field(&cell_label(recording, run)),
        or_else(run.execution_count, ""),
        field(&recording.device(row.device).label),
        run.status.name().to_owned(),
        run.started.get().to_string(),
        or_else(run.ended.map(Nanos::get), ""),
        row.metric.name().to_owned(),
        known(row.before),
        known(row.after),
        or_else(row.kept.map(ByteDelta::get), ""),
        known(row.peak.map(Peak::low)),
        or_else(row.peak.map(Peak::is_exact), ""),
        known(row.capacity),
        overlaps(recording, run),
        or_else(row.overlap.and_then(|it| it.moved).map(ByteDelta::get), ""),
    ];
    fields.join(",")
}

/// The runs that were under way at the same time, by their numbers.
fn overlaps(recording: &Recording, run: &Run) -> String {
    let numbers = recording.overlapping(run).map(|it| it.idx.0.to_string());
    numbers.collect::<Vec<_>>().join(" ")
}

/// A text in one field. What a spreadsheet would take for a formula begins with a
/// quote, so that the source of a cell is never run. Some skip blanks before it.
fn field(text: &str) -> String {
    let text = printable_report(&printable(text));
    let guard = if text.trim_start().starts_with(['=', '+', '-', '@']) {
        "'"
    } else {
        ""
    };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_analyzer::testing::{run, session};

    #[test]
    fn a_run_is_a_line() {
        let (recording, analysis) = session(&[("f(\"a\", b)", &[run(1)])]);
        let lines = csv(&recording, &analysis);
        assert_eq!(
            lines.lines().nth(1),
            Some(
                "0,\"f(\"\"a\"\", b)\",1,\"sim:0\",ok,1000000000,2000000000,allocated,\
                 0,1048576,1048576,1048576,true,17179869184,,"
            )
        );
    }

    #[test]
    fn a_cell_is_never_a_formula() {
        assert_eq!(field("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
        assert_eq!(field("\t@SUM(1)"), "\"' @SUM(1)\"");
        assert_eq!(field("x = 1\r\ny"), "\"x = 1  y\"");
    }
}
