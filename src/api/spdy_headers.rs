//! Headers of SPDY/3.1 streams: zlib with a dictionary that both ends know, one stream of it for a whole connection. **Pure**.

use bytes::{Buf, Bytes};
use flate2::{Compress, CompressError, Compression, Decompress, DecompressError, FlushCompress, FlushDecompress};

/// Largest headers of one stream, decompressed.
const MAX_HEADERS: usize = 16 << 10;

/// The headers cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("decompress headers")]
    Decompress(#[source] DecompressError),
    #[error("compress headers")]
    Compress(#[source] CompressError),
    #[error("headers of more than {MAX_HEADERS} bytes")]
    TooLarge,
    #[error("headers that end too early")]
    Short,
}

/// The dictionary of the SPDY specification: words with their lengths before them, and a tail without.
fn dictionary() -> Vec<u8> {
    const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age \
        allow authorization cache-control connection content-base content-encoding content-language content-length content-location \
        content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range \
        if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer \
        retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get status \
        200_OK version HTTP/1.1 url public set-cookie keep-alive origin";
    const TAIL: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative \
        Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server \
        Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, \
        Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,\
        text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
    let mut dictionary = Vec::with_capacity(1423);
    for word in WORDS.split(' ').map(|word| word.replace('_', " ")) {
        dictionary.extend(u32::try_from(word.len()).unwrap_or(0).to_be_bytes());
        dictionary.extend(word.bytes());
    }
    dictionary.extend(TAIL.bytes());
    dictionary
}

/// Reads the headers of a client's streams, in the order of the streams.
#[derive(Debug)]
pub(super) struct Reader(Decompress);

impl Reader {
    pub(super) fn new() -> Self {
        Self(Decompress::new(true))
    }

    /// The headers, names in lower case as they come.
    pub(super) fn read(&mut self, compressed: &[u8]) -> Result<Headers, HeaderError> {
        Headers::parse(self.decompress(compressed)?.into())
    }

    fn decompress(&mut self, compressed: &[u8]) -> Result<Vec<u8>, HeaderError> {
        let mut headers = Vec::with_capacity(1024);
        let start = self.0.total_in();
        loop {
            let taken = usize::try_from(self.0.total_in() - start).unwrap_or(usize::MAX);
            let rest = compressed.get(taken..).unwrap_or_default();
            if headers.len() == headers.capacity() {
                if headers.len() >= MAX_HEADERS {
                    return Err(HeaderError::TooLarge);
                }
                headers.reserve(headers.len());
            }
            match self.0.decompress_vec(rest, &mut headers, FlushDecompress::Sync) {
                Ok(_) if self.0.total_in() - start >= compressed.len() as u64 && headers.len() < headers.capacity() => {
                    return Ok(headers);
                }
                // Neither took nor gave anything.
                Ok(_) if rest.is_empty() && headers.len() < headers.capacity() => return Ok(headers),
                Ok(_) => {
                    let now = usize::try_from(self.0.total_in() - start).unwrap_or(usize::MAX);
                    if now == taken && headers.len() < headers.capacity() {
                        return Err(HeaderError::Short);
                    }
                }
                Err(error) if error.needs_dictionary().is_some() => {
                    self.0.set_dictionary(&dictionary()).map_err(HeaderError::Decompress)?;
                }
                Err(error) => return Err(HeaderError::Decompress(error)),
            }
        }
    }
}

/// Writes the headers of replies, which have none.
#[derive(Debug)]
pub(super) struct Writer(Compress);

impl Writer {
    pub(super) fn new() -> Result<Self, HeaderError> {
        let mut compress = Compress::new(Compression::fast(), true);
        compress.set_dictionary(&dictionary()).map_err(HeaderError::Compress)?;
        Ok(Self(compress))
    }

    /// No headers.
    pub(super) fn none(&mut self) -> Result<Vec<u8>, HeaderError> {
        let mut compressed = Vec::with_capacity(64);
        self.0.compress_vec(&0_u32.to_be_bytes(), &mut compressed, FlushCompress::Sync).map_err(HeaderError::Compress)?;
        Ok(compressed)
    }
}

/// The headers of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Headers(Vec<(String, String)>);

impl Headers {
    fn parse(mut bytes: Bytes) -> Result<Self, HeaderError> {
        let count = bytes.try_get_u32().map_err(|_| HeaderError::Short)?;
        let mut text = || {
            let length = bytes.try_get_u32().map_err(|_| HeaderError::Short)? as usize;
            if length > bytes.len() {
                return Err(HeaderError::Short);
            }
            Ok(String::from_utf8_lossy(&bytes.split_to(length)).into_owned())
        };
        let mut headers = Vec::new();
        for _ in 0..count {
            headers.push((text()?, text()?));
        }
        Ok(Self(headers))
    }

    /// The value of a header.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(headers: &[(&str, &str)]) -> Vec<u8> {
        let mut block = (headers.len() as u32).to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            block.extend((text.len() as u32).to_be_bytes());
            block.extend(text.bytes());
        }
        block
    }

    fn compressed(writer: &mut Writer, block: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(block.len() + 64);
        writer.0.compress_vec(block, &mut bytes, FlushCompress::Sync).unwrap();
        bytes
    }

    #[test]
    fn headers_of_many_streams_are_read_with_one_memory() {
        let (mut writer, mut reader) = (Writer::new().unwrap(), Reader::new());
        for number in 0..200 {
            let id = number.to_string();
            let bytes = compressed(&mut writer, &block(&[("streamtype", "data"), ("port", "80"), ("requestid", &id)]));
            let headers = reader.read(&bytes).unwrap();
            assert_eq!((headers.get("requestid"), headers.get("port")), (Some(id.as_str()), Some("80")));
            assert_eq!(headers.get("nothing"), None);
        }
        assert_eq!(reader.read(&writer.none().unwrap()).unwrap(), Headers::default());
    }

    #[test]
    fn the_dictionary_is_the_specifications() {
        // The checksum by which zlib names it, as every SPDY/3 connection has it in its first headers.
        assert_eq!(Writer::new().unwrap().none().unwrap()[2..6], [0xe3, 0xc6, 0xa7, 0xc2]);
    }

    #[test]
    fn a_bomb_and_a_torso_are_errors() {
        let mut writer = Writer::new().unwrap();
        let bomb = compressed(&mut writer, &block(&[("a", &"b".repeat(1 << 20))]));
        assert!(matches!(Reader::new().read(&bomb), Err(HeaderError::TooLarge)));
        let mut writer = Writer::new().unwrap();
        let torso = compressed(&mut writer, b"\0\0\0\x01\0\0\0\x09x");
        assert!(matches!(Reader::new().read(&torso), Err(HeaderError::Short)));
        assert!(matches!(Reader::new().read(b"no zlib"), Err(HeaderError::Decompress(_))));
        assert!(matches!(Reader::new().read(b""), Err(HeaderError::Short)));
    }
}
