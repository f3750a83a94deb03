//! `coreward top`: shows what the running scheduler does, as a table or as JSON.

mod view;

use std::io::{IsTerminal, stdout};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use coreward_live_args::Top;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use scx_stats::StatsClient;
use serde_json::json;

use crate::policy::WrongArgument;
use crate::stats::{self, Metrics};
use view::View;

/// The number of rows that PageUp and PageDown move.
const PAGE: usize = 10;

/// Shows the counters of each interval until q is pressed, or prints those of one interval.
///
/// # Errors
/// No scheduler runs, or it ends; standard output is not a terminal and `--once` was not asked for.
pub(crate) fn run(args: &Top) -> Result<()> {
    let interval = Duration::from_secs_f64(args.interval);
    if !args.once && !args.json && !stdout().is_terminal() {
        return Err(WrongArgument("standard output is not a terminal: use --once or --json".into()).into());
    }
    let mut client = stats::connect()?;
    let mut asked = Instant::now();
    ask(&mut client)?; // what was counted before
    if !args.once && !args.json {
        return watch(&mut client, interval, asked);
    }
    thread::sleep(interval);
    let view = View { metrics: ask(&mut client)?, seconds: since(&mut asked) };
    if args.json {
        println!("{}", json!({ "seconds": view.seconds, "metrics": view.metrics }));
    } else {
        print!("{}", view.text());
    }
    Ok(())
}

/// What was counted since the request before.
fn ask(client: &mut StatsClient) -> Result<Metrics> {
    stats::request(client, Vec::new())
}

/// Seconds since then, from now on.
fn since(then: &mut Instant) -> f64 {
    let seconds = then.elapsed().as_secs_f64();
    *then = Instant::now();
    seconds
}

fn watch(client: &mut StatsClient, interval: Duration, mut asked: Instant) -> Result<()> {
    let mut terminal = ratatui::try_init().context("the terminal cannot be set up")?;
    let shown = show(&mut terminal, client, interval, &mut asked);
    ratatui::restore();
    shown
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    client: &mut StatsClient,
    interval: Duration,
    asked: &mut Instant,
) -> Result<()> {
    let mut view = View::default();
    let mut scrolled = 0_usize;
    loop {
        terminal.draw(|frame| view.draw(frame.area(), scrolled, frame.buffer_mut()))?;
        let left = interval.saturating_sub(asked.elapsed());
        if left.is_zero() {
            view = View { metrics: ask(client)?, seconds: since(asked) };
        } else if event::poll(left)?
            && let Event::Key(key) = event::read()?
        {
            scrolled = match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                KeyCode::Up => scrolled.saturating_sub(1),
                KeyCode::PageUp => scrolled.saturating_sub(PAGE),
                KeyCode::Down => scrolled + 1,
                KeyCode::PageDown => scrolled + PAGE,
                KeyCode::Home => 0,
                _ => scrolled,
            }
            .min(view.rows().saturating_sub(1));
        }
    }
}
