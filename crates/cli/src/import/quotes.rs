//! Detects records of a CSV file that are longer than any row, and a file that ends inside quotes, while the file is
//! read.
//!
//! Rules
//! 1. Quotes are those of the reader of records (RFC 4180): a quote opens at the start of a field only; two quotes
//!    inside one are a character; what follows the closing one up to the delimiter is plain.
//! 2. A record of more than [`MAX_RECORD_BYTES`] or [`MAX_FIELDS`] is not read further: the reader would hold all of it
//!    in memory. If most of it follows a quote that is still open, that quote is the mistake.

use std::io::{Error, Read, Result};

/// Bytes of a record. A row of 16 MiB as hexadecimal digits has half of it.
const MAX_RECORD_BYTES: u64 = 64 << 20;
/// Fields of a record, far more than a table has columns: the reader keeps eight bytes for each.
const MAX_FIELDS: u64 = 1 << 16;

/// The position within a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Plain,
    Quoted,
    /// Behind a quote in a quoted field: its end, or the first of two.
    Closing,
}

/// A reader of a file that tracks its quotes.
#[derive(Debug)]
pub(super) struct Quotes<R> {
    file: R,
    delimiter: u8,
    at: At,
    line: u64,
    /// Line and byte of the quote that opened last.
    opened: (u64, u64),
    /// Line and byte where the record begins.
    record: (u64, u64),
    /// Delimiters of the record so far.
    delimiters: u64,
    bytes: u64,
    ended: bool,
}

/// An error of a record, and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A quote opens there that is never closed.
    Unclosed(u64),
    /// The record that begins there is longer than any row.
    TooLong(u64),
    /// The record that begins there has more fields than any row.
    TooManyFields(u64),
}

impl<R> Quotes<R> {
    /// Watches `file` from its first byte.
    pub(super) fn new(file: R, delimiter: u8) -> Quotes<R> {
        Quotes {
            file,
            delimiter,
            at: At::Start,
            line: 1,
            opened: (0, 0),
            record: (1, 0),
            delimiters: 0,
            bytes: 0,
            ended: false,
        }
    }

    /// The error at the position where reading ended.
    pub(super) fn wrong(&self) -> Option<Wrong> {
        let in_quotes = self.at == At::Quoted && self.bytes - self.opened.1 >= (self.bytes - self.record.1) / 2;
        match () {
            () if self.is_too_long() && in_quotes => Some(Wrong::Unclosed(self.opened.0)),
            () if self.bytes - self.record.1 > MAX_RECORD_BYTES => Some(Wrong::TooLong(self.record.0)),
            () if self.delimiters > MAX_FIELDS => Some(Wrong::TooManyFields(self.record.0)),
            () if self.ended && self.at == At::Quoted => Some(Wrong::Unclosed(self.opened.0)),
            () => None,
        }
    }

    fn is_too_long(&self) -> bool {
        self.bytes - self.record.1 > MAX_RECORD_BYTES || self.delimiters > MAX_FIELDS
    }

    fn pass(&mut self, byte: u8) {
        // A byte order mark is not part of the first field.
        let is_mark = self.bytes < 3 && byte == [0xef, 0xbb, 0xbf][self.bytes as usize];
        let ends_field = byte == self.delimiter || byte == b'\n' || byte == b'\r';
        self.bytes += 1;
        self.at = match self.at {
            At::Start if is_mark => At::Start,
            At::Start if byte == b'"' => {
                self.opened = (self.line, self.bytes);
                At::Quoted
            }
            At::Quoted if byte == b'"' => At::Closing,
            At::Closing if byte == b'"' => At::Quoted,
            At::Quoted => At::Quoted,
            _ if ends_field => At::Start,
            _ => At::Plain,
        };
        self.line += u64::from(byte == b'\n');
        self.delimiters += u64::from(byte == self.delimiter && self.at == At::Start);
        if self.at == At::Start && byte != self.delimiter && !is_mark {
            (self.record, self.delimiters) = ((self.line, self.bytes), 0);
        }
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.file.read(buffer)?;
        for byte in &buffer[..read] {
            self.pass(*byte);
            if self.is_too_long() {
                return Err(Error::other("a record is longer than any row"));
            }
        }
        self.ended |= read == 0 && !buffer.is_empty();
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of the quote that the watch finds open at the end.
    fn unclosed(text: &[u8]) -> Option<u64> {
        let mut quotes = Quotes::new(text, b',');
        std::io::copy(&mut quotes, &mut std::io::sink()).unwrap();
        quotes.wrong().map(|wrong| match wrong {
            Wrong::Unclosed(line) => line,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn quotes_open_and_close_as_the_reader_of_records_has_it() {
        for closed in [
            "",
            "a,b\n",
            "\"a\"\"b\",c\n",
            "a\"b,c\n",
            "\"a\nb\"\r\n",
            "\"a\"b\"c\n",
            "\u{feff}\"a\"\n",
            "a,\"\"\n",
            "\"\"\"\"",
        ] {
            assert_eq!(unclosed(closed.as_bytes()), None, "{closed:?}");
        }
        for (open, line) in
            [("\"", 1), ("a,b\n1,\"x\n2,y\n", 2), ("a\n\n\n\"b\"\"\nc", 4), ("\u{feff}\"a", 1), ("\"a\nb\"\n\"\"\"", 3)]
        {
            assert_eq!(unclosed(open.as_bytes()), Some(line), "{open:?}");
        }
    }

    /// Whatever the bytes: it is open at the end iff one more quote changes nothing but the last field.
    #[test]
    fn the_reader_of_records_agrees() {
        let mut n = 1u64;
        for _ in 0..20_000 {
            let mut next = |limit: u64| {
                n = n.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (n >> 33) % limit
            };
            let text: Vec<u8> = (0..next(12)).map(|_| b"\",\nab\r"[next(6) as usize]).collect();
            let records = |end: &[u8]| {
                let whole = [&text[..], end].concat();
                let mut builder = csv::ReaderBuilder::new();
                builder.has_headers(false).flexible(true);
                builder.from_reader(&whole[..]).into_byte_records().count()
            };
            // Two line ends with a field between them are a record more, unless they lie inside a quote.
            let swallowed = records(b"\nx\n") == records(b"") && !text.is_empty() && records(b"") > 0;
            assert_eq!(unclosed(&text).is_some(), swallowed, "{:?}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn what_is_longer_than_a_row_is_not_read_further() {
        let wrong = |start: &'static [u8], rest: u8| {
            let mut quotes = Quotes::new(start.chain(std::io::repeat(rest)), b',');
            assert!(std::io::copy(&mut quotes, &mut std::io::sink()).is_err());
            quotes.wrong()
        };
        assert_eq!(wrong(b"a,b\n1,\"", b'x'), Some(Wrong::Unclosed(2)));
        assert_eq!(wrong(b"a,b\n1,", b'x'), Some(Wrong::TooLong(2)));
        assert_eq!(wrong(b"a,b\n\n1,\"2\"", b'x'), Some(Wrong::TooLong(3)));
        assert_eq!(wrong(b"", b'x'), Some(Wrong::TooLong(1)));
        assert_eq!(wrong(b"a,b\r\n1", b','), Some(Wrong::TooManyFields(2)));
    }

    #[test]
    fn many_short_records_are_not_one_long_one() {
        let text = "\"1\",2,3\r\n\n".repeat(100_000);
        let mut quotes = Quotes::new(text.as_bytes(), b',');
        assert_eq!(std::io::copy(&mut quotes, &mut std::io::sink()).unwrap(), text.len() as u64);
        assert_eq!(quotes.wrong(), None);
    }
}
