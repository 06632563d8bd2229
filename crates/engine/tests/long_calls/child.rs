//! What a child process does with a database that its parent opened.
//!
//! Other threads of the parent may hold any mutex at the moment of the fork, also those of the test harness: a child
//! prints nothing, and says by its exit code which of its steps went wrong.

use crate::TIMEOUT;
use crate::calls::Held;
use crate::world::World;
use highwater::{BackupOptions, Database, Error, Options, Result, Schema, Type, values};
use highwater_storage::{AlignedBuf, Placement};
use std::ops::ControlFlow::Continue;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

const ALL_WELL: i32 = 0;
const PANICKED: i32 = 99;

/// A process.
struct Child(libc::pid_t);

/// Runs `run` in a child process, which ends with its answer.
fn fork(run: impl FnOnce() -> i32) -> Child {
    // SAFETY: the child uses nothing that another thread may have locked, and ends without the parent's cleaning up.
    match unsafe { libc::fork() } {
        0 => {
            let code = catch_unwind(AssertUnwindSafe(run)).unwrap_or(PANICKED);
            // SAFETY: it ends the process.
            unsafe { libc::_exit(code) }
        }
        child => {
            assert!(child > 0, "{}", std::io::Error::last_os_error());
            Child(child)
        }
    }
}

impl Child {
    /// Its exit code; it is killed if it does not come to its end.
    fn wait(self, what: &str) -> i32 {
        let (begin, mut status) = (Instant::now(), 0);
        loop {
            // SAFETY: the kernel writes one number through the pointer, which outlives the call.
            match unsafe { libc::waitpid(self.0, &raw mut status, libc::WNOHANG) } {
                0 if begin.elapsed() < TIMEOUT => thread::sleep(Duration::from_millis(1)),
                0 => {
                    // SAFETY: it is this process's child, and was not waited for.
                    unsafe { libc::kill(self.0, libc::SIGKILL) };
                    panic!("the child forked during {what} hangs");
                }
                _ if libc::WIFEXITED(status) => return libc::WEXITSTATUS(status),
                _ => panic!("the child forked during {what} was killed: status {status}"),
            }
        }
    }
}

/// What a child tries; each step ends with [`Error::Forked`].
type Step = fn(&World) -> Result<()>;

const STEPS: &[Step] = &[
    |world| world.shared().db.begin().map(drop),
    |world| world.shared().db.snapshot().map(drop),
    |world| world.shared().db.check().map(drop),
    |world| {
        world.shared().db.create_table("child", Schema::new().column("id", Type::U64).primary_key(&["id"])).map(drop)
    },
    |world| world.shared().db.drop_index("rows", "by_n"),
    |world| world.shared().db.flush_log(),
    |world| {
        let dest = world.shared().folder.join("of-the-child");
        world.shared().db.backup(dest, &BackupOptions::default(), &mut |_| Continue(())).map(drop)
    },
    |world| world.shared().db.clone().close(),
];

fn try_everything(world: &World, held: Vec<Held>) -> i32 {
    for (step, code) in STEPS.iter().zip(1..) {
        if !matches!(step(world), Err(Error::Forked)) {
            return code;
        }
    }
    for held in held {
        let is_refused = match held {
            Held::Writes(mut txn) => {
                let written = txn.insert(&world.shared().others, &values![1_000_000u64, 1u64]);
                matches!(written, Err(Error::Forked)) && matches!(txn.commit(), Err(Error::Forked))
            }
            Held::Reads(mut txn) => matches!(txn.get(&world.shared().rows, &values![1u64]), Err(Error::Forked)),
            // A thread that is not here.
            Held::Runs(thread) => {
                std::mem::forget(thread);
                true
            }
        };
        if !is_refused {
            return 50;
        }
    }
    let block = AlignedBuf::zeroed(4096);
    let data = &world.storage().data;
    if data.write_at(0, &block, Placement::Other).is_ok() || data.sync().is_ok() || data.discard(0, 4096).is_ok() {
        return 51;
    }
    ALL_WELL
}

/// A child tries everything and drops its handles; the parent continues and commits. Releases what is held.
pub(crate) fn is_refused_everything(world: &mut World, held: Vec<Held>, what: &str) -> Vec<Held> {
    let mut both = Some(held);
    let child = fork(|| {
        let code = try_everything(world, both.take().unwrap_or_default());
        world.drop_handles();
        code
    });
    assert_eq!(child.wait(what), ALL_WELL, "the step of the child forked during {what} that went wrong");
    let _ = world.commit();
    both.unwrap_or_default()
}

/// The parent's commits survive, and it can close and open the database while the child lives.
#[test]
fn a_child_that_lives_on_blocks_no_thread() {
    let mut world = World::new();
    world.commit().unwrap();
    let mut txn = world.shared().db.begin().unwrap();
    txn.insert(&world.shared().others, &values![500u64, 1u64]).unwrap();
    let (ends, ended) = std::io::pipe().map(|(read, write)| (write, read)).unwrap();
    let mut session = world.shared().db.session();
    session.txn().unwrap().insert(&world.shared().others, &values![501u64, 1u64]).unwrap();
    let (folder, mut both) = (world.shared().folder.clone(), Some((txn, ends, ended)));
    let child = fork(|| {
        let (txn, ends, mut ended) = both.take().unwrap();
        drop(ends);
        let of_session = (0..2).all(|_| matches!(session.commit(), Err(Error::Forked)));
        let code = if of_session { try_everything(&world, vec![Held::Writes(txn)]) } else { 61 };
        world.drop_handles();
        // A database of its own.
        let options = Options { buffer_pool_size: 2 << 20, ..Options::default() };
        let own = Database::open(folder.join("own"), options).and_then(Database::close);
        // Until the parent has released its end.
        let _ = std::io::Read::read(&mut ended, &mut [0]);
        if own.is_ok() { code } else { 60 }
    });
    let (txn, ends, ended) = both.take().unwrap();
    drop(ended);
    txn.rollback().unwrap();
    session.commit().unwrap();
    let inserted = world.shared().db.snapshot().unwrap().get(&world.shared().others, &values![501u64]).unwrap();
    assert!(inserted.is_some());
    session.txn().unwrap().delete(&world.shared().others, &values![501u64]).unwrap();
    session.commit().unwrap();
    drop(session);
    (0..20).for_each(|_| world.commit().unwrap());
    world.verify();
    drop(ends);
    assert_eq!(child.wait("nothing"), ALL_WELL);
}
