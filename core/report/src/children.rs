//! The living child processes as a table: who may be ended.

use super::text_table::{self, left, right, table};
use super::to_text;
use gpumem_model::recording::ChildHandle;
use gpumem_model::units::{Bytes, Nanos};

/// Names are cut at this width.
const NAME_COLUMNS: usize = 30;

/// One living process that the recorded one, or a child of it, began.
#[derive(Debug, Clone, Default)]
pub struct LivingProcess {
    /// Its number.
    pub pid: u32,
    /// What `multiprocessing` calls it, or else its program and script.
    pub name: String,
    /// What it holds of each device, by the device's label; a device of which that is not known is missing.
    pub held: Vec<(String, Bytes)>,
    /// How long it has lived.
    pub age: Nanos,
    /// Jupyter's number of the run that began it.
    pub execution_count: Option<u32>,
    /// What leads to it.
    pub handle: ChildHandle,
}

/// A line for each; lines are at most `width` columns long.
///
/// ```text
///   pid  process        memory   age  begun in  in this process
///  4123  ForkProcess-1  86 MiB   3 s  In [2]    nothing leads to it
/// ```
pub fn living_children(children: &[LivingProcess], width: usize) -> String {
    if children.is_empty() {
        return "no child process lives".to_owned();
    }
    let head = [
        "pid",
        "process",
        "memory",
        "age",
        "begun in",
        "in this process",
    ];
    let mut cells = vec![text_table::row(head)];
    cells.extend(children.iter().map(|child| {
        let held = child.held.iter().map(|(label, held)| match &**label {
            "host" => held.to_string(),
            label => format!("{held} on {label}"),
        });
        let held: Vec<String> = held.collect();
        vec![
            child.pid.to_string(),
            child.name.clone(),
            if held.is_empty() {
                "?".to_owned()
            } else {
                held.join(", ")
            },
            child.age.to_string(),
            child
                .execution_count
                .map_or_else(|| "?".to_owned(), |n| format!("In [{n}]")),
            leads(child.handle).to_owned(),
        ]
    }));
    let columns = [
        right().min(5),
        left().max(NAME_COLUMNS).gap(2),
        right().gap(2),
        right().gap(2),
        left().gap(2),
        left().gap(2),
    ];
    to_text(&table(&columns, &cells, width))
}

const fn leads(handle: ChildHandle) -> &'static str {
    match handle {
        ChildHandle::Lost => "nothing leads to it",
        ChildHandle::Detached => "its Popen is gone",
        ChildHandle::Held => "an object leads to it",
        ChildHandle::Unknown => "not known",
    }
}
