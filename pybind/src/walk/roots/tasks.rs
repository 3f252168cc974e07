//! Coroutines that the event loop will go on with: no variable needs to name them.

use gpumem_core::holders::RootKind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySet, PyString, PyWeakrefMethods, PyWeakrefReference};

use super::threads::is_passed;
use super::{Roots, attribute, dict};
use crate::adapters::peek;

/// Where asyncio notes the tasks that are under way: up to Python 3.11, and from then on. A later
/// one keeps no such list; what its tasks hold is found with what no name reaches.
const REGISTRIES: [&str; 2] = ["_all_tasks", "_scheduled_tasks"];

/// Adds what every task of the user's waits with, if asyncio is in use. An event loop leads to all
/// of them, and every task, future and asynchronous generator to its loop: it is not entered.
pub(super) fn add<'py>(roots: &mut Roots<'py>, modules: &Bound<'py, PyDict>) {
    let module = modules.get_item("asyncio.tasks").ok().flatten();
    let Some(module) = module else { return };
    if let Some(current) = dict(&module, "_current_tasks") {
        roots.passed.extend(current.keys());
        roots.passed.push(current.into_any());
    }
    for registry in REGISTRIES {
        let tasks = attribute(&module, registry).and_then(|set| peek::attribute(&set, "data"));
        let Some(tasks) = tasks.and_then(|tasks| tasks.cast_into::<PySet>().ok()) else {
            continue;
        };
        // Taken out first: a task that ends while another one is asked leaves the set.
        let tasks: Vec<Bound<'py, PyAny>> = tasks.iter().collect();
        for task in tasks {
            let task = task.cast_into::<PyWeakrefReference>().ok();
            if let Some(task) = task.and_then(|task| task.upgrade()) {
                // One that cannot be asked is not asyncio's own.
                drop(add_task(roots, &task));
            }
        }
    }
}

fn add_task<'py>(roots: &mut Roots<'py>, task: &Bound<'py, PyAny>) -> PyResult<()> {
    roots.passed.push(peek::read(task, "_loop")?);
    if peek::call(task, "done")?.is_truthy()? {
        return Ok(());
    }
    let coroutine = peek::call(task, "get_coro")?;
    if peek::read(&coroutine, "cr_running")?.is_truthy()? {
        // Its frames are a thread's.
        return Ok(());
    }
    let frame = peek::read(&coroutine, "cr_frame")?;
    if dict(&frame, "f_globals").is_none_or(|globals| is_passed(&globals)) {
        return Ok(());
    }
    let function = peek::read(&coroutine, "__name__")?;
    let function = function.cast::<PyString>()?.to_string_lossy().into_owned();
    let task_name = peek::call(task, "get_name")?;
    let task_name = task_name.cast_exact::<PyString>()?.to_string_lossy();
    let name = format!("{function}() in {task_name}");
    roots.add_named(RootKind::ThreadFrame, &name, coroutine);
    Ok(())
}
