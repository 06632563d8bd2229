//! One decoded page.

use super::file::RawFile;
use crate::check::show_key;
use crate::error::Result;
use crate::page::header::{self, HEADER_BYTES};
use crate::page::{Node, PageBytes, PageType, node};
use crate::row::format::{EntryValue, ROW_HEADER_BYTES, RowHeader};
use crate::space::layout::{ENTRIES_AT, ENTRY_BYTES};
use crate::space::{Extent, read_entry};
use crate::table::Value;
use crate::txn::overflow_columns::{ColumnRef, OverflowRow, REST};
use crate::types::{Lsn, PageNo};
use crate::undo::record::{PreparedMark, UndoKind, UndoRecord};
use crate::undo::{RECORDS_AT, StreamEntry, UndoFields, read_directory, record_at};

/// A page.
#[derive(Clone, Debug)]
pub struct PageInfo {
    /// Its offset.
    pub page_no: PageNo,
    /// The reason why it does not verify.
    pub problem: Option<String>,
    /// Whether it is all zeros.
    pub is_zero: bool,
    /// The page number in its header.
    pub stored_page_no: PageNo,
    /// End of the last redo that changed it.
    pub lsn: Lsn,
    /// Its type, `None` for an unknown number.
    pub page_type: Option<PageType>,
    /// The type's number.
    pub type_number: u8,
    /// Level in its tree.
    pub level: u8,
    /// Format version.
    pub version: u16,
    /// Index of a tree page, segment of others.
    pub owner: u32,
    /// Largest transaction number that changed a secondary leaf.
    pub max_trx_id: u64,
    /// Its contents, as far as they can be read.
    pub contents: PageContents,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The contents of a page.
#[derive(Clone, Debug)]
pub enum PageContents {
    /// No contents, or unreadable ones: the reason.
    Nothing(String),
    /// Page 0: the root slots.
    FileHeader(Vec<PageNo>),
    /// Extents in use, by their number in the file.
    ExtentMap(Vec<(u32, Extent)>),
    /// A tree page.
    Node(NodeInfo),
    /// Undo records.
    Undo(UndoInfo),
    /// Undo streams.
    UndoDirectory {
        /// Next directory page, 0 = none.
        next: PageNo,
        /// Transaction ids are below this.
        id_limit: u64,
        /// The streams; a vacant entry has page 0.
        streams: Vec<UndoStreamInfo>,
    },
    /// A part of a large row.
    Overflow {
        /// Next page, 0 = none.
        next: PageNo,
        /// Bytes of data.
        data_bytes: u32,
    },
}

/// A tree page.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// Lower fence, `None` = no bound.
    pub lower: Option<Vec<u8>>,
    /// Upper fence, `None` = no bound.
    pub upper: Option<Vec<u8>>,
    /// Length of the prefix all keys share.
    pub prefix_bytes: usize,
    /// Free bytes.
    pub free_bytes: usize,
    /// Bytes taken by records and fences.
    pub used_bytes: usize,
    /// Records: key, value.
    pub records: Vec<(Vec<u8>, Vec<u8>)>,
    /// The right-most child of an inner page.
    pub upper_child: Option<PageNo>,
}

/// An entry of the undo directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoStreamInfo {
    /// Its oldest page.
    pub first: PageNo,
    /// Its newest page.
    pub last: PageNo,
    /// Transactions purged.
    pub purged: u64,
    /// The end of the records on the last page, if every transaction of the stream is known to have ended.
    pub ended_at: Option<usize>,
}

/// An undo page.
#[derive(Clone, Debug)]
pub struct UndoInfo {
    /// Page before, 0 = none.
    pub previous: PageNo,
    /// Next page, 0 = none.
    pub next: PageNo,
    /// Transactions of the stream that began before this page.
    pub begun_before: u64,
    /// Records: offset, length in bytes, as text.
    pub records: Vec<(usize, usize, String)>,
    /// The position and reason of an early end of the reading.
    pub problem: Option<String>,
}

