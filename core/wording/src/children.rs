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
        let title = prose![who, that(began.as_ref()), " held ", size, on];
        return Presentation::new(title, withdrawn(reason));
    } else if let Some(growth) = &details.growth {
        let title = prose![who, verb(" holds ", " hold "), size, on];
        let outlook = match &began {
            Some(began) => prose![began.clone(), " began them"],
            None => "they began outside of every recorded cell".into(),
        };
        let rate = teller.units.size(growth.bytes_per_run.magnitude());
        Presentation::new(title, outlook).fact(format!(
            "{} left some behind: {rate} a run",
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
            that(began.as_ref()),
            holds,
            size,
            on
        ];
        Presentation::new(title, "")
    } else {
        let title = prose![
            who,
            that(began.as_ref()),
            verb(" holds ", " hold "),
            size,
            on
        ];
        Presentation::new(title, leads(details))
    };
    let shown = shown.fact(largest(details));
    let shown = if details.growth.is_some() || details.deleted.is_some() {
        shown.fact(leads(details))
    } else {
        shown
    };
    let ends = prose![
        code("%gpumem release children"),
        " lists them, and ends those that you choose"
    ];
    shown.advice(ends).advice(advice(details))
}

/// `process 4123`, `8 child processes`.
fn who(details: &ChildrenDetails) -> String {
    match details.n {
        1 => format!("process {}", details.pid),
        n => format!("{n} child processes"),
    }
}

/// `In [2]`, of several runs `In [2] to In [9]`, of a script its block; `None` if no recorded run began them.
fn began(teller: &Teller<'_>, details: &ChildrenDetails) -> Option<Prose> {
    let cell = teller.finding.cell.as_ref();
    let Some(first) = details.since_execution_count else {
        return cell.map(|_| teller.cell());
    };
    let last = cell.and_then(|it| it.execution_count).unwrap_or(first);
    let words = match details.growth {
        Some(_) if last != first => format!("In [{first}] to In [{last}]"),
        _ => format!("In [{first}]"),
    };
    Some(words.into())
}

fn that(began: Option<&Prose>) -> Prose {
    began.map_or_else(Prose::default, |began| {
        prose![" that ", began.clone(), " began"]
    })
}

/// Of one process its name is enough.
fn largest(details: &ChildrenDetails) -> Prose {
    let ChildrenDetails { n, pid, name, .. } = details;
    if *n == 1 {
        return code(name).into();
    }
    prose!["the largest: ", code(name), format!(" (pid {pid})")]
}

fn leads(details: &ChildrenDetails) -> Prose {
    let (it, of) = if details.n == 1 {
        ("it", "it")
    } else {
        ("them", "each")
    };
    match details.handle {
        ChildHandle::Lost => format!("nothing in this process leads to {it}").into(),
        ChildHandle::Detached => {
            prose![
                "the ",
                code("subprocess.Popen"),
                format!(" of {of} is gone")
            ]
        }
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
