//! A bounded, fair queue. The number of places is limited; if none is free, a request waits in the line of its
//! client, and the lines take turns. So a client with a hundred requests delays another client by at most one turn.
//!
//! Runs of one session come one after the other: a run whose session is in use waits without taking a place.

use super::Problem;
use super::peer::Peer;
use axum::http::HeaderMap;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Most answers computed at once.
pub const MAX_ANSWERS: usize = 8;
/// Most runs in progress at once.
pub const MAX_RUNS: usize = 4;
/// Most requests waiting in each queue.
pub const MAX_WAITING: usize = 256;
/// Seconds after which a client may try again if the queue was full.
const RETRY_SECONDS: u64 = 2;

/// The header in which a program names itself, to be distinguished from others of the same machine.
pub const CLIENT_HEADER: &str = "x-caro-client";
/// Most characters used of a client's name.
const MAX_NAME: usize = 64;

/// A bounded queue with one line per client; the lines take turns.
#[derive(Debug)]
pub struct FairQueue<T> {
    /// Each with its client; the next one first.
    lines: VecDeque<(String, VecDeque<T>)>,
    waiting: usize,
    most: usize,
}

impl<T> FairQueue<T> {
    /// Creates an empty queue for at most `most` items.
    pub fn new(most: usize) -> Self {
        Self { lines: VecDeque::new(), waiting: 0, most }
    }

    /// Adds an item to its client's line. One client may fill at most three quarters of the queue, to leave room for
    /// others.
    ///
    /// # Errors
    /// Returns the item if there is no room for it.
    pub fn push(&mut self, client: &str, one: T) -> Result<(), T> {
        let of_client = self.lines.iter().position(|(name, _)| name == client);
        let own = of_client.and_then(|at| self.lines.get(at)).map_or(0, |(_, line)| line.len());
        if self.waiting >= self.most || own >= self.most - self.most / 4 {
            return Err(one);
        }
        match of_client.and_then(|at| self.lines.get_mut(at)) {
            Some((_, line)) => line.push_back(one),
            None => self.lines.push_back((client.to_owned(), VecDeque::from([one]))),
        }
        self.waiting += 1;
        Ok(())
    }

    /// Removes the next item that is ready. A line without one keeps its turn.
    pub fn pop(&mut self, is_ready: impl Fn(&T) -> bool) -> Option<T> {
        let mut lines = self.lines.iter().enumerate();
        let (at, place) = lines.find_map(|(at, (_, line))| Some((at, line.iter().position(&is_ready)?)))?;
        let (client, mut line) = self.lines.remove(at)?;
        let one = line.remove(place);
        self.waiting -= usize::from(one.is_some());
        if !line.is_empty() {
            self.lines.push_back((client, line));
        }
        one
    }

    /// Removes all items for which `waits` is false.
    pub fn retain(&mut self, waits: impl Fn(&T) -> bool) {
        self.lines.iter_mut().for_each(|(_, line)| line.retain(&waits));
        self.lines.retain(|(_, line)| !line.is_empty());
        self.waiting = self.lines.iter().map(|(_, line)| line.len()).sum();
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// True if there are no items.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }
}

/// A limited number of places, and the requests that wait for one.
#[derive(Debug)]
pub struct Places {
    state: Mutex<State>,
    most: usize,
}

#[derive(Debug)]
struct State {
    /// The number of places taken.
    places: usize,
    /// The sessions of the runs that have one.
    sessions: HashSet<String>,
    waiting: FairQueue<Waiting>,
}

/// A request that waits.
#[derive(Debug)]
struct Waiting {
    session: Option<String>,
    send: oneshot::Sender<Place>,
}

impl State {
    /// Takes a place, if one is free and the session is not in use.
    fn enter(&mut self, session: Option<&str>, most: usize) -> bool {
        let is_free = self.places < most && session.is_none_or(|name| !self.sessions.contains(name));
        if is_free {
            self.places += 1;
            self.sessions.extend(session.map(str::to_owned));
        }
        is_free
    }

