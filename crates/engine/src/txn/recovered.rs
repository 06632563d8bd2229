//! Transactions that had not ended when the database went down: an active one is rolled back, a prepared one is kept.

use super::rollback;
use super::system::{TxnSystem, shard_of_recovered};
use super::transaction::{RecoveredPrepared, TxnState};
use crate::error::{Error, Result};
use crate::lock::Holder;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::{PageNo, TableId};
use crate::undo::record::UndoKind;
use crate::undo::{RECORDS_AT, Recovered, UndoLog, UndoPlace, scan_page};
use std::collections::BTreeSet;
use std::sync::Arc;

impl TxnSystem {
    /// Undoes a transaction that a crash cut off.
    pub(crate) fn roll_back_recovered(&self, recovered: Recovered, holder: Arc<Holder>, shard: usize) -> Result<()> {
        let mut txn = self.spare();
        txn.id = recovered.id;
        (txn.holder, txn.shard) = (holder, shard);
        debug_assert_eq!(txn.holder.trx_id.load(Relaxed), txn.id.0, "the holder of a recovered transaction");
        txn.undo = Some(UndoLog::recovered(recovered.stream, recovered.header));
        rollback::roll_back_all(self, &mut txn)?;
        self.retire(txn);
        Ok(())
    }

    /// Keeps a transaction that was found prepared. Damage of its undo hides tables, and is met again by its rollback.
    pub(super) fn adopt_prepared(&self, recovered: Recovered) -> Result<()> {
        let Recovered { id, header, stream, prepared } = recovered;
        let (Some(mark), Some(holder)) = (prepared, self.holder_of(id)) else { return Ok(()) };
        let mut tables = BTreeSet::new();
        match self.tables_changed(header, &mut tables) {
            Err(error) if error.is_damage() => self.purge_damage.note(&error),
            done => done?,
        }
        let mut txn = self.spare();
        (txn.id, txn.state) = (id, TxnState::Prepared);
        (txn.holder, txn.shard) = (holder, shard_of_recovered(&self.active, id));
        let mut undo = UndoLog::recovered(stream, header);
        undo.keep_redo(&self.ctx)?;
        txn.undo = Some(undo);
        txn.check_state();
        self.recovered_prepared.lock().push(RecoveredPrepared { txn, mark, tables });
        Ok(())
    }

    /// Collects the tables of the records from a header to the end of its stream.
    fn tables_changed(&self, header: UndoPlace, tables: &mut BTreeSet<TableId>) -> Result<()> {
        let (mut at, mut pages) = (header, 0);
        loop {
            let (_, next) = scan_page(&self.ctx, at, |_, record, _| {
                if matches!(record.kind, UndoKind::Insert | UndoKind::Update | UndoKind::Delete) {
                    tables.insert(record.row()?.0);
                }
                Ok(true)
            })?;
            pages += 1;
            if next == PageNo(0) {
                return Ok(());
            }
            if pages > self.space.page_count() {
                return Err(Error::corrupt_page(next, "an undo stream has a cycle"));
            }
            at = UndoPlace { page: next, offset: RECORDS_AT };
        }
    }
}
