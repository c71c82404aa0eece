// SPDX-License-Identifier: GPL-2.0-or-later
//! `samples.parquet`: every sample of a run, in a format for pandas, DuckDB and other programs.
//!
//! Columns: `responder` (string, dictionary), `trigger`, `at_ns`, `latency_ns`, `path_insns` (unsigned 64-bit;
//! `path_insns` is null if nothing counted instructions). Rows are in the order of recording, compressed by zstd. The
//! file depends only on the samples and the version of onset: it has no time and no name of a host. It is written and
//! read in groups of [`GROUP_ROWS`], so memory does not grow with the run.

use super::claims;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use sample::{Insns, Nanos, Sample, SeriesId, SeriesName};
use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Once};

/// The number of samples in a row group. They take 2.6 MB, and 0.5 MB for each column while the group is written.
pub const GROUP_ROWS: usize = 1 << 16;

const SCHEMA: &str = "message samples {
    required binary responder (STRING);
    required int64 trigger (INTEGER(64, false));
    required int64 at_ns (INTEGER(64, false));
    required int64 latency_ns (INTEGER(64, false));
    optional int64 path_insns (INTEGER(64, false));
}";

/// The hash that tells runs apart. It is the BLAKE3 of the line `onset samples 2\n`, and then of 34 bytes for each
/// sample in the order of recording, little endian: the index of its series in the run (2 bytes), trigger, at in ns,
/// latency in ns, path in instructions (8 bytes each). Without a path a sample has 26 bytes.
pub struct Fingerprint {
    hasher: blake3::Hasher,
    waiting: Vec<u8>,
}

/// The number of bytes that are hashed at once. BLAKE3 is several times faster on long inputs than on single samples.
const HASHED_AT_ONCE: usize = 1 << 16;

impl Default for Fingerprint {
    fn default() -> Self {
        let waiting = Vec::with_capacity(HASHED_AT_ONCE);
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"onset samples 2\n");
        Fingerprint { hasher, waiting }
    }
}

impl Fingerprint {
    /// Adds the next sample to the hash.
    pub fn add(&mut self, s: &Sample) {
        self.waiting.extend_from_slice(&s.series.0.to_le_bytes());
        for number in [s.trigger, s.at.0, s.latency.0] {
            self.waiting.extend_from_slice(&number.to_le_bytes());
        }
        if let Some(Insns(path)) = s.path {
            self.waiting.extend_from_slice(&path.to_le_bytes());
        }
        if self.waiting.len() >= HASHED_AT_ONCE {
            self.hasher.update(&self.waiting);
            self.waiting.clear();
        }
    }

    /// The hash of all samples so far, in hexadecimal.
    pub fn hex(&self) -> String {
        self.hasher.clone().update(&self.waiting).finalize().to_hex().to_string()
    }
}