impl RawFile<'_> {
    /// Reads a page and takes it apart.
    ///
    /// # Errors
    /// It is beyond the end, or an I/O error. Damage is described in the result.
    pub fn look_at(&self, page_no: PageNo) -> Result<PageInfo> {
        let bytes = self.page(page_no)?;
        let problem = header::verify(&bytes, page_no).err().map(crate::Error::into_reason);
        let type_number = bytes.u8_at(16);
        let page_type = PageType::from_u8(type_number);
        let contents = match page_type {
            Some(page_type) => self.contents(page_no, page_type, &bytes),
            None => PageContents::Nothing(format!("unknown page type {type_number}")),
        };
        Ok(PageInfo {
            page_no,
            problem,
            is_zero: bytes.iter().all(|byte| *byte == 0),
            stored_page_no: header::stored_page_no(&bytes),
            lsn: header::lsn(&bytes),
            page_type,
            type_number,
            level: header::level(&bytes),
            version: bytes.u16_at(18),
            owner: header::owner(&bytes),
            max_trx_id: header::max_trx_id(&bytes),
            contents,
            bytes,
        })
    }

    fn contents(&self, page_no: PageNo, page_type: PageType, bytes: &[u8]) -> PageContents {
        let read = || -> Result<PageContents> {
            Ok(match page_type {
                PageType::Free => PageContents::Nothing("never written, or freed".to_string()),
                PageType::Lost => PageContents::Nothing(crate::page::lost::error(bytes, page_no).into_reason()),
                PageType::FileHeader => PageContents::FileHeader(crate::space::header::read_roots(bytes)?.to_vec()),
                PageType::ExtentMap => PageContents::ExtentMap(self.extents_of(page_no, bytes)),
                PageType::Inner | PageType::Leaf => {
                    node::check(bytes, page_no)?;
                    PageContents::Node(node_look(Node::new(bytes)))
                }
                PageType::Undo => PageContents::Undo(self.undo_look(page_no, bytes)?),
                PageType::UndoDirectory => {
                    let (next, count, id_limit) = read_directory(bytes, page_no)?;
                    let stream = |i| {
                        let StreamEntry { first, last, purged, ended_at } = StreamEntry::read(bytes, i);
                        UndoStreamInfo { first, last, purged, ended_at: (ended_at != 0).then_some(ended_at) }
                    };
                    PageContents::UndoDirectory { next, id_limit, streams: (0..count).map(stream).collect() }
                }
                PageType::Overflow => PageContents::Overflow {
                    next: PageNo(bytes.u32_at(HEADER_BYTES)),
                    data_bytes: bytes.u32_at(HEADER_BYTES + 4),
                },
            })
        };
        read().unwrap_or_else(|error| PageContents::Nothing(error.to_string()))
    }

    fn extents_of(&self, page_no: PageNo, bytes: &[u8]) -> Vec<(u32, Extent)> {
        let first = page_no.0 / crate::space::layout::EXTENT_PAGES;
        let entries = (bytes.len() - ENTRIES_AT - 4) / ENTRY_BYTES;
        let all = (0..entries).map(|i| (first + i as u32, read_entry(bytes, i)));
        all.filter(|(_, extent)| *extent != Extent::default()).collect()
    }

    fn undo_look(&self, page_no: PageNo, bytes: &[u8]) -> Result<UndoInfo> {
        let fields = UndoFields::read(bytes, page_no)?;
        let mut look = UndoInfo {
            previous: fields.previous,
            next: fields.next,
            begun_before: fields.begun_before,
            records: Vec::new(),
            problem: None,
        };
        let mut offset = RECORDS_AT;
        loop {
            match record_at(bytes, page_no, offset) {
                Ok(Some(record)) => {
                    look.records.push((offset, record.bytes, self.undo_record(&record)));
                    offset += record.bytes;
                }
                Ok(None) => return Ok(look),
                Err(error) => {
                    look.problem = Some(error.to_string());
                    return Ok(look);
                }
            }
        }
    }

    fn undo_record(&self, record: &UndoRecord<'_>) -> String {
        let state = match (record.dead, record.freeing) {
            (false, false) => "",
            (true, false) => " (rolled back)",
            (false, true) => " (freeing its chain)",
            (true, true) => " (rolled back, freeing its chain)",
        };
        let text = || -> Result<String> {
            Ok(match record.kind {
                UndoKind::Header => {
                    let (id, state, number) = record.header()?;
                    format!("transaction {id} {state:?} number {number}")
                }
                UndoKind::Overflow => {
                    let (table, first, _) = record.overflow()?;
                    format!("overflow chain of {} from page {first}", self.table_name(table.0))
                }
                UndoKind::Xid => {
                    let PreparedMark { xid, records, .. } = record.xid()?;
                    format!("prepared as {xid} after {records} records")
                }
                UndoKind::Insert | UndoKind::Update | UndoKind::Delete => {
                    let (table, key) = record.row()?;
                    let verb = format!("{:?}", record.kind).to_lowercase();
                    let before = match record.change() {
                        Ok(change) => {
                            let RowHeader { trx_id, roll_ptr, .. } = change.old;
                            format!(", before it transaction {trx_id} at {}", show_roll_ptr(roll_ptr.0))
                        }
                        Err(_) => String::new(),
                    };
                    let key = match self.table(table.0) {
                        Some(known) => show_key(&known.trees[0].key, key),
                        None => format!("{key:02x?}"),
                    };
                    format!("{verb} in {} row {key}{before}", self.table_name(table.0))
                }
            })
        };
        format!("{}{state}", text().unwrap_or_else(|error| error.to_string()))
    }

    fn table_name(&self, id: u32) -> String {
        self.table(id).map_or_else(|| format!("table number {id}"), |table| table.definition.name.clone())
    }

    /// A record of a tree page as text, if the table is known: key, and value.
    pub fn show_record(&self, owner: u32, key: &[u8], value: &[u8], is_leaf: bool) -> Option<(String, String)> {
        let (table, tree) = self.tree(owner)?;
        let shown_key = show_key(&tree.key, key);
        if !is_leaf {
            return Some((shown_key, show_child(value)));
        }
        if tree.id != table.trees[0].id {
            let Ok(entry) = EntryValue::decode(value, key.len()) else { return Some((shown_key, String::new())) };
            let row = show_key(&table.trees[0].key, &key[entry.prefix_bytes..]);
            let marked = if entry.delete_marked { ", delete-marked" } else { "" };
            let covered = match tree.covered.decode(entry.covered) {
                Ok(values) if values.is_empty() => String::new(),
                Ok(values) => {
                    format!(", covers {}", values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
                }
                Err(_) => format!(", covers {:02x?}", entry.covered),
            };
            return Some((shown_key, format!("row {row}{marked}{covered}")));
        }
        Some((shown_key, show_row(&table.layouts, value)))
    }
}