    /// Frees a place.
    fn leave(&mut self, session: Option<&str>) {
        self.places -= 1;
        if let Some(name) = session {
            self.sessions.remove(name);
        }
    }

    /// Takes a place for the next request that can have one.
    fn next(&mut self, most: usize) -> Option<Waiting> {
        let sessions = &self.sessions;
        let next = self.waiting.pop(|one| one.session.as_ref().is_none_or(|name| !sessions.contains(name)))?;
        self.enter(next.session.as_deref(), most);
        Some(next)
    }
}

impl Places {
    /// Creates `most` places, for which at most `waiting` requests may wait.
    pub fn new(most: usize, waiting: usize) -> Arc<Self> {
        let state = Mutex::new(State { places: 0, sessions: HashSet::new(), waiting: FairQueue::new(waiting) });
        Arc::new(Self { state, most })
    }

    /// Waits for a place; for a run in a session, also until no other run of that session has a place. If the future
    /// is dropped, the request leaves the queue.
    ///
    /// # Errors
    /// If the queue is full.
    pub async fn take(self: &Arc<Self>, client: &str, session: Option<&str>) -> Result<Place, Problem> {
        let session = session.map(str::to_owned);
        let receive = {
            let mut state = self.state();
            if state.enter(session.as_deref(), self.most) {
                return Ok(Place { places: Some(self.clone()), session });
            }
            let (send, receive) = oneshot::channel();
            if let Err(waiting) = state.waiting.push(client, Waiting { session, send }) {
                state.waiting.retain(|other| !other.send.is_closed());
                let full = |_| Problem::busy("too many requests are waiting", RETRY_SECONDS);
                state.waiting.push(client, waiting).map_err(full)?;
            }
            receive
        };
        receive.await.map_err(|_| Problem::internal("the queue is gone"))
    }

    /// The number of places taken, and of requests waiting.
    pub fn load(&self) -> (usize, usize) {
        let state = self.state();
        (state.places, state.waiting.len())
    }

