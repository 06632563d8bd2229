//! Watches the quotes of a CSV file while it is read: whether its end, or all that fits a row, comes inside of one.
//!
//! Rules
//! 1. What opens and closes a quote is what the reader of records takes for it (RFC 4180): a quote opens at the start
//!    of a field only; two quotes inside one are a character; what follows the closing one up to the delimiter is
//!    plain.
//! 2. A quote that is still open after [`LONGEST_BYTES`] is not read further: the reader would hold all of it in
//!    memory.

use std::io::{Error, Read, Result};

/// Longest text in quotes. A row of 16 MiB as hexadecimal digits has half of it.
const LONGEST_BYTES: u64 = 64 << 20;

/// Where the watch is within a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Plain,
    Quoted,
    /// Behind a quote in a quoted field: its end, or the first of two.
    Closing,
}

/// A file whose quotes are watched.
#[derive(Debug)]
pub struct Quotes<R> {
    file: R,
    delimiter: u8,
    at: At,
    line: u64,
    /// Line and byte of the quote that opened last.
    opened: (u64, u64),
    bytes: u64,
    ended: bool,
}

impl<R> Quotes<R> {
    /// Watches `file` from its first byte.
    pub fn new(file: R, delimiter: u8) -> Quotes<R> {
        Quotes { file, delimiter, at: At::Start, line: 1, opened: (0, 0), bytes: 0, ended: false }
    }

    /// The line on which a quote opened that is not closed where reading ended.
    pub fn unclosed(&self) -> Option<u64> {
        (self.ended && self.at == At::Quoted).then_some(self.opened.0)
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
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.file.read(buffer)?;
        buffer[..read].iter().for_each(|byte| self.pass(*byte));
        let too_long = self.at == At::Quoted && self.bytes - self.opened.1 > LONGEST_BYTES;
        self.ended |= too_long || (read == 0 && !buffer.is_empty());
        if too_long { Err(Error::other("a field in quotes is longer than any row")) } else { Ok(read) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of the quote that the watch finds open at the end.
    fn unclosed(text: &[u8]) -> Option<u64> {
        let mut quotes = Quotes::new(text, b',');
        std::io::copy(&mut quotes, &mut std::io::sink()).unwrap();
        quotes.unclosed()
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
    fn a_quote_that_stays_open_is_not_read_for_ever() {
        let endless = (&b"a,b\n1,\""[..]).chain(std::io::repeat(b'x'));
        let mut quotes = Quotes::new(endless, b',');
        let read = std::io::copy(&mut quotes, &mut std::io::sink());
        assert!(read.is_err() && quotes.unclosed() == Some(2));
    }
}
