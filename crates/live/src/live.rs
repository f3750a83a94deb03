//! `coreward live`: loads the scheduler, and stays until it is told to stop or the kernel ejects it.

use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use coreward_live_args::Live;
use coreward_policy::{Feature, PolicySettings, Profile};
use libbpf_rs::OpenObject;
use scx_utils::{UserExitInfo, compat, scx_ops_attach, scx_ops_load, scx_ops_open, uei_exited, uei_report};

use crate::machine::LiveMachine;
use crate::metrics::MetricsFile;
use crate::running::Running;
use crate::setting::Asked;
use crate::skel::live::LiveSkelBuilder;
use crate::skel::live::types::live_stats;
use crate::socket::{self, Server};
use crate::stats::{self, Request, Response};
use crate::{kernel, policy};

/// How often it checks whether it has to end.
const POLL: Duration = Duration::from_millis(100);

/// `offline[]` of a CPU that was offline when the machine was read (`bpf/live/live.bpf.c`).
const UNPLACED: u32 = 2;

/// The features that it has on in addition to those of the kernel.
const OWN_FEATURES: [Feature; 1] = [Feature::SYNC_ON_WAKER];

/// Schedules until a signal comes. A CPU that comes online for the first time makes it restart.
///
/// # Errors
/// The arguments are wrong, the kernel does not load the scheduler, or has ended it for a fault.
pub(crate) fn run(args: &Live) -> Result<()> {
    let (mut settings, profile) = policy::settings(&args.policy, &OWN_FEATURES)?;
    kernel::has_sched_ext()?;
    kernel::has_bpf()?;
    let lock = socket::lock(Path::new(socket::DIRECTORY))?;
    // reports wrong settings before anything is served
    policy::system(&LiveMachine::load()?, &settings, profile)?;
    let every = Duration::from_secs(args.metrics_interval);
    let metrics = args.metrics.as_deref().map(|path| MetricsFile::create(path, every)).transpose()?;

    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    ctrlc::set_handler(move || end.store(true, Ordering::Relaxed)).context("cannot wait for signals")?;
    let server = lock.serve()?;
    let settings_asked = lock.serve_settings()?;
    let mut served = Served { statistics: &server, settings: &settings_asked, metrics };
    let mut interval = args.stats.map(Duration::from_secs);
    let mut counted = Vec::new();
    loop {
        let begun = || {
            if let Some(interval) = interval.take() {
                thread::spawn(move || stats::monitor(interval));
            }
        };
        let exit = schedule(args, &mut settings, profile, &mut counted, &mut served, &ended, begun)?;
        if ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !exit.should_restart() {
            bail!("the kernel has ended the scheduler");
        }
    }
}

/// What others may ask of the scheduler, and read.
struct Served<'a> {
    statistics: &'a Server,
    settings: &'a Receiver<Asked>,
    metrics: Option<MetricsFile>,
}

/// Loads the scheduler for the online CPUs, and answers requests until it ends. The counters
/// continue from `counted`.
fn schedule(
    args: &Live,
    settings: &mut PolicySettings,
    profile: Profile,
    counted: &mut Vec<live_stats>,
    served: &mut Served,
    ended: &AtomicBool,
    begun: impl FnOnce(),
) -> Result<UserExitInfo> {
    let mut open_object = MaybeUninit::<OpenObject>::uninit();
    let mut builder = LiveSkelBuilder::default();
    builder.obj_builder.debug(args.verbose);
    // if a CPU comes or goes from here on, the kernel does not load the scheduler, and says that it may restart
    let mut skel = scx_ops_open!(
        builder,
        &mut open_object,
        live_ops,
        None::<libbpf_rs::libbpf_sys::bpf_object_open_opts>
    )?;
    let live = LiveMachine::load()?;
    let mut system = policy::system(&live, settings, profile)?;
    let bss = skel.maps.bss_data.as_mut().context("the programs have no data")?;
    for (cpu, offline) in bss.offline.iter_mut().enumerate().filter(|(cpu, _)| !live.online.contains(*cpu)) {
        *offline = UNPLACED;
        // it looks busy, as one that goes offline later does
        system.cpu[cpu].nr_running = 1;
    }
    policy::copy_system(&mut bss.sys, &system);
    bss.stats[..counted.len()].copy_from_slice(counted);
    let ops = skel.struct_ops.live_ops_mut();
    if args.partial {
        ops.flags |= *compat::SCX_OPS_SWITCH_PARTIAL;
    }
    let mut skel = scx_ops_load!(skel, live_ops, uei)?;
    let link = scx_ops_attach!(skel, live_ops).map_err(|error| match kernel::scheduler() {
        Some(name) => anyhow!("another sched_ext scheduler, {name}, was loaded meanwhile: end it first"),
        None => error,
    })?;
    println!("coreward schedules CPUs {}", live.online);
    begun();
    let (answer, ask) = served.statistics.channels();
    while !ended.load(Ordering::Relaxed) && !uei_exited!(&skel, uei) {
        let request = ask.recv_timeout(POLL);
        let bss = skel.maps.bss_data.as_mut().context("the programs have no data")?;
        let mut running = Running::new(bss, &live, settings, profile);
        if let Some(file) = &mut served.metrics {
            file.update(|| running.metrics());
        }
        for asked in served.settings.try_iter() {
            let refused = running.set(&asked.name, asked.value).err().map(|error| format!("{error:#}"));
            asked.answer(refused);
        }
        if let Ok(request) = request {
            answer.send(respond(&mut running, request)).context("the statistics are not served any more")?;
        }
    }
    drop(link);
    *counted = skel.maps.bss_data.as_ref().context("the programs have no data")?.stats.to_vec();
    uei_report!(&skel, uei)
}

fn respond(running: &mut Running, request: Request) -> Response {
    let done = match request {
        Request::Metrics => return Response::Metrics(Box::new(running.metrics())),
        Request::Get(name) => running.get(name.as_deref()).map_err(anyhow::Error::from),
    };
    done.map_or_else(|error| Response::Refused(format!("{error:#}")), Response::Settings)
}
