//! AES-256-XTS (IEEE 1619) over whole units.
//!
//! A unit is a sector, which no power cut tears, so after a crash an overwritten unit is the old or the new one,
//! encrypted as well as plain. Its number is the tweak: equal units at two offsets have different encryptions.
//!
//! Rules
//! 1. A unit of zeros on the device reads as zeros: growth, and holes that a discard has left. (Bytes whose encryption
//!    is 512 zeros do not occur.) Written zeros are encrypted like other bytes.
//! 2. The mode is implemented here, over the blocks of the `aes` crate, so that the processor encrypts the blocks of a
//!    unit in parallel. A test compares it with the vectors of the standard.

use super::key::random_bytes;
use crate::Result;
use crate::power_cut::SECTOR_BYTES;
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit, consts::U16};
use aes::{Aes256, Aes256Enc};
use zeroize::Zeroizing;

pub(super) const UNIT_BYTES: usize = SECTOR_BYTES as usize;
const BLOCK_BYTES: usize = 16;
const BLOCKS: usize = UNIT_BYTES / BLOCK_BYTES;
/// The terms of the field polynomial x^128 + x^7 + x^2 + x + 1 below x^128.
const POLYNOMIAL: u128 = 0x87;

/// Bytes of a file's key: the key of the blocks, then the key of the tweaks.
pub(super) const FILE_KEY_BYTES: usize = 64;

pub(super) type FileKey = Zeroizing<[u8; FILE_KEY_BYTES]>;

/// A new random key.
pub(super) fn random_key() -> Result<FileKey> {
    Ok(Zeroizing::new(random_bytes()?))
}

type Block = Array<u8, U16>;

/// The cipher of one file.
#[derive(Clone)]
pub(super) struct Xts {
    blocks: Aes256,
    tweaks: Aes256Enc,
}

impl Xts {
    pub(super) fn new(key: &FileKey) -> Xts {
        let (blocks, tweaks) = key.split_at(FILE_KEY_BYTES / 2);
        let fits = "half of a file's key is a key of AES-256";
        Xts {
            blocks: Aes256::new_from_slice(blocks).expect(fits),
            tweaks: Aes256Enc::new_from_slice(tweaks).expect(fits),
        }
    }

    /// Encrypts the units that begin at `offset` of the file.
    pub(super) fn encrypt(&self, offset: u64, data: &mut [u8]) {
        for (number, unit) in units(offset, data) {
            self.masked(number, unit, |blocks| self.blocks.encrypt_blocks(blocks));
        }
    }

    /// Decrypts the units that begin at `offset` of the file; zeros stay zeros (rule 1).
    pub(super) fn decrypt(&self, offset: u64, data: &mut [u8]) {
        for (number, unit) in units(offset, data).filter(|(_, unit)| unit.iter().any(|byte| *byte != 0)) {
            self.masked(number, unit, |blocks| self.blocks.decrypt_blocks(blocks));
        }
    }

    /// Adds the tweaks to the blocks of a unit, calls `crypt` for the blocks, and adds the tweaks again.
    fn masked(&self, number: u64, unit: &mut [u8], crypt: impl FnOnce(&mut [Block])) {
        let tweaks = self.tweaks_of(number);
        let (blocks, rest) = Block::slice_as_chunks_mut(unit);
        debug_assert!(blocks.len() == BLOCKS && rest.is_empty());
        add(blocks, &tweaks);
        crypt(blocks);
        add(blocks, &tweaks);
    }

    /// The tweak of each block of a unit: the encrypted number of the unit, times x for each block.
    fn tweaks_of(&self, number: u64) -> [u128; BLOCKS] {
        let mut first = Block::from(u128::from(number).to_le_bytes());
        self.tweaks.encrypt_block(&mut first);
        let mut tweaks = [u128::from_le_bytes(first.into()); BLOCKS];
        for n in 1..BLOCKS {
            let before = tweaks[n - 1];
            tweaks[n] = (before << 1) ^ ((before >> 127) * POLYNOMIAL);
        }
        tweaks
    }
}

fn add(blocks: &mut [Block], tweaks: &[u128; BLOCKS]) {
    for (block, tweak) in blocks.iter_mut().zip(tweaks) {
        *block = (u128::from_le_bytes((*block).into()) ^ tweak).to_le_bytes().into();
    }
}

