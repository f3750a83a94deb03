//! `coreward shadow`: runs the policy beside the kernel's own placement, which it only watches.

mod count;
mod json;
mod names;
mod sync;
mod table;

use std::fs;
use std::io::{IsTerminal, Write, stdout};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use coreward_input::printable_json;
use coreward_live_args::{By, Policy, Shadow};
use coreward_policy::{Assignment, Feature, Profile};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject};

use crate::machine::LiveMachine;
use crate::skel::shadow::{ShadowSkel, ShadowSkelBuilder};
use crate::{kernel, policy};
use count::{Share, Totals};

/// How often the table is drawn.
const REDRAW: Duration = Duration::from_secs(1);
/// How often it checks whether it has to end.
const POLL: Duration = Duration::from_millis(50);

/// What the programs have counted since they started.
#[derive(Clone, Default)]
struct Counted {
    totals: Totals,
    /// By command or cgroup, if that was asked for.
    shares: Vec<(String, Share)>,
}

/// Watches until the time is over or a signal comes.
///
/// # Errors
/// The arguments are wrong, or the kernel does not load the programs.
pub(crate) fn run(args: &Shadow) -> Result<()> {
    let machine = LiveMachine::load()?;
    let mut options = args.options.clone();
    let profile = match &args.profile {
        Some(name) => name.clone(),
        None => {
            let is_set = options.set.iter().any(|set| set.name == "vcpu_pack");
            let packed = |bits: u8| Assignment { name: "vcpu_pack".to_owned(), value: bits.into() };
            options.set.extend(machine.machine.vcpu_pack.filter(|_| !is_set).map(packed));
            running_profile()?
        }
    };
    let named = Policy { profile, options };
    let (settings, profile) = policy::settings(&named, &[])?;
    kernel::has_bpf()?;
    let system = policy::system(&machine, &settings, profile)?;

    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    ctrlc::set_handler(move || end.store(true, Ordering::Relaxed)).context("cannot wait for signals")?;

    let mut open_object = MaybeUninit::<OpenObject>::uninit();
    let mut builder = ShadowSkelBuilder::default();
    builder.obj_builder.debug(args.verbose);
    let mut skel = builder.open(&mut open_object)?;
    let prefers_llc = settings.sched_feat(Feature::CACHE_AWARE_WAKEUP);
    skel.progs.stat_runtime.set_autoload(prefers_llc);
    if !prefers_llc {
        // the memory is allocated immediately
        skel.maps.processes.set_max_entries(1)?;
    }
    let bss = skel.maps.bss_data.as_mut().context("the programs have no data")?;
    policy::copy_system(&mut bss.sys, &system);
    let setup = &mut skel.maps.rodata_data.as_mut().context("the programs have no constants")?.setup;
    setup.by = args.by.map_or(0, |by| by as u32);
    let ranges = sync::ranges();
    if ranges.is_empty() {
        eprintln!(
            "coreward: /proc/kallsyms shows no addresses, so wakeups by a task that is about to sleep are not told apart"
        );
    }
    setup.nr_sync = ranges.len() as u32;
    for (to, range) in setup.sync.iter_mut().zip(&ranges) {
        (to.start, to.size) = *range;
    }
    let mut skel = skel.load().context("the kernel does not load the programs")?;
    skel.attach().context("the kernel does not attach the programs")?;
    visit_cpus();
    // scripts that start a load wait for this line
    eprintln!("coreward watches {} CPUs", system.nr_cpus);
    watch(&skel, args, &named, &ended)
}

