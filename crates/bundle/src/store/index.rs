// SPDX-License-Identifier: GPL-2.0-or-later
//! The index of a store. It is a cache: if it fails in any way, the only effect is a slower list.
//!
//! The index uses a rollback journal and not a WAL, since a rollback journal also works where processes cannot share
//! memory, for example on a network file system.

use super::Headline;
use crate::{BundleError, RunId, lock_root};
use confined::Directory;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FILE: &str = "index.sqlite";
const JOURNAL: &str = "index.sqlite-journal";

/// The format of the index, in `user_version`. An index with another number is not used.
const VERSION: i64 = 2;

/// How long another process may hold the index before this process goes on without it.
const BUSY: Duration = Duration::from_secs(5);

/// The mark of a manifest, which shows that it was replaced: its length, inode and time of change in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp([i64; 3]);

impl Stamp {
    /// The stamp of this file of a run in the store. `None` if there is no such file.
    pub fn of(store: &Directory, run: &RunId, file: &str) -> Option<Self> {
        let stat = store.directory(run.as_str()).ok()?.stat(file).ok()?;
        let changed =
            stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64);
        Some(Stamp([stat.st_size, stat.st_ino as i64, changed]))
    }
}

/// An open index, or no index.
pub struct Index(Option<Connection>);

impl Index {
    /// Opens the index of the store, and makes a new one in place of a corrupt one. If the index cannot be written, it
    /// is only read. If this fails, there is no index. There is also none in a store of another user, who could put
    /// anything in its place.
    pub fn open(store: &Directory) -> Self {
        let Some(path) = place(store) else { return Index(None) };
        let made = connect(&path).or_else(|error| {
            if !is_corrupt(&error) {
                return Err(error);
            }
            // Under the lock, and only if it is still corrupt: another process may have replaced the index already.
            let Ok(_exclusive) = lock_root(store) else { return Err(error) };
            connect(&path).or_else(|_| {
                let _ = remove_files(store);
                connect(&path)
            })
        });
        let read_only =
            |_| Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY | NO_LINKS);
        Index(made.or_else(read_only).ok())
    }

    /// The rows of the index. Empty if they cannot be read.
    pub fn rows(&self) -> HashMap<RunId, (Stamp, Headline)> {
        let Some(connection) = &self.0 else { return HashMap::new() };
        read_rows(connection).unwrap_or_default()
    }

    /// Remembers `news` and forgets `gone`. If this fails, as on a full disk or in a read-only store, nothing
    /// follows.
    pub fn update<'a>(
        &mut self,
        news: &[(RunId, Stamp, Headline)],
        gone: impl Iterator<Item = &'a RunId>,
    ) {
        if let Some(connection) = &mut self.0 {
            let _ = write_rows(connection, news, gone);
        }
    }
}

/// With the real path, SQLite follows no link on the way or at the end of the path.
const NO_LINKS: OpenFlags = OpenFlags::SQLITE_OPEN_NOFOLLOW.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// The real path of the index, if opening it cannot lead elsewhere. The store has to be this user's. Things with the
/// names of the index and of its journal have to be files of this user without a second name, if they exist.
fn place(store: &Directory) -> Option<PathBuf> {
    let path = std::fs::canonicalize(store.path()).ok()?;
    let is_there = Directory::open(&path).is_ok_and(|there| there.is_same(store));
    let is_sound = store.is_mine() && is_there && store.can_edit(FILE) && store.can_edit(JOURNAL);
    is_sound.then(|| path.join(FILE))
}

/// Removes the index of the store.
pub fn remove(store: &Directory) -> Result<(), BundleError> {
    let _exclusive = lock_root(store)?;
    remove_files(store).map_err(BundleError::io("remove", &store.at(FILE)))
}

/// Removes the files of the index. The journal goes first: a journal that stays alone would be rolled back into the
/// next index of that name.
fn remove_files(store: &Directory) -> io::Result<()> {
    for name in [JOURNAL, FILE] {
        match store.remove(name) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | NO_LINKS;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    let version = |c: &Connection| -> rusqlite::Result<i64> {
        c.pragma_query_value(None, "user_version", |row| row.get(0))
    };
    if version(&connection)? != VERSION {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Looks again, now that nobody else can change the index.
        if version(&transaction)? != VERSION {
            create(&transaction)?;
        }
        transaction.commit()?;
    }
    // This reads every page. It finds corruption here, where the index can be repaired, and not in a later query.
    let sound: String = connection.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    if sound != "ok" {
        let corrupt = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        return Err(rusqlite::Error::SqliteFailure(corrupt, Some(sound)));
    }
    Ok(connection)
}

fn create(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "DROP TABLE IF EXISTS bundle;
         CREATE TABLE bundle (
             run TEXT PRIMARY KEY, size INTEGER NOT NULL, inode INTEGER NOT NULL,
             changed INTEGER NOT NULL, headline TEXT NOT NULL, seal TEXT NOT NULL
         ) WITHOUT ROWID;",
    )?;
    transaction.pragma_update(None, "user_version", VERSION)
}

fn is_corrupt(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let code = error.sqlite_error_code();
    // A foreign table of this name gives an error without such a code. `create` drops the table.
    matches!(code, Some(DatabaseCorrupt | NotADatabase))
}

fn read_rows(connection: &Connection) -> rusqlite::Result<HashMap<RunId, (Stamp, Headline)>> {
    let mut statement =
        connection.prepare("SELECT run, size, inode, changed, headline, seal FROM bundle")?;
    let rows = statement.query_map([], |row| {
        let run: String = row.get(0)?;
        let stamp = Stamp([row.get(1)?, row.get(2)?, row.get(3)?]);
        Ok((run, stamp, row.get(4)?, row.get(5)?))
    })?;
    let mut known = HashMap::new();
    for row in rows {
        let (run, stamp, headline, found): (String, Stamp, String, String) = row?;
        // A row that was changed counts as no row, so the manifest is read again.
        if found != seal(&run, stamp, &headline) {
            continue;
        }
        if let (Ok(run), Ok(headline)) = (run.parse(), serde_json::from_str(&headline)) {
            known.insert(run, (stamp, headline));
        }
    }
    Ok(known)
}

/// The hash of a row. SQLite's own check covers the structure of its pages, and not the content.
fn seal(run: &str, stamp: Stamp, headline: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("{run} {:?} ", stamp.0).as_bytes()).update(headline.as_bytes());
    hasher.finalize().to_hex().to_string()
}

fn write_rows<'a>(
    connection: &mut Connection,
    news: &[(RunId, Stamp, Headline)],
    gone: impl Iterator<Item = &'a RunId>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut delete = transaction.prepare("DELETE FROM bundle WHERE run = ?1")?;
        for run in gone {
            delete.execute([run.as_str()])?;
        }
        let mut insert =
            transaction.prepare("INSERT OR REPLACE INTO bundle VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
        for (run, stamp, headline) in news {
            let run = run.as_str();
            let text = serde_json::to_string(headline)
                .map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))?;
            let [size, inode, changed] = stamp.0;
            let seal = seal(run, *stamp, &text);
            insert.execute(params![run, size, inode, changed, text, seal])?;
        }
    }
    transaction.commit()
}