/// The units of `data`, which is at `offset`, with their numbers.
fn units(offset: u64, data: &mut [u8]) -> impl Iterator<Item = (u64, &mut [u8])> {
    debug_assert!(offset.is_multiple_of(UNIT_BYTES as u64) && data.len().is_multiple_of(UNIT_BYTES));
    (offset / UNIT_BYTES as u64..).zip(data.chunks_exact_mut(UNIT_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// Vectors 10 and 11 of IEEE 1619-2007: 512 bytes, numbers 0xff and 0xffff of a data unit.
    #[test]
    fn the_standards_vectors_come_out() {
        let key = "2718281828459045235360287471352662497757247093699959574966967627
                   3141592653589793238462643383279502884197169399375105820974944592";
        let xts = Xts::new(&Zeroizing::new(hex(key).try_into().unwrap()));
        let plain: Vec<u8> = (0..=255).chain(0..=255).collect();
        for (number, expected) in [(0xff, VECTOR_10), (0xffff, VECTOR_11)] {
            let mut data = plain.clone();
            xts.encrypt(number * 512, &mut data);
            assert_eq!(data, hex(expected), "{number:x}");
            xts.decrypt(number * 512, &mut data);
            assert_eq!(data, plain);
        }
    }

    const VECTOR_10: &str = "
        1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b5d31e276f8fe4a8d66b317f9ac683f44680a
        86ac35adfc3345befecb4bb188fd5776926c49a3095eb108fd1098baec70aaa66999a72a82f27d848b21d4a741b0c5cd4d5f
        ff9dac89aeba122961d03a757123e9870f8acf1000020887891429ca2a3e7a7d7df7b10355165c8b9a6d0a7de8b062c4500d
        c4cd120c0f7418dae3d0b5781c34803fa75421c790dfe1de1834f280d7667b327f6c8cd7557e12ac3a0f93ec05c52e0493ef
        31a12d3d9260f79a289d6a379bc70c50841473d1a8cc81ec583e9645e07b8d9670655ba5bbcfecc6dc3966380ad8fecb17b6
        ba02469a020a84e18e8f84252070c13e9f1f289be54fbc481457778f616015e1327a02b140f1505eb309326d68378f837459
        5c849d84f4c333ec4423885143cb47bd71c5edae9be69a2ffeceb1bec9de244fbe15992b11b77c040f12bd8f6a975a44a0f9
        0c29a9abc3d4d893927284c58754cce294529f8614dcd2aba991925fedc4ae74ffac6e333b93eb4aff0479da9a410e4450e0
        dd7ae4c6e2910900575da401fc07059f645e8b7e9bfdef33943054ff84011493c27b3429eaedb4ed5376441a77ed43851ad7
        7f16f541dfd269d50d6a5f14fb0aab1cbb4c1550be97f7ab4066193c4caa773dad38014bd2092fa755c824bb5e54c4f36ffd
        a9fcea70b9c6e693e148c151
    ";

    const VECTOR_11: &str = "
        77a31251618a15e6b92d1d66dffe7b50b50bad552305ba0217a610688eff7e11e1d0225438e093242d6db274fde801d4cae0
        6f2092c728b2478559df58e837c2469ee4a4fa794e4bbc7f39bc026e3cb72c33b0888f25b4acf56a2a9804f1ce6d3d6e1dc6
        ca181d4b546179d55544aa7760c40d06741539c7e3cd9d2f6650b2013fd0eeb8c2b8e3d8d240ccae2d4c98320a7442e1c8d7
        5a42d6e6cfa4c2eca1798d158c7aecdf82490f24bb9b38e108bcda12c3faf9a21141c3613b58367f922aaa26cd22f23d708d
        ae699ad7cb40a8ad0b6e2784973dcb605684c08b8d6998c69aac049921871ebb65301a4619ca80ecb485a31d744223ce8ddc
        2394828d6a80470c092f5ba413c3378fa6054255c6f9df4495862bbb3287681f931b687c888abf844dfc8fc28331e579928c
        d12bd2390ae123cf03818d14dedde5c0c24c8ab018bfca75ca096f2d531f3d1619e785f1ada437cab92e980558b3dce1474a
        fb75bfedbf8ff54cb2618e0244c9ac0d3c66fb51598cd2db11f9be39791abe447c63094f7c453b7ff87cb5bb36b7c79efb08
        72d17058b83b15ab0866ad8a58656c5a7e20dbdf308b2461d97c0ec0024a2715055249cf3b478ddd4740de654f75ca686e0d
        7345c69ed50cdc2a8b332b1f8824108ac937eb050585608ee734097fc09054fbff89eeaeea791f4a7ab1f9868294a4f9e27b
        42af8100cb9d59cef9645803
    ";

    #[test]
    fn units_and_files_differ() {
        let (one, other) = (Xts::new(&random_key().unwrap()), Xts::new(&random_key().unwrap()));
        let encrypted = |xts: &Xts, offset| {
            let mut data = vec![7; 2 * UNIT_BYTES];
            xts.encrypt(offset, &mut data);
            data
        };
        let at_0 = encrypted(&one, 0);
        assert_ne!(at_0[..UNIT_BYTES], at_0[UNIT_BYTES..]);
        assert_eq!(at_0[UNIT_BYTES..], encrypted(&one, UNIT_BYTES as u64)[..UNIT_BYTES]);
        assert_ne!(at_0, encrypted(&other, 0));
    }
}
