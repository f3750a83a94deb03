//! Which wakeups are requests and answers.
//!
//! A server takes a request, works, and wakes the task that made it. In another run it may take another one's request,
//! and then has to answer that one. A recording shows who was woken, which is less: a request that finds the server awake
//! wakes nobody, nor does an answer that comes before the client sleeps, and a server may be woken for what another one
//! has taken already. So where tasks mostly wake those that woke them before they wait there again, each wait for an
//! answer gets its request and each answer the taking of one, and wakeups for nothing are left out.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::channel::{Channels, Via};
use super::draft::{Draft, Unseen};
use super::message::Connections;

/// Least exchanges of a request and its answer. If servers woke whoever had woken them every other time by chance, two
/// of three would still be so in one of 20 cases, of 30 wakeups (binomial distribution); with fewer of them more often.
const EXCHANGES: usize = 20;

/// Where a task is woken.
#[derive(Default)]
struct Place {
    takers: BTreeSet<usize>,
    /// Who wakes, and how often.
    wakers: BTreeMap<usize, usize>,
    /// Wakeups that were waited for, and those of them whose waker was woken by the taker before the next.
    taken: usize,
    answered: usize,
}

/// Says where each wakeup goes.
struct Places<'a> {
    channels: &'a Channels,
    /// The class of each task.
    classes: &'a [u32],
    /// Of a task and the class of its wakers the only channel through which they do; none if there are several.
    usual: HashMap<(usize, u32), Option<Via>>,
}

impl<'a> Places<'a> {
    fn new(drafts: &[&mut Vec<Draft>], channels: &'a Channels, classes: &'a [u32]) -> Places<'a> {
        let mut usual: HashMap<(usize, u32), Option<Via>> = HashMap::new();
        for (taker, drafts) in drafts.iter().enumerate() {
            for draft in drafts.iter() {
                if let Draft::Await { task, via: Some(via), .. } = *draft
                    && channels.has(via)
                {
                    let known = usual.entry((taker, classes[task])).or_insert(Some(via));
                    *known = known.filter(|known| *known == via);
                }
            }
        }
        Places { channels, classes, usual }
    }

    /// A task that was not asleep yet when it was woken, or of which it is not known what it sleeps on, is woken where
    /// tasks of that class do so otherwise. `None` if that is not known.
    fn of(&self, taker: usize, waker: usize, via: Option<Via>) -> Option<Via> {
        let class = self.classes[waker];
        match via.filter(|via| self.channels.has(*via)) {
            Some(via) => Some(via),
            None => self.usual.get(&(taker, class)).copied().unwrap_or(Some(Via::Class(taker, class))),
        }
    }

    /// Of a draft of a task: the taker's place.
    fn of_draft(&self, index: usize, draft: &Draft) -> Option<Via> {
        match *draft {
            Draft::Await { task, via, .. } => self.of(index, task, via),
            Draft::Wake { task, via, .. } => self.of(task, index, via),
            _ => None,
        }
    }

    /// All places that tasks wait at.
    fn all(&self, drafts: &[&mut Vec<Draft>]) -> BTreeMap<Via, Place> {
        let mut all: BTreeMap<Via, Place> = BTreeMap::new();
        for (index, drafts) in drafts.iter().enumerate() {
            // the last waker at each place
            let mut open: HashMap<Via, usize> = HashMap::new();
            for draft in drafts.iter() {
                match *draft {
                    Draft::Await { task, .. } => {
                        let Some(via) = self.of_draft(index, draft) else { continue };
                        let place = all.entry(via).or_default();
                        place.takers.insert(index);
                        *place.wakers.entry(task).or_default() += 1;
                        place.taken += 1;
                        open.insert(via, task);
                    }
                    Draft::Wake { task, .. } => {
                        for (via, _) in open.iter().filter(|(_, waker)| **waker == task) {
                            all.entry(*via).or_default().answered += 1;
                        }
                        open.retain(|_, waker| *waker != task);
                    }
                    _ => {}
                }
            }
        }
        all
    }
}

/// Clients ask servers at one place, and await the answers at places of their own.
struct Relation {
    requests: Via,
    servers: BTreeSet<usize>,
    /// The clients.
    replies: BTreeMap<usize, Via>,
}

/// What a draft of a client or server is in a relation.
enum Part {
    Asks,
    Awaits,
    Takes(usize),
    Answers(usize),
    /// A server wakes another one for what there is besides.
    Passes,
}

/// What becomes of the drafts of a relation.
#[derive(Default)]
struct Edits {
    /// What did happen without a wakeup: before a task's draft.
    unseen: BTreeMap<(usize, usize), Vec<Unseen>>,
    /// Wakeups, and waits for them, that nothing came of.
    nothing: HashSet<(usize, usize)>,
    answers: HashSet<(usize, usize)>,
}

