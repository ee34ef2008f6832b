//! The files of one run of a container: `N.log`, and what was rotated: `N.log.<time>`, plain or `.gz`.

use flate2::read::MultiGzDecoder;
use jiff::Timestamp;
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Number of listing attempts while files are rotated.
const MAX_LISTINGS: usize = 8;

/// Identity of a file, independent of its name.
pub(super) type FileId = (u64, u64);

/// An open log file.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) id: FileId,
    /// Name as rotated, without `.gz`; `None` for the live file. Names are ordered by time.
    pub(super) rotated: Option<String>,
    pub(super) reader: Reader,
    /// Modification time.
    pub(super) modified: Option<Timestamp>,
}

/// Reads plain or compressed.
#[derive(Debug)]
pub(super) enum Reader {
    Plain(BufReader<File>),
    Gzip(Box<BufReader<MultiGzDecoder<File>>>),
}

impl Reader {
    /// Reads up to and with the next newline, at most `limit` bytes, appending to `line`.
    pub(super) fn read_line(&mut self, line: &mut Vec<u8>, limit: u64) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.take(limit).read_until(b'\n', line),
            Self::Gzip(reader) => reader.take(limit).read_until(b'\n', line),
        }
    }
}

impl LogFile {
    fn open(path: &Path, rotated: Option<&str>) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let modified = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
        let reader = match path.extension() {
            Some(extension) if extension == "gz" => Reader::Gzip(Box::new(BufReader::new(MultiGzDecoder::new(file)))),
            _ => Reader::Plain(BufReader::new(file)),
        };
        let rotated = rotated.map(|name| name.strip_suffix(".gz").unwrap_or(name).to_owned());
        Ok(Self { id: id(&metadata), rotated, reader, modified })
    }

    /// True if it is compressed.
    pub(super) fn is_compressed(&self) -> bool {
        matches!(self.reader, Reader::Gzip(_))
    }

    /// Back to the beginning.
    pub(super) fn rewind(self) -> io::Result<Self> {
        let reader = match self.reader {
            Reader::Plain(mut reader) => {
                reader.rewind()?;
                Reader::Plain(reader)
            }
            Reader::Gzip(reader) => {
                let mut file = reader.into_inner().into_inner();
                file.seek(SeekFrom::Start(0))?;
                Reader::Gzip(Box::new(BufReader::new(MultiGzDecoder::new(file))))
            }
        };
        Ok(Self { reader, ..self })
    }
}

fn id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// The file that has the name of the live log now.
pub(super) fn live_id(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|metadata| id(&metadata))
}

/// Opens all files of the run, oldest first, the live one last. A rotation in the middle of it loses nothing: it is seen, and all is
/// done again. NotFound when there is no live file.
pub(super) fn open_all(path: &Path) -> io::Result<Vec<LogFile>> {
    let mut files = Vec::new();
    for _ in 0..MAX_LISTINGS {
        files.clear();
        let live = LogFile::open(path, None)?;
        let mut whole = true;
        for name in rotated_names(path)? {
            match LogFile::open(&path.with_file_name(&name), Some(&name)) {
                Ok(file) => files.push(file),
                // Compressed or removed since the listing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => whole = false,
                Err(error) => return Err(error),
            }
        }
        let settled = whole && live_id(path)? == live.id;
        files.push(live);
        if settled {
            break;
        }
    }
    Ok(files)
}

/// Names of rotated files, oldest first. A plain file beside its compressed copy is left out: it is about to be removed.
fn rotated_names(path: &Path) -> io::Result<Vec<String>> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(Vec::new());
    };
    let prefix = format!("{name}.");
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        match entry?.file_name().into_string() {
            Ok(name) if name.starts_with(&prefix) && !name.ends_with(".tmp") => names.push(name),
            // A file of another run, or of none.
            Ok(_) | Err(_) => {}
        }
    }
    names.sort_unstable();
    let compressed: Vec<String> = names.iter().filter_map(|name| name.strip_suffix(".gz")).map(str::to_owned).collect();
    names.retain(|name| !compressed.contains(name));
    Ok(names)
}
