//! `coreward live`: loads the scheduler, and stays until it is told to go or the kernel throws it out.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use libbpf_rs::OpenObject;
use scx_stats::StatsServer;
use scx_utils::{UserExitInfo, compat, scx_ops_attach, scx_ops_load, scx_ops_open, uei_exited, uei_report};

use crate::running::Running;
use crate::skel::live::LiveSkelBuilder;
use crate::stats::{self, Request, Response};
use crate::{cli, kernel, metrics, policy};

/// How often it looks whether it has to end.
const POLL: Duration = Duration::from_millis(100);

/// Schedules until a signal comes.
///
/// # Errors
/// The arguments are wrong, the kernel does not load the scheduler, or has ended it for a fault.
pub(crate) fn run(args: &cli::Live) -> Result<()> {
    let (mut settings, names) = policy::settings(&args.policy)?;
    kernel::has_sched_ext()?;
    kernel::has_bpf()?;
    let system = policy::system(&settings, names)?;

    let metrics = args.metrics.map(metrics::bind).transpose()?;

    let mut open_object = MaybeUninit::<OpenObject>::uninit();
    let mut builder = LiveSkelBuilder::default();
    builder.obj_builder.debug(args.verbose);
    let mut skel = scx_ops_open!(
        builder,
        &mut open_object,
        live_ops,
        None::<libbpf_rs::libbpf_sys::bpf_object_open_opts>
    )?;
    let bss = skel.maps.bss_data.as_mut().context("the programs have no data")?;
    policy::copy_system(&mut bss.sys, &system);
    let rodata = skel.maps.rodata_data.as_mut().context("the programs have no constants")?;
    rodata.slice_factor = 1 + system.nr_cpus.clamp(1, 8).ilog2();
    let ops = skel.struct_ops.live_ops_mut();
    if args.partial {
        ops.flags |= *compat::SCX_OPS_SWITCH_PARTIAL;
    }
    let mut skel = scx_ops_load!(skel, live_ops, uei)?;
    let link = scx_ops_attach!(skel, live_ops)?;

    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    ctrlc::set_handler(move || end.store(true, Ordering::Relaxed)).context("cannot wait for signals")?;
    let server = StatsServer::new(stats::server_data()).launch().context("cannot serve statistics")?;
    if let Some(seconds) = args.stats {
        thread::spawn(move || stats::monitor(Duration::from_secs(seconds)));
    }
    if let Some(server) = metrics {
        thread::spawn(move || metrics::serve(&server));
    }
    println!("coreward schedules {} CPUs", system.nr_cpus);
    let (answer, ask) = server.channels();
    while !ended.load(Ordering::Relaxed) && !uei_exited!(&skel, uei) {
        let Ok(request) = ask.recv_timeout(POLL) else { continue };
        let bss = skel.maps.bss_data.as_mut().context("the programs have no data")?;
        let response = respond(&mut Running::new(bss, &mut settings, names), request);
        answer.send(response).context("the statistics are not served any more")?;
    }
    drop(link);
    let exit: Result<UserExitInfo> = uei_report!(&skel, uei);
    exit?;
    if !ended.load(Ordering::Relaxed) {
        bail!("the kernel has ended the scheduler");
    }
    Ok(())
}

fn respond(running: &mut Running, request: Request) -> Response {
    let done = match request {
        Request::Metrics => return Response::Metrics(Box::new(running.metrics())),
        Request::Get(name) => running.get(name.as_deref()).map_err(anyhow::Error::from),
        Request::Set(name, value) => running.set(&name, value).map(|()| BTreeMap::new()),
    };
    done.map_or_else(|error| Response::Refused(format!("{error:#}")), Response::Settings)
}