impl Relation {
    /// The relation of those that wait at a place and those that wake them there. `None` if a client awaits answers at
    /// several places, or where others wait, too; or if more than one wakeup of twenty is by a task that awaits none.
    fn at(
        via: Via,
        all: &BTreeMap<Via, Place>,
        places: &Places<'_>,
        drafts: &[&mut Vec<Draft>],
    ) -> Option<Relation> {
        let Place { takers: servers, wakers, taken, .. } = &all[&via];
        let (mut replies, mut without_answer) = (BTreeMap::new(), 0);
        for (client, wakeups) in wakers.iter().filter(|(waker, _)| !servers.contains(waker)) {
            let mut places = drafts[*client].iter().filter_map(|draft| match draft {
                Draft::Await { task, .. } if servers.contains(task) => Some(places.of_draft(*client, draft)),
                _ => None,
            });
            let Some(place) = places.next() else {
                without_answer += wakeups;
                continue;
            };
            let place = place?;
            let alone = all.get(&place).is_some_and(|place| place.takers.len() == 1);
            if !alone || places.any(|other| other != Some(place)) {
                return None;
            }
            replies.insert(*client, place);
        }
        (replies.len() > 1 && 20 * without_answer <= *taken).then(|| Relation {
            requests: via,
            servers: servers.clone(),
            replies,
        })
    }

    /// Does a client have several connections with a server? Each may have a request, and which one an answer is for decides
    /// what the client does then.
    fn has_several_at_once(&self, connections: &Connections) -> bool {
        let several = |client| self.servers.iter().any(|server| connections.several(client, *server));
        self.replies.keys().any(|client| several(*client))
    }

    fn part(&self, index: usize, draft: &Draft, places: &Places<'_>) -> Option<Part> {
        let place = places.of_draft(index, draft)?;
        let (server, reply) = (self.servers.contains(&index), self.replies.get(&index));
        match *draft {
            Draft::Await { task, .. } | Draft::Wake { task, .. }
                if server && place == self.requests && self.servers.contains(&task) =>
            {
                Some(Part::Passes)
            }
            Draft::Await { task, .. } if server && place == self.requests => {
                self.replies.contains_key(&task).then_some(Part::Takes(task))
            }
            Draft::Wake { task, .. } if server => {
                (self.replies.get(&task) == Some(&place)).then_some(Part::Answers(task))
            }
            Draft::Wake { task, .. } if place == self.requests => {
                (reply.is_some() && self.servers.contains(&task)).then_some(Part::Asks)
            }
            Draft::Await { task, .. } if reply == Some(&place) => {
                self.servers.contains(&task).then_some(Part::Awaits)
            }
            _ => None,
        }
    }