fn show_child(value: &[u8]) -> String {
    format!("page {}", value.u32_at(0))
}

fn show_roll_ptr(pointer: u64) -> String {
    if pointer == 0 { "nowhere".to_string() } else { format!("page {} offset {}", pointer >> 16, pointer & 0xffff) }
}

fn show_row(layouts: &crate::table::RowLayouts, value: &[u8]) -> String {
    let Ok(header) = RowHeader::decode(value) else { return format!("a row of {} bytes", value.len()) };
    let payload = &value[ROW_HEADER_BYTES..];
    let marked = if header.is_delete_marked() { "delete-marked, " } else { "" };
    let before = show_roll_ptr(header.roll_ptr.0);
    let contents = match header.is_overflow() {
        true => OverflowRow::decode(payload).and_then(|stored| show_overflow_row(layouts, &stored)),
        false => layouts.row(payload).verify().map(|()| show_values(layouts, payload)),
    };
    let contents = contents.unwrap_or_else(|error| error.to_string());
    format!("{marked}transaction {}, before it {before}: {contents}", header.trx_id)
}

fn show_values(layouts: &crate::table::RowLayouts, row: &[u8]) -> String {
    layouts.row(row).values().map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}

/// The values that are in the leaf, and the places of those on overflow pages.
fn show_overflow_row(layouts: &crate::table::RowLayouts, stored: &OverflowRow<'_>) -> Result<String> {
    let place = |column: ColumnRef| {
        let name = match layouts.of(stored.row).column_of(column.number) {
            _ if column.number == REST => "all columns".to_string(),
            Some(position) => format!("column {position}"),
            None => "a column that the table has no longer".to_string(),
        };
        format!("{name}: {} bytes in overflow pages from {}", column.chain.total_bytes, column.chain.first)
    };
    let places = stored.refs().map(place).collect::<Vec<_>>().join(", ");
    if stored.rest().is_some() {
        Ok(places)
    } else {
        layouts.row(stored.row).verify_part()?;
        Ok(format!("{}; {places}", show_values(layouts, stored.row)))
    }
}

fn node_look(found: Node<'_>) -> NodeInfo {
    NodeInfo {
        lower: found.lower().map(<[u8]>::to_vec),
        upper: found.upper().map(<[u8]>::to_vec),
        prefix_bytes: found.prefix_len(),
        free_bytes: found.free_bytes(),
        used_bytes: found.used_bytes(),
        records: (0..found.count()).map(|slot| (found.key(slot), found.value(slot).to_vec())).collect(),
        upper_child: (!found.is_leaf()).then(|| found.child(found.count())),
    }
}
