// SPDX-License-Identifier: GPL-2.0-or-later
//! Checks the lengths that a Parquet file claims, before the decoder believes them.
//!
//! The decoder takes as much memory as a file says that a list, a page or a dictionary will need. A prepared file may
//! claim anything. This module reads only the claims (Thrift's compact protocol, the field numbers of
//! `parquet.thrift`), and refuses claims that are larger than any samples need. The decoder reports all other mistakes
//! of a file.

use super::samples::GROUP_ROWS;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The most bytes of the description at the file's end. Each row group takes some 700 bytes of it.
const FOOTER_MAX: u64 = 64 << 20;
/// The length of the file's very end: the length of the description and the magic number.
const TAIL: u64 = 8;
/// A longer list than this is a list of row groups. Each row group takes at least this many bytes.
const LIST_SHORT: u64 = 32;
const LIST_ELEMENT: u64 = 256;
/// The most levels of the description. Real descriptions have half as many.
const DEPTH_MAX: usize = 16;
/// The most bytes of a page's header. Real headers take some 30 bytes.
const HEADER_MAX: usize = 1 << 10;
/// The most bytes of a page of a row group: a name and its length for each row.
const PAGE_MAX: i64 = (GROUP_ROWS * 68) as i64;
/// The encodings of a run's samples: PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY. The other
/// encodings take the number of their values from the data.
const ENCODINGS: [i64; 5] = [0, 2, 3, 5, 8];

/// Checks the description at the end of the file. Call this before the description is decoded.
///
/// # Errors
/// The text says what is wrong with the file.
pub fn check_description(file: &File) -> Result<(), String> {
    let length = file.metadata().map_err(told)?.len();
    let end = length.checked_sub(TAIL).ok_or("it is cut short")?;
    let mut tail = [0; 4];
    file.read_exact_at(&mut tail, end).map_err(told)?;
    let footer = u64::from(u32::from_le_bytes(tail));
    if footer > FOOTER_MAX || footer > end {
        return Err("its description is longer than the description of any samples".to_owned());
    }
    let mut bytes = vec![0; footer as usize];
    file.read_exact_at(&mut bytes, end - footer).map_err(told)?;
    let walked = Walk { left: &bytes }.structure(&mut Vec::new(), &mut |_, _| ());
    walked.ok_or_else(|| "its description is damaged".to_owned())
}

/// Checks every page. Call this before the first page is decoded.
///
/// # Errors
/// The text says what is wrong with the file.
pub fn check_pages(file: &File, metadata: &ParquetMetaData) -> Result<(), String> {
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    columns.into_iter().try_for_each(|column| {
        check_column(file, column)
            .ok_or_else(|| "it has a page that is no page of samples".to_owned())
    })
}

fn check_column(file: &File, column: &ColumnChunkMetaData) -> Option<()> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let mut at = u64::try_from(start).ok()?;
    let end = at.checked_add(u64::try_from(column.compressed_size()).ok()?)?;
    if end > file.metadata().ok()?.len() {
        return None;
    }
    while at < end {
        let mut bytes = vec![0; HEADER_MAX.min(usize::try_from(end - at).ok()?)];
        file.read_exact_at(&mut bytes, at).ok()?;
        let (header, page) = check_page(&bytes)?;
        at = at.checked_add(header)?.checked_add(page)?;
    }
    (at == end).then_some(())
}

/// The lengths of the header at the beginning of `bytes` and of the page behind it. `None` if a claim is too large.
fn check_page(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut walk = Walk { left: bytes };
    let (mut page, mut is_sound) = (None, true);
    walk.structure(&mut Vec::new(), &mut |path, value| match path {
        // The length of the unpacked page, and its length in the file.
        [2] => is_sound &= (0..=PAGE_MAX).contains(&value),
        [3] => page = u64::try_from(value).ok(),
        // The values of a page, of a dictionary, and of a page of the second kind.
        [5 | 7 | 8, 1] => is_sound &= (0..=GROUP_ROWS as i64).contains(&value),
        [5 | 7, 2] | [8, 4] => is_sound &= ENCODINGS.contains(&value),
        _ => {}
    })?;
    is_sound.then_some(((bytes.len() - walk.left.len()) as u64, page?))
}

fn told(e: io::Error) -> String {
    e.to_string()
}

/// Walks over data in Thrift's compact protocol.
struct Walk<'a> {
    left: &'a [u8],
}

