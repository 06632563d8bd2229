//! Copies: what was sealed opens, what was changed does not; keys by their ids.

use super::*;
use crate::DataKeys;
use std::io::Cursor;

fn key() -> CopyKey {
    DataKeys::random().unwrap().copy_key()
}

fn file(key: &CopyKey, records: &[&[u8]]) -> Vec<u8> {
    let (mut sealer, head) = key.new_file().unwrap();
    let mut bytes = head.to_vec();
    records.iter().for_each(|record| sealer.seal(record, &mut bytes));
    bytes
}

/// What opens, up to the first error.
fn opened(key: &CopyKey, bytes: &[u8]) -> (Vec<u8>, Option<ErrorKind>) {
    let mut plain = Vec::new();
    let read = CopyReader::new(bytes, bytes.len() as u64, Some(key)).and_then(|mut copy| copy.read_to_end(&mut plain));
    (plain, read.err().map(|error| error.kind()))
}

#[test]
fn what_was_sealed_opens_and_is_nowhere_in_the_file() {
    let (key, secret) = (key(), b"Rosebud-was-a-sledge");
    let bytes = file(&key, &[secret, secret, b"!"]);
    assert_eq!(opened(&key, &bytes), ([&secret[..], secret, b"!"].concat(), None));
    assert!(!bytes.windows(secret.len()).any(|part| part == secret));
    // Equal records and equal files look different.
    let record = LENGTH_BYTES + secret.len() + TAG_BYTES;
    assert_ne!(bytes[HEAD_BYTES..][..record], bytes[HEAD_BYTES + record..][..record]);
    assert_ne!(bytes[HEAD_BYTES..], file(&key, &[secret, secret, b"!"])[HEAD_BYTES..]);
    let whole = file(&key, &[&[7; SEALED_RECORD_BYTES], &[7; 5]]);
    assert_eq!(whole.len() as u64, sealed_bytes(SEALED_RECORD_BYTES as u64 + 5));
}

#[test]
fn a_changed_bit_or_a_torn_tail_opens_nothing_from_there_on() {
    let key = key();
    let bytes = file(&key, &[b"first", b"second"]);
    let second = HEAD_BYTES + LENGTH_BYTES + 5 + TAG_BYTES;
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let (plain, error) = opened(&key, &changed);
        assert_eq!(error, Some(ErrorKind::InvalidData), "byte {at}");
        assert_eq!(plain, if at < second { &b""[..] } else { b"first" }, "byte {at}");
    }
    for len in 0..bytes.len() {
        let (plain, error) = opened(&key, &bytes[..len]);
        assert_eq!(plain, if len < second { &b""[..] } else { b"first" }, "{len} bytes");
        assert_eq!(error.is_none(), [HEAD_BYTES, second].contains(&len), "{len} bytes");
        let counted = plain_bytes(&mut Cursor::new(&bytes[..len]), len as u64).unwrap();
        assert_eq!(counted == plain.len() as u64, error.is_none() || len < HEAD_BYTES, "{len} bytes: {counted}");
    }
    // Records in another order, or of another file.
    let swapped = [&bytes[..HEAD_BYTES], &bytes[second..], &bytes[HEAD_BYTES..second]].concat();
    assert_eq!(opened(&key, &swapped), (Vec::new(), Some(ErrorKind::InvalidData)));
    let other = [&file(&key, &[])[..], &bytes[HEAD_BYTES..]].concat();
    assert_eq!(opened(&key, &other), (Vec::new(), Some(ErrorKind::InvalidData)));
}

#[test]
fn a_key_is_found_by_its_id_and_a_missing_one_is_named() {
    let (own, other) = (key(), key());
    assert!(own.id() != other.id() && opened(&other, &file(&own, &[b"x"])).1 == Some(ErrorKind::InvalidData));
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let user = EncryptionKey::new([1; 32]);
    let refusal = |keys: &CopyKeys, id| match keys.get(id, dir) {
        Err(OpenError::Encryption(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(CopyKeys::of([dir], None).get(0, dir).unwrap().is_none());
    assert!(matches!(refusal(&CopyKeys::of([dir], None), 5), EncryptionError::NeedsKey(_)));
    let missing = refusal(&CopyKeys::of([dir], Some(&user)), 5).to_string();
    assert!(missing.contains("keys: it is missing"), "{missing}");
    let keys = DataKeys::random().unwrap().with_table(&user);
    keys.table().unwrap().put_into(dir).unwrap();
    let id = keys.copy_key().id();
    assert_eq!(CopyKeys::of([dir], Some(&user)).get(id, dir).unwrap().map(CopyKey::id), Some(id));
    assert!(matches!(refusal(&CopyKeys::of([dir], None), id), EncryptionError::NeedsKey(_)));
    let wrong = CopyKeys::of([dir], Some(&EncryptionKey::new([2; 32])));
    assert!(matches!(refusal(&wrong, id), EncryptionError::WrongKey(_)));
    assert!(refusal(&CopyKeys::of([dir], Some(&user)), id ^ 2).to_string().contains("keys of other files"));
}
