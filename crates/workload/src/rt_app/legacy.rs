//! The grammar of rt-app before 2014, which its `doc/examples/merge` still has.
//!
//! Each period a thread takes the resources of `lock_order` one after the other: it locks those in
//! `access`, does what the resource is for (a mutex is locked, a `wait` waits, a `signal` or `broadcast`
//! wakes those who wait for its `target`), works for `duration`, and unlocks. Then it does the rest of
//! its `exec` us and sleeps until the next `period`. Resources are declared with their types.

use super::json::{Json, Value};
use super::task::{MAX_US, Phase, Reader, Step};
use super::{Refusal, integer, members, string};
use crate::program::Op;

/// Largest number of resources that a thread takes in a period.
const MAX_TAKEN: usize = 1000;

type Members<'a> = &'a [(String, Json)];

fn member<'a>(all: Members<'a>, name: &str) -> Option<&'a Json> {
    all.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Is a task written in this grammar?
pub(super) fn is(task: Members) -> bool {
    member(task, "exec").is_some()
}

/// What a resource is for, and the name of what it works on.
enum Kind<'a> {
    Mutex,
    Wait,
    Signal(&'a str),
    Broadcast(&'a str),
}

fn strings<'a>(json: &'a Json, field: &str) -> Result<Vec<&'a str>, Refusal> {
    match &json.value {
        Value::Array(items) if items.len() <= MAX_TAKEN => {
            items.iter().map(|item| string(item, field)).collect()
        }
        Value::Array(items) => {
            Err((json.line, format!("{field} has {} names (allowed: up to {MAX_TAKEN})", items.len())))
        }
        other => Err((json.line, format!("{field} is {}, not an array of names", other.kind()))),
    }
}

/// The declaration of a resource.
fn declared<'a>(resources: &[&'a Json], name: &str, line: usize, field: &str) -> Result<Kind<'a>, Refusal> {
    let mut found = None;
    for list in resources {
        found = member(members(list, "resources")?, name).or(found);
    }
    let missing = format!(
        "{field}: there is no resource '{name}' (allowed: rt-app FILE..., with the file whose resources declare it)"
    );
    let resource = found.ok_or((line, missing))?;
    let place = format!("resources.{name}");
    let all = members(resource, &place)?;
    let text = |key: &str| match member(all, key) {
        Some(json) => string(json, &format!("{place}.{key}")),
        None => Err((resource.line, format!("{place} has no {key}"))),
    };
    match text("type")? {
        "mutex" => Ok(Kind::Mutex),
        "wait" => Ok(Kind::Wait),
        "signal" => Ok(Kind::Signal(text("target")?)),
        "broadcast" => Ok(Kind::Broadcast(text("target")?)),
        kind => Err((
            resource.line,
            format!("{place}.type is \"{kind}\" (allowed: mutex, wait, signal, broadcast)"),
        )),
    }
}

/// The only phase of a task: one period.
pub(super) fn phase(
    task: Members,
    place: &str,
    resources: &[&Json],
    reader: &mut Reader,
) -> Result<Phase, Refusal> {
    let known = ["exec", "period", "deadline", "lock_order", "resources"];
    let common = ["instance", "delay", "loop", "policy", "priority", "cpus", "taskgroup"];
    for (key, value) in task {
        if !known.contains(&key.as_str()) && !common.contains(&key.as_str()) {
            let what = format!("{place}.{key} is not known (beside exec: {})", known.join(", "));
            return Err((value.line, what));
        }
    }
    let us = |key: &str| match member(task, key) {
        Some(json) => integer(json, &format!("{place}.{key}"), 0, MAX_US).map(|us| us as u64),
        None => Ok(0),
    };
    let (mut left, period) = (us("exec")?, us("period")?);
    us("deadline")?;
    let own = match member(task, "resources") {
        Some(json) => members(json, &format!("{place}.resources"))?,
        None => &[],
    };
    let mut steps = Vec::new();
    let order = member(task, "lock_order");
    let field = format!("{place}.lock_order");
    let line = order.map_or(1, |order| order.line);
    for name in order.map_or(Ok(Vec::new()), |order| strings(order, &field))? {
        let kind = declared(resources, name, line, &field)?;
        let (mut access, mut duration) = (Vec::new(), 0);
        if let Some(json) = member(own, name) {
            let place = format!("{place}.resources.{name}");
            for (key, value) in members(json, &place)? {
                let field = format!("{place}.{key}");
                match key.as_str() {
                    "duration" => duration = integer(value, &field, 0, MAX_US)? as u64,
                    "access" => access = strings(value, &field)?,
                    _ => {
                        return Err((
                            value.line,
                            format!("{field} is not known (allowed: duration, access)"),
                        ));
                    }
                }
            }
        }
        let mut mutexes: Vec<u32> = access.iter().map(|name| reader.tables.mutexes.number(name)).collect();
        steps.extend(mutexes.iter().map(|mutex| Op::Lock { mutex: *mutex }));
        match kind {
            Kind::Mutex => {
                let mutex = reader.tables.mutexes.number(name);
                mutexes.push(mutex);
                steps.push(Op::Lock { mutex });
            }
            Kind::Wait => {
                let Some(mutex) = mutexes.last().copied() else {
                    return Err((line, format!("{place}.resources.{name}: a wait needs access to a mutex")));
                };
                steps.push(Op::CondWait { cond: reader.tables.conds.number(name), mutex });
            }
            Kind::Signal(target) => steps.push(Op::Signal { cond: reader.tables.conds.number(target) }),
            Kind::Broadcast(target) => steps.push(Op::Broadcast { cond: reader.tables.conds.number(target) }),
        }
        if duration > 0 {
            steps.push(Op::Run { ns: reader.calibrated(duration * 1000) });
            left = left.saturating_sub(duration);
        }
        steps.extend(mutexes.iter().rev().map(|mutex| Op::Unlock { mutex: *mutex }));
    }
    if left > 0 {
        steps.push(Op::Run { ns: reader.calibrated(left * 1000) });
    }
    let mut steps: Vec<Step> = steps.into_iter().map(Step::Op).collect();
    steps.push(reader.own_timer("period", period * 1000, false));
    Ok(Phase { times: Some(1), cpus: None, steps })
}