    /// Frees a place, and gives it to the next request that can have it.
    fn pass_on(self: Arc<Self>, mut session: Option<String>) {
        loop {
            let next = {
                let mut state = self.state();
                state.leave(session.as_deref());
                state.next(self.most)
            };
            let Some(Waiting { session: other, send }) = next else { return };
            match send.send(Place { places: Some(self.clone()), session: other }) {
                Ok(()) => return,
                // the request does not wait any more: takes the place back and tries the next one
                Err(mut place) => {
                    place.places = None;
                    session = place.session.take();
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place, freed when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Option<Arc<Places>>,
    session: Option<String>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(places) = self.places.take() {
            places.pass_on(self.session.take());
        }
    }
}

/// Returns the client of a request: the name in its header, or else its peer.
pub fn client(headers: &HeaderMap, peer: Option<&Peer>) -> String {
    let named = headers.get(CLIENT_HEADER).and_then(|name| name.to_str().ok()).filter(|name| !name.is_empty());
    named.map_or_else(|| peer.map(Peer::client).unwrap_or_default(), |name| name.chars().take(MAX_NAME).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_lines_take_turns() {
        let mut fair = FairQueue::new(8);
        for (client, one) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("b", 6)] {
            fair.push(client, one).unwrap();
        }
        let order: Vec<i32> = std::iter::from_fn(|| fair.pop(|_| true)).collect();
        assert_eq!(order, [1, 4, 5, 2, 6, 3]);
        assert!(fair.is_empty());
    }

    #[test]
    fn one_client_cannot_fill_the_queue() {
        let mut fair = FairQueue::new(8);
        let taken = (0..8).filter(|one| fair.push("a", *one).is_ok()).count();
        assert_eq!(taken, 6);
        assert_eq!((fair.push("b", 0), fair.push("c", 0), fair.push("d", 7)), (Ok(()), Ok(()), Err(7)));
        fair.retain(|one| *one > 3);
        assert_eq!(fair.len(), 2);
        assert_eq!(fair.push("d", 7), Ok(()));
    }

    proptest::proptest! {
        /// Every item comes out exactly once, each line keeps its order, and between two turns of a line each other
        /// line has at most one.
        #[test]
        fn every_item_comes_out_exactly_once(clients in proptest::collection::vec(0_u8..5, 0..60)) {
            let mut fair = FairQueue::new(400);
            for (number, client) in clients.iter().enumerate() {
                fair.push(&client.to_string(), (*client, number)).unwrap();
            }
            let out: Vec<(u8, usize)> = std::iter::from_fn(|| fair.pop(|_| true)).collect();
            assert_eq!(out.len(), clients.len());
            for client in 0..5 {
                let places: Vec<usize> = out.iter().filter(|(of, _)| *of == client).map(|(_, number)| *number).collect();
                assert!(places.is_sorted(), "{places:?}");
                let turns: Vec<usize> = out.iter().enumerate().filter(|(_, (of, _))| *of == client).map(|(at, _)| at).collect();
                assert!(turns.windows(2).all(|pair| pair[1] - pair[0] <= 5), "{out:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_place_goes_to_the_next_request_that_still_waits() {
        let places = Places::new(1, 4);
        let first = places.take("a", None).await.unwrap();
        let gone = tokio::spawn({
            let places = places.clone();
            async move { places.take("a", None).await.map(drop) }
        });
        let waits = tokio::spawn({
            let places = places.clone();
            async move { places.take("b", None).await }
        });
        while places.load().1 < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        drop(first);
        let second = waits.await.unwrap().unwrap();
        assert_eq!(places.load(), (1, 0));
        drop(second);
        assert_eq!(places.load(), (0, 0));
    }

    #[tokio::test]
    async fn a_run_that_waits_for_its_session_takes_no_place() {
        let places = Places::new(2, 8);
        let first = places.take("a", Some("s")).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let places = places.clone();
            waiting.push(tokio::spawn(async move { places.take("a", Some("s")).await }));
        }
        while places.load().1 < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // another client goes first, and so does another session of the same client
        let other = places.take("b", Some("t")).await.unwrap();
        assert_eq!(places.load(), (2, 3));
        drop(other);
        drop(places.take("a", Some("u")).await.unwrap());
        assert_eq!(places.load(), (1, 3), "the waiting runs wait for the first one");
        drop(first);
        for one in waiting {
            let place = one.await.unwrap().unwrap();
            assert_eq!(places.load().0, 1);
            drop(place);
        }
        assert_eq!(places.load(), (0, 0));
        assert!(places.state().sessions.is_empty());
    }

    #[tokio::test]
    async fn a_request_that_left_takes_no_room() {
        let places = Places::new(1, 1);
        let _held = places.take("a", None).await.unwrap();
        for _ in 0..3 {
            let waiting = tokio::time::timeout(Duration::from_millis(5), places.take("a", None)).await;
            assert!(waiting.is_err(), "the last one has left, so there is room: {waiting:?}");
        }
        let waiting = tokio::spawn({
            let places = places.clone();
            async move { places.take("a", None).await }
        });
        while places.load().1 < 1 || waiting.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        let full = places.take("b", None).await.unwrap_err();
        assert_eq!(full.status(), 429);
        waiting.abort();
    }

    #[test]
    fn a_client_is_its_header_or_its_peer() {
        let mut headers = HeaderMap::new();
        let peer = Peer::Tcp("127.0.0.1:4711".parse().unwrap());
        assert_eq!(client(&headers, Some(&peer)), "127.0.0.1");
        headers.insert(CLIENT_HEADER, "x".repeat(200).parse().unwrap());
        assert_eq!(client(&headers, Some(&peer)), "x".repeat(64));
    }
}
