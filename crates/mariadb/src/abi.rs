//! Plain data as C has it: the structures of `include/highwater_server.h`.
//!
//! Rule: a pointer with a length is turned into a slice here and nowhere else.

use crate::information::Cell;
use std::os::raw::c_void;

/// A pointer and a number of elements.
#[repr(C)]
pub struct Array<T> {
    data: *const T,
    length: usize,
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Array<T> {
        *self
    }
}

impl<T> Copy for Array<T> {}

impl<T> Array<T> {
    /// What `elements` has, as long as that lives.
    pub fn of(elements: &[T]) -> Array<T> {
        Array { data: elements.as_ptr(), length: elements.len() }
    }

    /// Null.
    pub const fn null() -> Array<T> {
        Array { data: std::ptr::null(), length: 0 }
    }

    /// The elements; `None` for a null pointer.
    #[inline]
    pub fn get(&self) -> Option<&[T]> {
        if self.data.is_null() {
            return None;
        }
        // SAFETY: the header's rule 3: the caller's pointer is to `length` elements, which live during the call.
        Some(unsafe { std::slice::from_raw_parts(self.data, self.length) })
    }

    /// The elements; none for a null pointer.
    #[inline]
    pub fn elements(&self) -> &[T] {
        self.get().unwrap_or_default()
    }
}

/// A pointer to elements to be written, and their number.
#[repr(C)]
pub struct ArrayOut<T> {
    data: *mut T,
    length: usize,
}

impl<T> ArrayOut<T> {
    /// What `elements` has, as long as that lives.
    pub fn of(elements: &mut [T]) -> ArrayOut<T> {
        ArrayOut { data: elements.as_mut_ptr(), length: elements.len() }
    }

    /// The elements; none for a null pointer.
    #[inline]
    pub fn elements(&mut self) -> &mut [T] {
        if self.data.is_null() {
            return &mut [];
        }
        // SAFETY: the header's rule 3: the caller's pointer is to `length` elements, which no other code uses now.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.length) }
    }
}

/// Bytes; null is NULL.
pub type Bytes = Array<u8>;
/// Values of columns.
pub type Columns = Array<Bytes>;
/// Destination of returned column values.
pub type ColumnsOut = ArrayOut<Bytes>;

impl Bytes {
    /// As text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.elements()).into_owned()
    }
}

/// The caller's, handed back to its function.
pub type Context = *mut c_void;

/// Called with each row of a table of `INFORMATION_SCHEMA`.
pub type VisitRow = extern "C" fn(Context, *const Cell, usize);

/// A column of a new table.
#[repr(C)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: Bytes,
    /// A `hw_type`.
    pub kind: u32,
    /// Bytes, of a type that has a size.
    pub size: u32,
    /// Whether it may be NULL.
    pub nullable: u32,
}

/// A column of a key.
#[repr(C)]
pub struct KeyPart {
    /// Its position among the table's columns.
    pub column: u32,
    /// Whether greater values come first.
    pub descending: u32,
    /// How many bytes count; 0: all.
    pub prefix: u32,
}

/// An index.
#[repr(C)]
pub struct IndexDefinition {
    /// Its name.
    pub name: Bytes,
    /// Whether it refuses duplicates.
    pub unique: u32,
    /// Its columns.
    pub parts: Array<KeyPart>,
}

/// A new table.
#[repr(C)]
pub struct TableDefinition {
    /// Columns, by position.
    pub columns: Array<ColumnDefinition>,
    /// The primary key.
    pub primary_key: Array<KeyPart>,
    /// The other indexes.
    pub indexes: Array<IndexDefinition>,
    /// Position of the auto-increment column, or -1.
    pub auto_increment: i32,
    /// Its first number; 0: 1.
    pub next_number: u64,
    /// Kept with the table.
    pub version: Bytes,
}

/// Another name of a column.
#[repr(C)]
pub struct ColumnName {
    /// The column's position.
    pub column: u32,
    /// Its new name.
    pub name: Bytes,
}

/// Changes of a table that take a moment.
#[repr(C)]
pub struct TableChanges {
    /// Other names of columns.
    pub names: Array<ColumnName>,
    /// Positions of columns that go.
    pub dropped: Array<u32>,
    /// New columns.
    pub added: Array<ColumnDefinition>,
    /// What rows have in them that are there; null: NULL.
    pub defaults: Columns,
    /// Kept with the table from then on.
    pub version: Bytes,
}

/// Sizes of a table.
#[repr(C)]
#[derive(Default)]
pub struct TableInfo {
    /// About how many rows it has.
    pub rows: u64,
    /// Bytes of its rows.
    pub row_bytes: u64,
    /// Bytes of its indexes.
    pub index_bytes: u64,
    /// Next auto-increment number; 0: it has none.
    pub next_number: u64,
}

/// How a session's transactions begin and its statements wait.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SessionOptions {
    /// A `hw_isolation`.
    pub isolation: u32,
    /// Whether a transaction's view is that of its beginning.
    pub snapshot_at_begin: u32,
    /// Whether a change of a row that changed since the view is an error.
    pub first_committer_wins: u32,
    /// What a commit waits for; 3: as the database does.
    pub flush_log: u32,
    /// Longest wait for a lock; 0: none.
    pub lock_timeout_ms: u64,
    /// Whether locked rows are passed over.
    pub skip_locked: u32,
}

/// How rows are read.
#[repr(C)]
pub struct Read {
    /// A `hw_lock`.
    pub lock: u32,
    /// Whether locked rows are passed over.
    pub skip_locked: u32,
    /// Whether long columns are read that are not wanted.
    pub all_columns: u32,
    /// Positions of the returned columns, in this order.
    pub wanted: Array<u32>,
    /// Whether they may come from entries of the index alone.
    pub covering: u32,
    /// Judges entries before their rows are read.
    pub filter: Filter,
}

/// Judges entries of an index.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Filter {
    /// Returns a `hw_verdict`; null: there is no filter.
    pub judge: Option<extern "C" fn(Context, Columns) -> u32>,
    /// Handed to it.
    pub context: Context,
    /// Positions of the columns that it gets.
    pub columns: Array<u32>,
}

/// A filter's function and its context, kept by a cursor.
#[derive(Clone, Copy)]
pub struct Judge(extern "C" fn(Context, Columns) -> u32, Context);

// SAFETY: the header's rule 3: a table's functions, and so its cursor's filter, are called by one thread at a time.
unsafe impl Send for Judge {}

impl Filter {
    /// The function, if there is one.
    pub fn judge(&self) -> Option<Judge> {
        self.judge.map(|judge| Judge(judge, self.context))
    }
}

impl Judge {
    /// What it says of an entry that has these columns.
    #[inline]
    pub fn ask(self, columns: &[Bytes]) -> u32 {
        self.0(self.1, Array::of(columns))
    }
}

/// Name of a prepared transaction.
#[repr(C)]
pub struct XidParts {
    /// Format id.
    pub format_id: i32,
    /// Global transaction id.
    pub global: Bytes,
    /// Branch qualifier.
    pub branch: Bytes,
}
