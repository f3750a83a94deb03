//! Track events: instants with arguments, the flows between them, and counters.

use std::io::Write;

use super::proto::Message;
use super::{PACKET_SEQUENCE_ID, PACKET_TIMESTAMP, SEQUENCE_ID, Thread, TraceError, TraceWriter};

/// Of `trace_packet.proto`.
const PACKET_TRACK_EVENT: u32 = 11;
const PACKET_TRACK_DESCRIPTOR: u32 = 60;
/// Of `track_event/track_descriptor.proto`.
const DESCRIPTOR_UUID: u32 = 1;
const DESCRIPTOR_NAME: u32 = 2;
const DESCRIPTOR_THREAD: u32 = 4;
const DESCRIPTOR_COUNTER: u32 = 8;
/// Of `track_event/track_event.proto`.
const EVENT_DEBUG_ANNOTATION: u32 = 4;
const EVENT_TYPE: u32 = 9;
const EVENT_TRACK: u32 = 11;
const EVENT_CATEGORY: u32 = 22;
const EVENT_NAME: u32 = 23;
const EVENT_COUNTER_VALUE: u32 = 30;
const EVENT_FLOW: u32 = 47;
const EVENT_TERMINATING_FLOW: u32 = 48;
const TYPE_INSTANT: u64 = 3;
const TYPE_COUNTER: u64 = 4;
/// Of `track_event/debug_annotation.proto`.
const ANNOTATION_INT: u32 = 4;
const ANNOTATION_STRING: u32 = 6;
const ANNOTATION_NAME: u32 = 10;

/// A track of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track(u64);

impl Track {
    /// That of a thread, below its states.
    pub fn thread(tid: i32) -> Track {
        Track(1 << 32 | u64::from(tid as u32))
    }

    /// One for a CPU.
    pub fn cpu(cpu: u32) -> Track {
        Track(2 << 32 | u64::from(cpu))
    }

    /// A counter by its number.
    pub fn counter(number: u32) -> Track {
        Track(3 << 32 | u64::from(number))
    }
}

/// The value of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number.
    Int(i64),
    /// A text.
    Text(&'a str),
}

/// What an arrow does at an instant; each has a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// There is none.
    None,
    /// It begins.
    Begins(u64),
    /// It ends.
    Ends(u64),
}

/// Something that happened at one time.
#[derive(Clone, Copy, Debug)]
pub struct Instant<'a> {
    /// What happened.
    pub name: &'a str,
    /// What kind of event it is.
    pub category: &'a str,
    /// More about it.
    pub args: &'a [(&'a str, Value<'a>)],
    /// The arrow there.
    pub flow: Flow,
}

impl<W: Write> TraceWriter<W> {
    /// Describes the track of a thread.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn thread_track(&mut self, thread: &Thread<'_>) -> Result<(), TraceError> {
        // track_event/thread_descriptor.proto
        let of = Message::default().int(1, thread.tgid.into()).int(2, thread.tid.into()).text(5, thread.name);
        let descriptor = Message::default().uint(DESCRIPTOR_UUID, Track::thread(thread.tid).0);
        self.describe(&descriptor.message(DESCRIPTOR_THREAD, &of))
    }

    /// Describes a track that is neither a thread's nor a counter.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn named_track(&mut self, track: Track, name: &str) -> Result<(), TraceError> {
        self.describe(&Message::default().uint(DESCRIPTOR_UUID, track.0).text(DESCRIPTOR_NAME, name))
    }

    /// Describes a counter and its unit.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn counter_track(&mut self, track: Track, name: &str, unit: &str) -> Result<(), TraceError> {
        // track_event/counter_descriptor.proto
        let counter = Message::default().text(6, unit);
        let descriptor = Message::default().uint(DESCRIPTOR_UUID, track.0).text(DESCRIPTOR_NAME, name);
        self.describe(&descriptor.message(DESCRIPTOR_COUNTER, &counter))
    }

    /// Something happens on a track that was described.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn instant(&mut self, timestamp: u64, track: Track, what: &Instant<'_>) -> Result<(), TraceError> {
        let mut event = Message::default().uint(EVENT_TYPE, TYPE_INSTANT).uint(EVENT_TRACK, track.0);
        event = event.text(EVENT_CATEGORY, what.category).text(EVENT_NAME, what.name);
        for (name, value) in what.args {
            let annotation = Message::default().text(ANNOTATION_NAME, name);
            let annotation = match value {
                Value::Int(number) => annotation.int(ANNOTATION_INT, *number),
                Value::Text(text) => annotation.text(ANNOTATION_STRING, text),
            };
            event = event.message(EVENT_DEBUG_ANNOTATION, &annotation);
        }
        event = match what.flow {
            Flow::None => event,
            Flow::Begins(id) => event.fixed64(EVENT_FLOW, id),
            Flow::Ends(id) => event.fixed64(EVENT_TERMINATING_FLOW, id),
        };
        self.track_event(timestamp, &event)
    }

    /// A counter that was described has a new value.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn counter(&mut self, timestamp: u64, track: Track, value: i64) -> Result<(), TraceError> {
        let event = Message::default().uint(EVENT_TYPE, TYPE_COUNTER).uint(EVENT_TRACK, track.0);
        self.track_event(timestamp, &event.int(EVENT_COUNTER_VALUE, value))
    }

    fn describe(&mut self, descriptor: &Message) -> Result<(), TraceError> {
        let packet = Message::default().message(PACKET_TRACK_DESCRIPTOR, descriptor);
        self.packet(&packet.uint(PACKET_SEQUENCE_ID, SEQUENCE_ID))
    }

    fn track_event(&mut self, timestamp: u64, event: &Message) -> Result<(), TraceError> {
        let packet = Message::default().uint(PACKET_TIMESTAMP, timestamp);
        self.packet(&packet.message(PACKET_TRACK_EVENT, event).uint(PACKET_SEQUENCE_ID, SEQUENCE_ID))
    }
}
