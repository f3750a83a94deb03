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
    let mut tg = 3;
    let mut runs = vec![];
    let mut f = profile.features();
    for x in &a[5..] {
        if let Some((k, v)) = x.split_once('=') {
            machine.costs.set(k, v.parse().unwrap()).unwrap();
        } else if x.starts_with("tg") {
            tg = x[2..].parse().unwrap()
        } else {
            let i = FEATURES.iter().position(|g| g.name == x).unwrap();
            f ^= 1 << i;
        }
    }
    runs.push(f);
    runs.push(f | 1);
    let seeds: u64 = std::env::var("SEEDS").map_or(2, |s| s.parse().unwrap());
    let (machine, topology, workload) = (&machine, &topology, &workload);
    for f in runs {
        let hs: Vec<_> = std::thread::scope(|sc| {
            (0..seeds)
                .map(|seed| {
                    sc.spawn(move || {
                        let s = Settings {
                            policy: PolicySettings { features: f, tunables: default_tunables() },
                            seed,
                            task_group_depth: tg,
                            limit_ns: 1_000_000_000_000,
                        };
                        Simulation::new(machine, topology, workload, &s, &mut NoTrace).unwrap().run().unwrap()
                    })
                })
                .collect::<Vec<_>>()
                .into_iter()
                .map(|h| h.join().unwrap())
                .collect()
        });
        for (m, _) in hs[0].metrics.iter() {
            let v: f64 = hs.iter().map(|o| o.metrics.get(m).unwrap()).sum::<f64>() / seeds as f64;
            print!("{}={:.4} ", m.name(), v);
        }
        println!();
        for (r, n) in hs[0].reasons() {
            print!("{}={} ", r.name(), n);
        }
        println!();
    }
}