/// A file that hashes and counts the bytes that are written to it.
pub struct HashedFile {
    file: File,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl HashedFile {
    /// Hashes everything that is written to `file` from now on.
    pub fn new(file: File) -> Self {
        HashedFile { file, hasher: blake3::Hasher::new(), bytes: 0 }
    }

    /// Makes the contents durable. Returns their length and their hash in hexadecimal.
    pub fn sync(&mut self) -> io::Result<(u64, String)> {
        self.file.sync_all()?;
        Ok((self.bytes, self.hasher.finalize().to_hex().to_string()))
    }
}

impl Write for HashedFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let n = self.file.write(buffer)?;
        self.hasher.update(&buffer[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// When a sample's answer came, since measuring began.
pub fn answered(sample: &Sample) -> Nanos {
    sample.at.saturating_add(sample.latency)
}

/// Writes `samples.parquet`.
pub struct SamplesWriter {
    file: SerializedFileWriter<HashedFile>,
    /// The name of each series, by [`SeriesId`].
    names: Vec<ByteArray>,
    waiting: Vec<Sample>,
    count: u64,
    until: Option<Nanos>,
    fingerprint: Fingerprint,
}

/// The facts by which a finished file is known.
pub struct Written {
    /// The number of samples in the file.
    pub count: u64,
    /// When the last answer came, since measuring began. Absent without a sample.
    pub until: Option<Nanos>,
    /// The [`Fingerprint`] of the samples.
    pub fingerprint: String,
    /// The length of the file.
    pub bytes: u64,
    /// The hash of the file.
    pub blake3: String,
}

impl SamplesWriter {
    /// Begins the file of a run with these series.
    pub fn new(file: File, names: &[SeriesName]) -> io::Result<Self> {
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(into_io)?);
        let zstd = Compression::ZSTD(ZstdLevel::default());
        let mut properties = WriterProperties::builder()
            .set_compression(zstd)
            .set_created_by(concat!("onset ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_dictionary_enabled(false)
            .set_column_dictionary_enabled(ColumnPath::from("responder"), true);
        // Neighbouring values are alike: triggers rise by one, times by a period.
        for column in ["trigger", "at_ns", "latency_ns", "path_insns"] {
            let path = ColumnPath::from(column);
            properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let properties = Arc::new(properties.build());
        let file = SerializedFileWriter::new(HashedFile::new(file), schema, properties);
        Ok(SamplesWriter {
            file: file.map_err(into_io)?,
            names: names.iter().map(|name| ByteArray::from(name.as_str())).collect(),
            waiting: Vec::with_capacity(GROUP_ROWS),
            count: 0,
            until: None,
            fingerprint: Fingerprint::default(),
        })
    }

    /// Adds a sample.
    pub fn push(&mut self, sample: &Sample) -> io::Result<()> {
        self.fingerprint.add(sample);
        self.count += 1;
        self.until = self.until.max(Some(answered(sample)));
        self.waiting.push(*sample);
        if self.waiting.len() == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Ends the file and makes it durable.
    pub fn finish(mut self) -> io::Result<Written> {
        if !self.waiting.is_empty() {
            self.write_group()?;
        }
        self.file.finish().map_err(into_io)?;
        let (bytes, blake3) = self.file.inner_mut().sync()?;
        let (count, until, fingerprint) = (self.count, self.until, self.fingerprint.hex());
        Ok(Written { count, until, fingerprint, bytes, blake3 })
    }

    fn write_group(&mut self) -> io::Result<()> {
        let mut group = self.file.next_row_group().map_err(into_io)?;
        write_columns(&mut group, &self.names, &self.waiting).map_err(into_io)?;
        group.close().map_err(into_io)?;
        self.waiting.clear();
        Ok(())
    }
}

fn write_columns(
    group: &mut SerializedRowGroupWriter<'_, HashedFile>,
    names: &[ByteArray],
    samples: &[Sample],
) -> Result<(), ParquetError> {
    let column: Vec<ByteArray> = samples.iter().map(|s| names[s.series.index()].clone()).collect();
    if let Some(mut writer) = group.next_column()? {
        writer.typed::<ByteArrayType>().write_batch(&column, None, None)?;
        writer.close()?;
    }
    drop(column);
    let numbers: [fn(&Sample) -> u64; 3] = [|s| s.trigger, |s| s.at.0, |s| s.latency.0];
    for number in numbers {
        // Parquet keeps an unsigned number as the signed number with the same bits.
        let column: Vec<i64> = samples.iter().map(|s| number(s) as i64).collect();
        if let Some(mut writer) = group.next_column()? {
            writer.typed::<Int64Type>().write_batch(&column, None, None)?;
            writer.close()?;
        }
    }
    let present: Vec<i16> = samples.iter().map(|s| s.path.is_some().into()).collect();
    let column: Vec<i64> = samples.iter().filter_map(|s| Some(s.path?.0 as i64)).collect();
    if let Some(mut writer) = group.next_column()? {
        writer.typed::<Int64Type>().write_batch(&column, Some(&present), None)?;
        writer.close()?;
    }
    Ok(())
}

/// Hands every sample of the file to `each`, in the order of recording. `names` are the run's series, by
/// [`SeriesId`].
///
/// # Errors
/// The text says what is wrong with the file.
pub fn read_samples(
    file: File,
    names: &[&SeriesName],
    mut each: impl FnMut(Sample),
) -> Result<(), String> {
    let ids =
        names.iter().zip(0..=u16::MAX).map(|(name, id)| (name.as_str().as_bytes(), SeriesId(id)));
    let ids: HashMap<&[u8], SeriesId> = ids.collect();
    claims::check_description(&file)?;
    let claimed = file.try_clone().map_err(|e| e.to_string())?;
    let reader = decoding(|| SerializedFileReader::new(file).map_err(|e| e.to_string()))?;
    let expected = parse_message_type(SCHEMA).map_err(|e| e.to_string())?;
    if reader.metadata().file_metadata().schema() != &expected {
        return Err("its columns are not the columns of samples".to_owned());
    }
    claims::check_pages(&claimed, reader.metadata())?;
    for index in 0..reader.num_row_groups() {
        let samples = decoding(|| {
            let group = reader.get_row_group(index).map_err(|e| e.to_string())?;
            read_group(&*group, &ids)
        })?;
        samples.into_iter().for_each(&mut each);
    }
    Ok(())
}

/// Lets the library decode. The library panics on some damaged files.
fn decoding<T>(decode: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    thread_local! {
        static IS_DECODING: Cell<bool> = const { Cell::new(false) };
    }
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_DECODING.get() {
                told(panic);
            }
        }));
    });
    let outer = IS_DECODING.replace(true);
    let decoded = std::panic::catch_unwind(AssertUnwindSafe(decode));
    IS_DECODING.set(outer);
    decoded.unwrap_or_else(|_| Err("the Parquet library cannot decode it".to_owned()))
}

fn read_group(
    group: &dyn RowGroupReader,
    ids: &HashMap<&[u8], SeriesId>,
) -> Result<Vec<Sample>, String> {
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(usize::MAX);
    if rows > GROUP_ROWS {
        return Err(format!("a row group has more than {GROUP_ROWS} rows"));
    }
    let series = read_series(group, ids, rows)?;
    let numbers = |column| read_numbers(group, column, rows);
    let (trigger, at, latency) = (numbers(1)?, numbers(2)?, numbers(3)?);
    let path = read_path(group, rows)?;
    let sample = |(row, series): (usize, SeriesId)| Sample {
        series,
        trigger: trigger[row] as u64,
        at: Nanos(at[row] as u64),
        latency: Nanos(latency[row] as u64),
        path: path[row],
    };
    Ok(series.into_iter().enumerate().map(sample).collect())
}

fn read_series(
    group: &dyn RowGroupReader,
    ids: &HashMap<&[u8], SeriesId>,
    rows: usize,
) -> Result<Vec<SeriesId>, String> {
    let reader = group.get_column_reader(0).map_err(|e| e.to_string())?;
    let mut names = Vec::with_capacity(rows);
    get_typed_column_reader::<ByteArrayType>(reader)
        .read_records(rows, None, None, &mut names)
        .map_err(|e| e.to_string())?;
    if names.len() != rows {
        return Err("a column is shorter than its row group".to_owned());
    }
    let find = |name: &ByteArray| {
        let known = ids.get(name.data()).copied();
        known.ok_or_else(|| "it has a responder that the run does not have".to_owned())
    };
    names.iter().map(find).collect()
}

/// Reads the last column, which is the only column with nulls.
fn read_path(group: &dyn RowGroupReader, rows: usize) -> Result<Vec<Option<Insns>>, String> {
    let reader = group.get_column_reader(4).map_err(|e| e.to_string())?;
    let (mut present, mut numbers) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    get_typed_column_reader::<Int64Type>(reader)
        .read_records(rows, Some(&mut present), None, &mut numbers)
        .map_err(|e| e.to_string())?;
    if present.len() != rows {
        return Err("a column is too short".to_owned());
    }
    let mut numbers = numbers.into_iter();
    let path = present.iter().map(|level| match level {
        0 => Ok(None),
        _ => {
            numbers.next().map(|n| Some(Insns(n as u64))).ok_or("a column is too short".to_owned())
        }
    });
    path.collect()
}

fn read_numbers(
    group: &dyn RowGroupReader,
    column: usize,
    rows: usize,
) -> Result<Vec<i64>, String> {
    let reader = group.get_column_reader(column).map_err(|e| e.to_string())?;
    let mut numbers = Vec::with_capacity(rows);
    get_typed_column_reader::<Int64Type>(reader)
        .read_records(rows, None, None, &mut numbers)
        .map_err(|e| e.to_string())?;
    if numbers.len() == rows { Ok(numbers) } else { Err("a column is too short".to_owned()) }
}

/// Keeps the operating system's reason (a full disk, say), if there is one.
fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(io) => *io,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
