//! scratch
#![allow(missing_docs)]
use coreward_engine::*;
use coreward_machine::*;
use coreward_policy::*;
use coreward_workload::{Scale, parse};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let mut machine = Machine::load(&a[1]).unwrap();
    let topology = Topology::build(&machine, &DomainOptions::default()).unwrap();
    let workload = parse(&a[2], Scale(a[3].parse().unwrap())).unwrap();
    let profile = Profile::by_name(&a[4]).unwrap();
    let mut tg = true;
    let mut runs = vec![];
    let mut f = profile.features();
    for x in &a[5..] {
        if let Some((k, v)) = x.split_once('=') {
            machine.costs.set(k, v.parse().unwrap()).unwrap();
        } else if x == "root" {
            tg = false
        } else {
            let i = FEATURES.iter().position(|g| g.name == x).unwrap();
            f ^= 1 << i;
        }
    }
    runs.push(f);
    runs.push(f | 1);
    for f in runs {
        let t = std::time::Instant::now();
        let s = Settings {
            policy: PolicySettings { features: f, tunables: default_tunables() },
            seed: 1,
            task_group: tg,
            limit_ns: 1_000_000_000_000,
        };
        let o = Simulation::new(&machine, &topology, &workload, &s, &mut NoTrace).unwrap().run().unwrap();
        let el = t.elapsed().as_secs_f64();
        println!("== {:.2}s wall, {} events, {:.2} M/s", el, o.events, o.events as f64 / el / 1e6);
        for (m, v) in o.metrics.iter() {
            print!("{}={:.5} ", m.name(), v);
        }
        println!();
        for (r, n) in o.reasons() {
            print!("{}={} ", r.name(), n);
        }
        println!();
    }
}