impl Walk<'_> {
    /// Hands every integer of a structure to `each`, with the numbers of the fields around it. `None` if the bytes end,
    /// mean nothing, or claim a list that they cannot hold.
    fn structure(&mut self, path: &mut Vec<i16>, each: &mut impl FnMut(&[i16], i64)) -> Option<()> {
        let mut field = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => i16::try_from(self.integer()?).ok()?,
                further => field.checked_add(further.into())?,
            };
            path.push(field);
            self.value(head & 15, path, each)?;
            path.pop();
        }
    }

    fn value(
        &mut self,
        kind: u8,
        path: &mut Vec<i16>,
        each: &mut impl FnMut(&[i16], i64),
    ) -> Option<()> {
        if path.len() > DEPTH_MAX {
            return None;
        }
        match kind {
            // The kind of such a value says whether it is true or false.
            1 | 2 => Some(()),
            3 => self.byte().map(drop),
            4..=6 => {
                let value = self.integer()?;
                each(path, value);
                Some(())
            }
            7 => self.skip(8),
            8 => {
                let length = self.number()?;
                self.skip(length)
            }
            9 | 10 => self.list(path, each),
            12 => self.structure(path, each),
            // Maps, which no Parquet file has here.
            _ => None,
        }
    }

    fn list(&mut self, path: &mut Vec<i16>, each: &mut impl FnMut(&[i16], i64)) -> Option<()> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.number()?,
            few => few.into(),
        };
        if count > LIST_SHORT && count > self.left.len() as u64 / LIST_ELEMENT {
            return None;
        }
        path.push(0);
        for _ in 0..count {
            match head & 15 {
                1 | 2 => self.byte().map(drop)?,
                kind => self.value(kind, path, each)?,
            }
        }
        path.pop();
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, left) = self.left.split_first()?;
        self.left = left;
        Some(*byte)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.left = self.left.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    /// A number. Each byte has seven bits of it, the lowest first. The highest bit of a byte says that another byte
    /// follows.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    /// A number whose lowest bit is the sign.
    fn integer(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::read_samples;
    use super::*;
    use crate::SAMPLES;
    use crate::examples::{run_id, write_bundle};
    use sample::SeriesName;
    use std::fs;
    use std::io::Write;

    fn described(footer: &[u8]) -> Result<(), String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(footer).unwrap();
        file.write_all(&(footer.len() as u32).to_le_bytes()).unwrap();
        file.write_all(b"PAR1").unwrap();
        check_description(&file)
    }

    #[test]
    fn a_description_that_claims_more_than_it_has_is_refused() {
        // A version, and an empty list of structures.
        described(&[0x15, 4, 0x19, 0x0c, 0]).unwrap();
        // A list of a thousand million; the same inside another structure; a text of as many bytes; structures inside
        // structures without end; a description that is longer than the file.
        let million = [0x19, 0xfc, 0x80, 0x94, 0xeb, 0xdc, 3];
        described(&million).unwrap_err();
        described(&[&[0x19, 0x1c][..], &million, &[0, 0]].concat()).unwrap_err();
        described(&[0x18, 0x80, 0x94, 0xeb, 0xdc, 3, 0]).unwrap_err();
        described(&[0x1c; 4096]).unwrap_err();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"\0\xff\xff\xff\x7fPAR1").unwrap();
        assert!(check_description(&file).unwrap_err().contains("longer"));
    }

    #[test]
    fn a_page_that_claims_more_than_a_row_group_has_is_refused() {
        let number = |n: u32| -> Vec<u8> {
            // The value is doubled, because the lowest bit is the sign.
            let n = u64::from(n) * 2;
            (0..5).map(|i| (n >> (7 * i) & 127) as u8 | if i < 4 { 128 } else { 0 }).collect()
        };
        // The page of a dictionary: its kind, its length unpacked and in the file, and in the structure its values and
        // encoding.
        let page = |unpacked: u32, values: u32, encoding: u8| {
            let unpacked = [&[0x15, 4, 0x15][..], &number(unpacked)].concat();
            let inner = [&[0x4c, 0x15][..], &number(values), &[0x15, encoding * 2, 0, 0]].concat();
            [&unpacked[..], &[0x15, 20], &inner].concat()
        };
        let sound = page(4096, 3, 0);
        assert_eq!(check_page(&sound), Some((sound.len() as u64, 10)));
        assert_eq!(check_page(&page(i32::MAX as u32, 3, 0)), None);
        assert_eq!(check_page(&page(4096, i32::MAX as u32, 0)), None);
        // Encoding 6 has lengths as deltas.
        assert_eq!(check_page(&page(4096, 3, 6)), None);
    }

    #[test]
    fn whatever_stands_in_a_file_of_samples_is_read_or_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = write_bundle(root.path(), &run_id(0), 30).join(SAMPLES);
        let whole = fs::read(&path).unwrap();
        let names = ["hardirq", "task"].map(|name| name.parse().unwrap());
        let names: Vec<&SeriesName> = names.iter().collect();
        let read = || {
            let mut count = 0;
            let file = File::open(&path).unwrap();
            read_samples(file, &names, |_| count += 1).map(|()| count)
        };
        assert_eq!(read(), Ok(60));
        let mut refused = 0;
        for place in 0..whole.len() {
            for noise in [1, 0x7f, 0x80, 0xff] {
                let mut altered = whole.clone();
                altered[place] ^= noise;
                fs::write(&path, altered).unwrap();
                refused += u32::from(read().is_err());
            }
            fs::write(&path, &whole[..place]).unwrap();
            assert!(read().is_err(), "{place}");
        }
        assert!(refused > 0);
    }
}
