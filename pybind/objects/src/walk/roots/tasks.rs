//! Coroutines that the event loop will go on with: no variable needs to name them.

use super::Roots;
use super::threads::is_passed;
use crate::still::{Dict, Object, Section};

/// Where asyncio notes the tasks that are under way: up to Python 3.11, and from then on. A later
/// one keeps no such list; what its tasks hold is found with what no name reaches.
const REGISTRIES: [&str; 2] = ["_all_tasks", "_scheduled_tasks"];

/// Adds what every task of the user's waits with, if asyncio is in use. An event loop leads to all
/// of them, and every task, future and asynchronous generator to its loop: it is not entered.
pub(super) fn add<'s>(roots: &mut Roots<'s>, section: &'s Section<'s>) {
    let modules = section.modules();
    let Some(module) = modules.and_then(|modules| modules.get("asyncio.tasks")?.globals()) else {
        return;
    };
    if let Some(current) = module.get("_current_tasks").and_then(|it| it.dict()) {
        roots
            .passed
            .extend(current.items().map(|(event_loop, _)| event_loop));
        roots.passed.push(current.object().clone());
    }
    for task in tasks(&module) {
        // A task that cannot be read is not asyncio's own.
        let _ = add_task(roots, &task);
    }
}

/// The coroutines that tasks wait in, of the globals of `asyncio.tasks`.
pub fn waiting_tasks<'s>(module: &Dict<'s>) -> Vec<Object<'s>> {
    tasks(module).iter().filter_map(waiting).collect()
}

fn tasks<'s>(module: &Dict<'s>) -> Vec<Object<'s>> {
    let of_registry = |registry: &str| module.get(registry)?.attribute("data");
    let registries: Vec<Object<'s>> = REGISTRIES.into_iter().filter_map(of_registry).collect();
    let tasks = registries.iter().filter_map(Object::set).flatten();
    tasks.filter_map(|task| task.referent()).collect()
}

/// What a task goes on with, unless it is done or runs: then its frames are a thread's.
fn waiting<'s>(task: &Object<'s>) -> Option<Object<'s>> {
    if task.call("done")?.is_true()? {
        return None;
    }
    let coroutine = task.call("get_coro")?;
    let is_running = coroutine.read("cr_running")?.is_true()?;
    (!is_running).then_some(coroutine)
}

fn add_task<'s>(roots: &mut Roots<'s>, task: &Object<'s>) -> Option<()> {
    roots.passed.push(task.read("_loop")?);
    let coroutine = waiting(task)?;
    if is_passed(&globals_of(&coroutine)?) {
        return None;
    }
    let function = coroutine.read("__name__")?.text()?;
    let task_name = task.call("get_name")?.text()?;
    let name = format!("{function}() in {task_name}");
    roots.add_beside(&name, name.clone(), coroutine, format!("{function} (task)"));
    Some(())
}

/// The globals of the function that a coroutine suspends. Its frame is read in a copy of the process
/// alone: an audit hook of the user's may hear of it.
fn globals_of<'s>(coroutine: &Object<'s>) -> Option<Dict<'s>> {
    let is_copy = coroutine.section().is_copy();
    let frame = is_copy.then(|| coroutine.read("cr_frame"))??;
    frame.read("f_globals")?.dict()
}
