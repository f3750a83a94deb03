//! Many simulations, one thread each, of which finished ones are kept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::progress::Progress;
use crate::state::State;

/// A simulation that is to be made.
pub(crate) struct Item {
    /// Everything that decides the result ([`mod@crate::address`]): of two with the same key, one is run.
    pub(crate) key: String,
    /// About how much work it is.
    pub(crate) weight: u64,
}

/// How many are made at once.
pub(crate) fn jobs(asked: Option<u32>) -> usize {
    asked.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), |jobs| jobs as usize)
}

/// All results in the order of the items: those that are kept, and the others made, the largest first, so that no thread
/// is left with one at the end. `what` they are called is for the progress.
///
/// # Errors
/// One cannot be made, or not be kept. What was finished before stays kept.
pub(crate) fn finish<T>(
    items: &[Item],
    what: &str,
    state: &State<T>,
    jobs: usize,
    make: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>>
where
    T: Clone + Send + Sync + Serialize + DeserializeOwned,
{
    let mut results: Vec<Option<Result<T>>> =
        items.iter().map(|item| state.get(&item.key).cloned().map(Ok)).collect();
    let first = first(items);
    let left = left(items, state);
    let progress = progress(items, &left, what);
    let (next, made) = (AtomicUsize::new(0), Mutex::new(&mut results));
    let work = || {
        while let Some(&i) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = make(i).and_then(|result| {
                state.keep(&items[i].key, &result)?;
                Ok(result)
            });
            if result.is_err() {
                next.store(left.len(), Ordering::Relaxed);
            }
            made.lock().unwrap_or_else(PoisonError::into_inner)[i] = Some(result);
            progress.done(items[i].weight);
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.min(left.len())).map(|_| scope.spawn(work)).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
    });
    progress.finish();
    // the first error in the order of the items; if there is one, those after it may be missing
    let failed = results.iter().position(|result| matches!(result, Some(Err(_))));
    if let Some(Some(Err(error))) = failed.map(|i| results.swap_remove(i)) {
        return Err(error);
    }
    let made: Vec<Option<T>> = results.into_iter().map(|result| result.and_then(Result::ok)).collect();
    let of = |item: &Item| made[first[item.key.as_str()]].clone().expect("it was made");
    Ok(items.iter().map(of).collect())
}

/// The first item of each key.
fn first(items: &[Item]) -> BTreeMap<&str, usize> {
    let mut first = BTreeMap::new();
    for (i, item) in items.iter().enumerate() {
        first.entry(item.key.as_str()).or_insert(i);
    }
    first
}

/// The items whose results are not kept, the largest first; of those with the same key, the first one.
pub(crate) fn left<T: Serialize + DeserializeOwned>(items: &[Item], state: &State<T>) -> Vec<usize> {
    let first = first(items).into_values();
    let mut left: Vec<usize> = first.filter(|i| state.get(&items[*i].key).is_none()).collect();
    left.sort_by_key(|i| (std::cmp::Reverse(items[*i].weight), *i));
    left
}

/// Items count by how much work they are.
fn progress(items: &[Item], left: &[usize], what: &str) -> Progress {
    let message = format!("{} of {} {what} to run", left.len(), items.len());
    let weight = left.iter().map(|i| items[*i].weight).sum();
    Progress::new(left.len(), weight, message, "{msg} [{wide_bar}] {percent} %, {elapsed}, {eta} left")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(keys: &[&str]) -> Vec<Item> {
        keys.iter().enumerate().map(|(i, key)| Item { key: (*key).to_owned(), weight: i as u64 }).collect()
    }

    #[test]
    fn what_has_one_key_is_made_once() {
        let made = AtomicUsize::new(0);
        let make = |i: usize| {
            made.fetch_add(1, Ordering::Relaxed);
            Ok(i)
        };
        let results = finish(&items(&["a", "b", "a", "c", "b"]), "points", &State::none("sweep"), 3, make);
        assert_eq!((results.unwrap(), made.into_inner()), (vec![0, 1, 0, 3, 1], 3));
    }

    #[test]
    fn the_largest_is_first_and_an_error_ends_it() {
        let order = Mutex::new(Vec::new());
        let make = |i: usize| {
            order.lock().unwrap().push(i);
            if i == 2 { Err(anyhow::anyhow!("two")) } else { Ok(i) }
        };
        let error = finish(&items(&["a", "b", "c", "d"]), "points", &State::none("sweep"), 1, make);
        assert_eq!(error.unwrap_err().to_string(), "two");
        assert_eq!(order.into_inner().unwrap(), [3, 2]);
    }
}
