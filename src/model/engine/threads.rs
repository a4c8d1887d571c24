//! The engine's thread pool.
//!
//! A token takes some two hundred parallel regions of a tenth of a millisecond each, so workers spin for a moment
//! while they wait for the next region, and then sleep. Tasks are claimed one by one, and a worker that the operating
//! system has not scheduled claims none, so that the caller does the work alone if the other cores are busy.
#![allow(unsafe_code)] // a region borrows the caller's closure, which outlives it: see `Shared::job`

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};

/// The number of spins before a worker sleeps, at some 40 to 140 cycles each: about 50 to 100 microseconds, longer
/// than the serial parts between two regions and short compared with a scheduler's time slice.
const MAX_SPINS: u32 = 2_000;

/// The bit of `state` that is set while the region may be joined. The region's number is above bit 32.
const OPEN: u64 = 1 << 31;
/// The bits of `state` with the number of workers that have joined.
const JOINED: u64 = OPEN - 1;

thread_local! {
    /// True while this thread runs a task: a region started inside a task runs on its thread alone.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

type Task<'a> = dyn Fn(usize, usize) + Sync + 'a;

#[derive(Clone)]
struct Job {
    task: *const Task<'static>,
    tasks: usize,
    caller: Thread,
}

/// A counter on its own cache line.
#[repr(align(128))]
struct CacheAligned<T>(T);

struct Shared {
    state: CacheAligned<AtomicU64>,
    next: CacheAligned<AtomicUsize>,
    /// Written by the caller while the region is closed and no worker is joined; read by workers that have joined.
    job: UnsafeCell<Option<Job>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    quit: AtomicBool,
}

// SAFETY: `job` is the only field that is not `Sync` by itself. `state` orders access to it: the caller writes it while
// `OPEN` is clear and no worker is joined, then publishes with a release store; a worker reads it only after an
// acquiring compare-and-swap has counted it in while `OPEN` was set. The pointer inside is to a `Sync` closure.
unsafe impl Sync for Shared {}
// SAFETY: as above; the pointer is only ever followed inside the region it was published for.
unsafe impl Send for Shared {}

struct Worker {
    asleep: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
}

/// Marks this thread as running tasks until dropped, also by a panic.
struct Busy;

impl Busy {
    fn set() -> Self {
        BUSY.set(true);
        Self
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.set(false);
    }
}

/// A fixed set of threads that run the tasks of one region at a time. The caller takes part.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    turn: Mutex<()>,
}

