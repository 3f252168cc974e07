//! The maximum size of a container, read without running the user's code.

use gpumem_model::holders::Bound;

use super::native::Native;
use crate::still::{Dict, Object};

/// The class of an entry of a bounded `lru_cache`.
const LINK: &str = "_lru_list_elem";

/// The size and the limit of `object`, if it is a bounded container: `collections.deque(maxlen=…)`,
/// `functools.lru_cache(maxsize=…)`, `queue.Queue(maxsize)`, `asyncio.Queue(maxsize)`.
pub(super) fn capacity_bound(object: &Object<'_>) -> Option<Bound> {
    match Native::of_object(object) {
        Some(Native::Deque) => {
            let most = object.read("maxlen")?.number()?;
            Some(Bound {
                n: n_elements(object),
                most,
            })
        }
        Some(Native::LruCache) => of_lru_cache(object),
        Some(_) => None,
        None => of_queue(object),
    }
}

/// `cache_parameters` returns what the decorator was given: a function of the standard library's,
/// whose first variable from the scope around it is `maxsize`.
fn of_lru_cache(object: &Object<'_>) -> Option<Bound> {
    if !object.section().is_copy() {
        return None;
    }
    let parameters = object.attribute("cache_parameters")?;
    let maxsize = parameters.read("__closure__")?.tuple()?.next()?;
    let most = maxsize.read("cell_contents")?.number()?;
    // Its dict of results has no name: it is the one whose values are links of the cache.
    let is_of_results = |dict: &Dict<'_>| {
        let mut values = dict.values();
        let first = values.next();
        first.is_some_and(|it| it.class().short_name() == LINK)
    };
    let referents = object.referents();
    let mut dicts = referents.iter().filter_map(Object::dict);
    let results = dicts.find(is_of_results);
    Some(Bound {
        n: results.map_or(0, |it| it.len() as u64),
        most,
    })
}

fn of_queue(object: &Object<'_>) -> Option<Bound> {
    let is_queue = |module: &str| module == "queue" || module == "asyncio.queues";
    if !object
        .class()
        .lineage()
        .any(|it| it.module().as_deref().is_some_and(is_queue))
    {
        return None;
    }
    let attributes = object.attributes()?;
    let of_either = |name: &str| {
        attributes
            .get(name)
            .or_else(|| attributes.get(&format!("_{name}")))
    };
    let most = of_either("maxsize")?.number().filter(|most| *most > 0)?;
    let queue = of_either("queue")?;
    let n = match queue.list() {
        Some(list) => list.count() as u64,
        None if matches!(Native::of_object(&queue), Some(Native::Deque)) => n_elements(&queue),
        None => 0,
    };
    Some(Bound { n, most })
}

fn n_elements(deque: &Object<'_>) -> u64 {
    deque
        .elements()
        .map_or(0, |elements| elements.count() as u64)
}
