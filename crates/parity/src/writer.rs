//! Writes a capture file. The recorder has its own writer; this one creates files for tests and tools.

use std::io::{self, Write};

use crate::format::{END_WITHOUT_STEPS, End, Field, FrameHeader, FrameType, Header, MAGIC, VERSION};
use crate::record::{Record, RecordedMachine};

/// A capture file that is being written.
pub struct Writer<W> {
    output: W,
    nr_cpus: usize,
    end: End,
}

impl<W: Write> Writer<W> {
    /// Writes everything up to the first decision.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn new(output: W, machine: &RecordedMachine) -> io::Result<Self> {
        let mut writer = Writer { output, nr_cpus: machine.host.nr_cpus, end: End::default() };
        let mut header = Vec::new();
        Header { magic: MAGIC, version: VERSION, pad: 0 }.put(&mut header);
        writer.output.write_all(&header)?;
        writer.frame(FrameType::Host, &machine.host.encode())?;
        for cpu in &machine.cpus {
            writer.frame(FrameType::Cpu, &cpu.encode(writer.nr_cpus))?;
        }
        for domain in machine.domains.iter().flatten() {
            writer.frame(FrameType::Domain, &domain.encode(writer.nr_cpus))?;
        }
        Ok(writer)
    }

    /// Writes one decision.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        match record {
            Record::Placement(placement) => {
                self.end.placements += 1;
                self.frame(FrameType::Placement, &placement.encode(self.nr_cpus))
            }
            Record::Balance(balance) => {
                self.end.balances += 1;
                self.frame(FrameType::Balance, &balance.encode(self.nr_cpus))
            }
            Record::Queue(queue) => {
                self.end.queues += 1;
                let mut bytes = Vec::new();
                queue.put(&mut bytes);
                self.frame(FrameType::Queue, &bytes)
            }
            Record::Step(step) => {
                self.end.steps += 1;
                self.frame(FrameType::Step, &step.encode())
            }
        }
    }

    /// Writes the end, with the number of decisions that were lost.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn finish(mut self, lost: u64) -> io::Result<W> {
        let mut bytes = Vec::new();
        End { lost, ..self.end }.put(&mut bytes);
        if self.end.steps == 0 {
            bytes.truncate(END_WITHOUT_STEPS);
        }
        self.frame(FrameType::End, &bytes)?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn frame(&mut self, kind: FrameType, payload: &[u8]) -> io::Result<()> {
        let mut header = Vec::new();
        let length = payload.len() as u32;
        FrameHeader { kind: kind as u32, length, checksum: crc32fast::hash(payload), pad: 0 }
            .put(&mut header);
        self.output.write_all(&header)?;
        self.output.write_all(payload)
    }
}