impl Pool {
    /// Creates a pool of `threads` threads, including the caller: `threads - 1` are started. If the system refuses a
    /// thread, the pool is smaller.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            state: CacheAligned(AtomicU64::new(0)),
            next: CacheAligned(AtomicUsize::new(0)),
            job: UnsafeCell::new(None),
            panic: Mutex::new(None),
            quit: AtomicBool::new(false),
        });
        let mut workers = Vec::new();
        for index in 1..threads.max(1) {
            let asleep = Arc::new(AtomicBool::new(false));
            let (ours, flag) = (shared.clone(), asleep.clone());
            let thread = std::thread::Builder::new().name(format!("caro-{index}"));
            match thread.spawn(move || ours.work(index, &flag)) {
                Ok(handle) => workers.push(Worker { asleep, handle: Some(handle) }),
                Err(_) => break,
            }
        }
        Self { shared, workers, turn: Mutex::new(()) }
    }

    /// Creates a pool with as many threads as this process may use: the smaller of its CPU affinity and, on Linux, its
    /// cgroup quota.
    pub fn for_this_machine() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
    }

    /// Returns the number of threads, including the caller.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `task(index, thread)` once for every `index < tasks`, on any thread, in no order, and returns when all are
    /// done. `thread` is below [`Pool::threads`] and no two tasks run under the same number at once.
    ///
    /// A region started inside a task runs on that task's thread alone, with thread number 0; two threads that start
    /// regions take turns.
    ///
    /// # Panics
    /// With the first panic of a task, once no task runs any more; tasks not yet started are skipped.
    pub fn run(&self, tasks: usize, task: impl Fn(usize, usize) + Sync) {
        if BUSY.get() {
            // inside a task this thread has the turn already
            (0..tasks).for_each(|index| task(index, 0));
            return;
        }
        if tasks <= 1 || self.workers.is_empty() {
            // the turn is taken here too, so that thread numbers stay exclusive
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let _busy = Busy::set();
            (0..tasks).for_each(|index| task(index, 0));
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = &*self.shared;
        let task: *const Task<'_> = &task;
        // SAFETY: only the lifetime changes. The closure lives until this function returns, and it does not return (nor
        // unwind: tasks run under `catch_unwind`) before the region is closed and every joined worker has left.
        let task: *const Task<'static> = unsafe { std::mem::transmute(task) };
        let job = Job { task, tasks, caller: std::thread::current() };
        // SAFETY: the last region was closed and left by all before `turn` was released, so no worker reads `job`.
        unsafe { *shared.job.get() = Some(job.clone()) };
        shared.next.0.store(0, Ordering::Relaxed);
        let number = (shared.state.0.load(Ordering::Relaxed) >> 32).wrapping_add(1);
        // sequentially consistent, like the load of `asleep` below: one of the two sides sees the other (`work`)
        shared.state.0.store(number << 32 | OPEN, Ordering::SeqCst);
        for worker in &self.workers {
            if worker.asleep.load(Ordering::SeqCst)
                && let Some(handle) = &worker.handle
            {
                handle.thread().unpark();
            }
        }
        shared.take_part(&job, 0);
        let mut left = shared.state.0.fetch_and(!OPEN, Ordering::AcqRel) & JOINED;
        let mut spins = 0;
        while left != 0 {
            if spins < MAX_SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                // the last worker to leave a closed region unparks this thread
                std::thread::park();
            }
            left = shared.state.0.load(Ordering::Acquire) & JOINED;
        }
        let panic = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            drop(_turn);
            resume_unwind(panic);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::SeqCst);
        for worker in &mut self.workers {
            if let Some(handle) = worker.handle.take() {
                handle.thread().unpark();
                // a worker's panics are caught and passed to the caller of `run`
                let _ = handle.join();
            }
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} threads)", self.threads())
    }
}

impl Shared {
    /// Runs a worker until the pool is dropped.
    fn work(&self, index: usize, asleep: &AtomicBool) {
        let mut last = 0;
        let mut spins = 0;
        loop {
            if let Some((number, job)) = self.join(last) {
                last = number;
                spins = 0;
                self.take_part(&job, index);
                let before = self.state.0.fetch_sub(1, Ordering::AcqRel);
                if before & OPEN == 0 && before & JOINED == 1 {
                    job.caller.unpark();
                }
                continue;
            }
            if self.quit.load(Ordering::SeqCst) {
                return;
            }
            if spins < MAX_SPINS {
                spins += 1;
                std::hint::spin_loop();
                continue;
            }
            asleep.store(true, Ordering::SeqCst);
            let state = self.state.0.load(Ordering::SeqCst);
            if (state & OPEN == 0 || state >> 32 == last) && !self.quit.load(Ordering::SeqCst) {
                // an `unpark` since the load above is kept as a token: `park` returns at once
                std::thread::park();
            }
            asleep.store(false, Ordering::SeqCst);
            spins = 0;
        }
    }

    /// Joins the open region, unless it is `last`.
    fn join(&self, last: u64) -> Option<(u64, Job)> {
        let mut state = self.state.0.load(Ordering::Relaxed);
        while state & OPEN != 0 && state >> 32 != last {
            match self.state.0.compare_exchange_weak(state, state + 1, Ordering::AcqRel, Ordering::Relaxed) {
                // SAFETY: counted in while the region was open, so the caller waits for us before it writes `job`.
                Ok(_) => return unsafe { (*self.job.get()).clone() }.map(|job| (state >> 32, job)),
                Err(now) => state = now,
            }
        }
        None
    }