    fn parts<'a>(
        &'a self,
        index: usize,
        drafts: &'a [Draft],
        places: &'a Places<'_>,
    ) -> impl Iterator<Item = (usize, Part)> + 'a {
        let part = move |(at, draft)| Some((at, self.part(index, draft, places)?));
        drafts.iter().enumerate().filter_map(part)
    }

    /// What makes each request one that is taken and answered. `None` if there are too few exchanges to tell; if the tasks
    /// do not mostly wake those that woke them: two of three times, as waits and as wakeups; or if clients ask again
    /// before they wait more than one time of four, which are several requests at once.
    fn edits(&self, places: &Places<'_>, drafts: &[&mut Vec<Draft>]) -> Option<Edits> {
        let mut edits = Edits::default();
        // of each client the requests after which it did not sleep before the next one: where both are
        let mut again: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        let (mut asked, mut asked_again) = (0, 0);
        for client in self.replies.keys() {
            let mut open = None;
            for (at, part) in self.parts(*client, drafts[*client], places) {
                match part {
                    Part::Asks => {
                        asked += 1;
                        if let Some(before) = open.replace(at) {
                            asked_again += 1;
                            again.entry(*client).or_default().push((before, at));
                        }
                    }
                    Part::Awaits if open.take().is_none() => {
                        edits.unseen.entry((*client, at)).or_default().push(Unseen::Post(self.requests));
                    }
                    _ => {}
                }
            }
        }
        let (mut taken, mut woken, mut answered) = (0, 0, 0);
        for server in &self.servers {
            let mut open: Option<(usize, usize)> = None;
            for (at, part) in self.parts(*server, drafts[*server], places) {
                match part {
                    Part::Takes(client) => {
                        taken += 1;
                        if let Some((of, before)) = open.replace((client, at)) {
                            self.unanswered(*server, of, before, at, &mut again, &mut edits);
                        }
                    }
                    Part::Answers(client) => {
                        woken += 1;
                        edits.answers.insert((*server, at));
                        if open.take_if(|(of, _)| *of == client).is_some() {
                            answered += 1;
                            continue;
                        }
                        // before the work for it
                        let works = at > 0 && matches!(drafts[*server][at - 1], Draft::Run { .. });
                        let before = edits.unseen.entry((*server, at - usize::from(works))).or_default();
                        before.push(Unseen::Request(self.requests));
                    }
                    Part::Passes => drop(edits.nothing.insert((*server, at))),
                    _ => {}
                }
            }
            if let Some((_, before)) = open {
                edits.nothing.insert((*server, before));
            }
        }
        for (client, left) in again {
            edits.nothing.extend(left.into_iter().map(|(_, at)| (client, at)));
        }
        let mostly = 3 * answered >= 2 * taken && 3 * answered >= 2 * woken && 4 * asked_again <= asked;
        (mostly && answered >= EXCHANGES).then_some(edits)
    }

    /// A request that a server took did not wake its client: that one was awake, or another server had taken it.
    fn unanswered(
        &self,
        server: usize,
        client: usize,
        taken: usize,
        next: usize,
        again: &mut BTreeMap<usize, Vec<(usize, usize)>>,
        edits: &mut Edits,
    ) {
        let Some((asked, _)) = again.get_mut(&client).and_then(Vec::pop) else {
            edits.nothing.insert((server, taken));
            return;
        };
        edits.unseen.entry((server, next)).or_default().insert(0, Unseen::Answer);
        edits.unseen.entry((client, asked + 1)).or_default().insert(0, Unseen::Take(self.replies[&client]));
    }

    /// Marks the requests and answers among the drafts of all tasks. Returns the places where messages of sockets come now.
    fn apply(&self, edits: &mut Edits, places: &Places<'_>, drafts: &mut [&mut Vec<Draft>]) -> BTreeSet<Via> {
        let mut sockets = BTreeSet::new();
        for index in self.servers.iter().chain(self.replies.keys()) {
            let mut edited = Vec::new();
            for (at, draft) in drafts[*index].iter().enumerate() {
                let unseen = edits.unseen.remove(&(*index, at)).into_iter().flatten();
                edited.extend(unseen.map(Draft::Unseen));
                let place = self.part(*index, draft, places).and(places.of_draft(*index, draft));
                let mut draft = *draft;
                if let Draft::Await { via: Some(via), .. } = draft
                    && places.channels.has_sockets(via)
                {
                    sockets.extend(place);
                }
                match &mut draft {
                    Draft::Await { via, request, nothing, .. } if place.is_some() => {
                        *via = place;
                        *request = self.servers.contains(index);
                        *nothing = edits.nothing.contains(&(*index, at));
                    }
                    Draft::Wake { via, answer, nothing, .. } if place.is_some() => {
                        *via = place;
                        *answer = edits.answers.contains(&(*index, at));
                        *nothing = edits.nothing.contains(&(*index, at));
                    }
                    _ => {}
                }
                edited.push(draft);
            }
            *drafts[*index] = edited;
        }
        sockets
    }
}

/// Finds who asks and who answers among the drafts of all tasks, and marks that. `classes` has the class of each task. Of
/// each task the channel on which it awaits answers, if it does.
pub(super) fn tie(
    drafts: &mut [&mut Vec<Draft>],
    classes: &[u32],
    channels: &mut Channels,
    connections: &Connections,
) -> Vec<Option<Via>> {
    let places = Places::new(drafts, channels, classes);
    let all = places.all(drafts);
    let mostly = |place: &Place| place.wakers.len() > 1 && 3 * place.answered >= 2 * place.taken;
    let mut servers: Vec<Via> = all.iter().filter(|(_, place)| mostly(place)).map(|(via, _)| *via).collect();
    // who answers most tasks is the server, where each seems to answer the other
    servers.sort_by_key(|via| std::cmp::Reverse(all[via].wakers.len()));
    let mut awaits: Vec<Option<Via>> = vec![None; drafts.len()];
    let (mut requests, mut replies, mut sockets) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for via in servers {
        let Some(relation) = Relation::at(via, &all, &places, drafts) else { continue };
        if relation.has_several_at_once(connections) {
            continue;
        }
        let other = |(client, place): (&usize, &Via)| awaits[*client].is_some_and(|known| known != *place);
        let conflicts = replies.contains(&via)
            || relation.replies.values().any(|place| requests.contains(place))
            || relation.replies.iter().any(other);
        let Some(mut edits) = relation.edits(&places, drafts).filter(|_| !conflicts) else { continue };
        sockets.extend(relation.apply(&mut edits, &places, drafts));
        requests.insert(via);
        for (client, place) in relation.replies {
            awaits[client] = Some(place);
            replies.insert(place);
        }
    }
    requests.into_iter().chain(replies).for_each(|place| channels.add(place, sockets.contains(&place)));
    awaits
}
