//! Processes that nobody ended.

use super::outlived::is_deleted;
use super::{Presentation, Prose, Teller, code, prose, withdrawn};
use gpumem_analyzer::ChildrenDetails;
use gpumem_model::recording::ChildHandle;
use gpumem_model::units::count;

pub(super) fn present(teller: &Teller<'_>, details: &ChildrenDetails) -> Presentation {
    let who = who(details);
    let (size, on) = (teller.units.size(details.n_bytes), teller.on_device());
    let verb =
        |one: &'static str, several: &'static str| if details.n == 1 { one } else { several };
    let began = began(teller, details);
    let shown = if let Some(reason) = teller.finding.withdrawn {
        let title = prose![who, that(&began), " held ", size, on];
        return Presentation::new(title, withdrawn(reason));
    } else if let Some(growth) = &details.growth {
        let title = prose![who, verb(" holds ", " hold "), size, on];
        let outlook = match &began {
            Some(began) => prose![&**began, " began them"],
            None => "they began outside of every recorded cell".into(),
        };
        let rate = teller.units.size(growth.bytes_per_run.magnitude());
        Presentation::new(title, outlook).fact(format!(
            "{} began more than lived before, {rate} each",
            count(teller.finding.n_runs, "run")
        ))
    } else if let Some(name) = &details.deleted {
        let first = teller.finding.runs.first();
        let is_deleted = first.is_some_and(|run| is_deleted(teller, *run));
        let gone = if is_deleted {
            " is deleted"
        } else {
            " is gone"
        };
        let holds = verb(" holds ", " hold ");
        let title = prose![
            code(name),
            gone,
            ", but ",
            who,
            that(&began),
            holds,
            size,
            on
        ];
        Presentation::new(title, "")
    } else {
        let title = prose![who, that(&began), verb(" holds ", " hold "), size, on];
        Presentation::new(title, leads(details))
    };
    let shown = shown.fact(largest(details));
    let shown = if details.growth.is_some() || details.deleted.is_some() {
        shown.fact(leads(details))
    } else {
        shown
    };
    shown.advice(advice(details))
}

/// `process 4123`, `8 child processes`.
fn who(details: &ChildrenDetails) -> String {
    match details.n {
        1 => format!("process {}", details.pid),
        n => format!("{n} child processes"),
    }
}

/// `In [2]`, or of several runs `In [2] to In [9]`.
fn began(teller: &Teller<'_>, details: &ChildrenDetails) -> Option<String> {
    let first = details.since_execution_count?;
    let last = teller.finding.cell.as_ref()?.execution_count?;
    Some(match details.growth {
        Some(_) if last != first => format!("In [{first}] to In [{last}]"),
        _ => format!("In [{first}]"),
    })
}

fn that(began: &Option<String>) -> String {
    let began = began.as_ref();
    began.map_or_else(String::new, |began| format!(" that {began} began"))
}

/// Of one process its name is enough.
fn largest(details: &ChildrenDetails) -> Prose {
    let ChildrenDetails { n, pid, name, .. } = details;
    match n {
        1 => prose![code(name)],
        _ => prose!["the largest: ", code(name), format!(" (pid {pid})")],
    }
}

fn leads(details: &ChildrenDetails) -> Prose {
    let (it, its) = if details.n == 1 {
        ("it", "its")
    } else {
        ("them", "their")
    };
    match details.handle {
        ChildHandle::Lost => format!("nothing in this process leads to {it}").into(),
        ChildHandle::Detached => prose![its, " ", code("subprocess.Popen"), " is gone"],
        ChildHandle::Held => format!("an object of this process leads to {it}").into(),
        ChildHandle::Unknown => {
            format!("whether anything in this process leads to {it} is not known").into()
        }
    }
}

fn advice(details: &ChildrenDetails) -> Prose {
    if details.growth.is_some() && details.handle == ChildHandle::Held {
        return prose![
            "make them once, in a cell that does not run again, or end the old ones before a run begins new ones: ",
            code("pool.terminate()"),
            ", ",
            code("executor.shutdown()"),
            "; a DataLoader with ",
            code("persistent_workers=True"),
            " keeps its workers as long as it lives"
        ];
    }
    prose![
        "end them where they begin: ",
        code("llm.shutdown()"),
        ", ",
        code("pool.terminate()"),
        ", ",
        code("process.terminate()"),
        " or a ",
        code("with"),
        " block; deleting a variable ends no process"
    ]
}