    /// Claims tasks until none is left.
    fn take_part(&self, job: &Job, thread: usize) {
        // SAFETY: the caller of `run` keeps the closure alive until every thread that takes part has left.
        let task = unsafe { &*job.task };
        BUSY.set(true);
        let result = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let index = self.next.0.fetch_add(1, Ordering::Relaxed);
                if index >= job.tasks {
                    return;
                }
                task(index, thread);
            }
        }));
        BUSY.set(false);
        if let Err(panic) = result {
            self.next.0.store(job.tasks, Ordering::Relaxed);
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn each_once(pool: &Pool, tasks: usize) {
        let seen: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
        pool.run(tasks, |index, thread| {
            assert!(thread < pool.threads());
            seen[index].fetch_add(1, Ordering::Relaxed);
        });
        assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn every_task_runs_once() {
        for threads in [0, 1, 2, 3, 16] {
            let pool = Pool::new(threads);
            for tasks in [0, 1, 2, 3, 100, 1000] {
                each_once(&pool, tasks);
            }
        }
    }

    #[test]
    fn many_short_regions_run_also_after_a_sleep() {
        let pool = Pool::new(4);
        for _ in 0..2_000 {
            each_once(&pool, 5);
        }
        std::thread::sleep(Duration::from_millis(20));
        each_once(&pool, 64);
    }

    #[test]
    fn thread_numbers_are_exclusive() {
        let pool = Pool::new(4);
        let busy: Vec<AtomicBool> = (0..pool.threads()).map(|_| AtomicBool::new(false)).collect();
        pool.run(200, |_, thread| {
            assert!(!busy[thread].swap(true, Ordering::SeqCst));
            std::thread::sleep(Duration::from_micros(20));
            busy[thread].store(false, Ordering::SeqCst);
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(3);
        for at in [0, 7, 99] {
            let caught = catch_unwind(AssertUnwindSafe(|| pool.run(100, |index, _| assert!(index != at, "task {at}"))));
            let message = *caught.unwrap_err().downcast::<String>().unwrap();
            assert!(message.contains(&format!("task {at}")), "{message}");
            each_once(&pool, 100);
        }
    }

    #[test]
    fn a_region_inside_a_region_runs() {
        let pool = Pool::new(2);
        let count = AtomicUsize::new(0);
        pool.run(8, |_, _| pool.run(8, |_, _| _ = count.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(count.into_inner(), 64);
    }

    #[test]
    fn a_region_inside_a_short_one_runs() {
        for (threads, outer) in [(1, 1), (1, 3), (2, 1)] {
            let (done, waited) = std::sync::mpsc::channel();
            // on another thread, so that a deadlock fails the test
            std::thread::spawn(move || {
                let (pool, count) = (Pool::new(threads), AtomicUsize::new(0));
                pool.run(outer, |_, _| pool.run(4, |_, _| _ = count.fetch_add(1, Ordering::Relaxed)));
                let panics = || pool.run(1, |_, _| panic!("in a task"));
                assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
                each_once(&pool, 9);
                let _ = done.send(count.into_inner());
            });
            assert_eq!(waited.recv_timeout(Duration::from_secs(60)), Ok(outer * 4), "{threads} threads");
        }
    }

    #[test]
    fn two_callers_take_turns() {
        let pool = Pool::new(2);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| each_once(&pool, 9)));
            }
        });
    }

    #[test]
    fn more_threads_than_cores_do_not_stall() {
        let pool = Pool::new(8 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
        let start = Instant::now();
        for _ in 0..200 {
            each_once(&pool, 64);
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    }

    #[test]
    fn a_late_worker_is_not_waited_for() {
        // the worker is busy in its first task; the caller runs all the others, and waits for that one only
        let pool = Pool::new(2);
        let held = AtomicUsize::new(0);
        pool.run(50, |_, thread| {
            if thread == 1 {
                held.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(500));
            } else {
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        assert!(held.into_inner() <= 3);
    }
}