fn watch(skel: &ShadowSkel<'_>, args: &Shadow, named: &Policy, ended: &AtomicBool) -> Result<()> {
    let (start, first) = (Instant::now(), counted(skel, args)?);
    let (mut drawn_at, mut drawn) = (start, first.clone());
    let live = !args.json && stdout().is_terminal();
    let over = |now: Instant| args.duration.is_some_and(|s| now - start >= Duration::from_secs_f64(s));
    while !ended.load(Ordering::Relaxed) && !over(Instant::now()) {
        thread::sleep(POLL);
        if live && drawn_at.elapsed() >= REDRAW {
            let now = counted(skel, args)?;
            let since = now.since(&drawn);
            // from the upper left corner, clearing everything below
            print!("\x1b[H\x1b[J{}", table::render(named, drawn_at.elapsed(), &since, args.by));
            stdout().flush()?;
            (drawn_at, drawn) = (Instant::now(), now);
        }
    }
    let (elapsed, all) = (start.elapsed(), counted(skel, args)?.since(&first));
    if args.json {
        let text = serde_json::to_string_pretty(&json::report(named, elapsed, &all, args.by))?;
        println!("{}", printable_json(&text));
    } else {
        print!("{}{}", if live { "\x1b[H\x1b[J" } else { "" }, table::render(named, elapsed, &all, args.by));
    }
    Ok(())
}

/// The profile of the running kernel, or the nearest older one.
fn running_profile() -> Result<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").context("/proc/sys/kernel/osrelease")?;
    Ok(Profile::of_kernel(release.trim()).0.name().to_owned())
}

/// Runs on each CPU for a moment, because the state of a CPU is not known before it has switched tasks.
fn visit_cpus() {
    // SAFETY: plain system calls on a set that is initialised
    unsafe {
        let mut own: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &raw mut own) != 0 {
            return;
        }
        for cpu in 0..libc::CPU_SETSIZE as usize {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut one);
            libc::sched_setaffinity(0, size, &raw const one);
        }
        libc::sched_setaffinity(0, size, &raw const own);
    }
}

fn counted(skel: &ShadowSkel<'_>, args: &Shadow) -> Result<Counted> {
    let key = 0u32.to_ne_bytes();
    let cpus = skel.maps.totals.lookup_percpu(&key, MapFlags::ANY)?.context("the programs count nothing")?;
    let mut totals = Totals::default();
    for cpu in &cpus {
        totals.add(&Totals::read(cpu));
    }
    let mut shares = Vec::new();
    let cgroups = match args.by {
        Some(By::Cgroup) => names::cgroups(),
        _ => Default::default(),
    };
    for key in skel.maps.shares.keys() {
        let Some(value) = skel.maps.shares.lookup(&key, MapFlags::ANY)? else { continue };
        let name = match args.by {
            Some(By::Cgroup) => names::cgroup(&cgroups, &key),
            _ => names::comm(&key),
        };
        shares.push((name, Share::read(&value)));
    }
    Ok(Counted { totals, shares })
}

impl Counted {
    /// What was counted after `before`.
    fn since(&self, before: &Counted) -> Counted {
        let mut totals = self.totals;
        totals.subtract(&before.totals);
        let mut shares = self.shares.clone();
        for (name, share) in &mut shares {
            if let Some((_, old)) = before.shares.iter().find(|(other, _)| other == name) {
                share.subtract(old);
            }
        }
        shares.retain(|(_, share)| share.decisions > 0);
        shares.sort_by(|a, b| b.1.decisions.cmp(&a.1.decisions).then_with(|| a.0.cmp(&b.0)));
        Counted { totals, shares }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_told_apart_by_name_and_only_what_moved_is_kept() {
        let share = |decisions| Share { decisions, ..Share::default() };
        let before =
            Counted { shares: vec![("a".into(), share(3)), ("b".into(), share(1))], ..Counted::default() };
        let after = Counted {
            shares: vec![("a".into(), share(5)), ("b".into(), share(1)), ("c".into(), share(4))],
            ..Counted::default()
        };
        let since: Vec<_> =
            after.since(&before).shares.iter().map(|(n, s)| (n.clone(), s.decisions)).collect();
        assert_eq!(since, [("c".to_owned(), 4), ("a".to_owned(), 2)]);
    }
}
