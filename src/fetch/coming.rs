//! The body of an answer, in the process that asked.

use bytes::buf::Reader;
use bytes::{Buf, Bytes, BytesMut};
use flate2::bufread::MultiGzDecoder;
use podstead_outbound::Failure;
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;
use std::io::Read;

/// Bytes decompressed at once.
const PIECE: usize = 64 << 10;

/// A body to come.
#[derive(Debug)]
pub(crate) struct Coming {
    response: Response,
    form: Form,
}

/// The form of a body.
#[derive(Debug)]
enum Form {
    /// As it comes.
    Plain,
    /// It has to be decompressed. At most so many bytes, before and after.
    Gzip(u64),
    /// It came, and is being decompressed.
    Whole(Unpacking),
}

/// The rest of a compressed body.
#[derive(Debug)]
struct Unpacking {
    decoder: Box<MultiGzDecoder<Reader<Bytes>>>,
    limit: u64,
    left: u64,
}

impl Coming {
    /// The body of `response`; with a limit, one that is compressed with gzip is decompressed.
    pub(crate) fn new(response: Response, unpack: Option<u64>) -> Self {
        let encoding = response.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_gzip = matches!(&*encoding.trim().to_ascii_lowercase(), "gzip" | "x-gzip");
        let form = unpack.filter(|_| is_gzip).map_or(Form::Plain, Form::Gzip);
        Self { response, form }
    }

    /// Length of what [`Self::chunk`] gives, if it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.form {
            Form::Plain => self.response.content_length(),
            Form::Gzip(_) | Form::Whole(_) => None,
        }
    }

    /// The response itself.
    #[cfg(feature = "testing")]
    pub(crate) fn response(&self) -> &Response {
        &self.response
    }

    /// The next part of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        if let Form::Gzip(limit) = self.form {
            let whole = self.whole(limit).await?;
            self.form = Form::Whole(Unpacking::new(whole, limit));
        }
        match &mut self.form {
            Form::Plain | Form::Gzip(_) => self.response.chunk().await.map_err(|error| Failure::of(&error)),
            Form::Whole(unpacking) => unpacking.next(),
        }
    }

    async fn whole(&mut self, limit: u64) -> Result<Bytes, Failure> {
        if self.response.content_length().is_some_and(|length| length > limit) {
            return Err(Failure::TooLarge(limit));
        }
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.response.chunk().await.map_err(|error| Failure::of(&error))? {
            if (whole.len() + chunk.len()) as u64 > limit {
                return Err(Failure::TooLarge(limit));
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }
}

impl Unpacking {
    fn new(whole: Bytes, limit: u64) -> Self {
        Self { decoder: Box::new(MultiGzDecoder::new(whole.reader())), limit, left: limit }
    }

    fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let mut piece = vec![0; PIECE];
        let read = self.decoder.read(&mut piece);
        let count = read.map_err(|error| Failure::Encoding(format!("is not a complete gzip stream: {error}")))?;
        self.left = self.left.checked_sub(count as u64).ok_or(Failure::TooLarge(self.limit))?;
        piece.truncate(count);
        Ok((count > 0).then(|| piece.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(bytes: &[u8], limit: u64) -> Result<Vec<u8>, Failure> {
        let mut unpacking = Unpacking::new(Bytes::copy_from_slice(bytes), limit);
        let mut all = Vec::new();
        while let Some(piece) = unpacking.next()? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    #[test]
    fn limit_counts_unpacked_bytes() {
        let bomb = gzip(&vec![b'a'; 1 << 20]);
        assert!(bomb.len() < 4096);
        assert_eq!(unpacked(&bomb, 1 << 20).unwrap().len(), 1 << 20);
        assert_eq!(unpacked(&bomb, (1 << 20) - 1), Err(Failure::TooLarge((1 << 20) - 1)));
        assert_eq!(unpacked(&[bomb.clone(), bomb].concat(), 2 << 20).unwrap().len(), 2 << 20);
    }

    #[test]
    fn half_a_stream_is_an_error() {
        let whole = gzip(b"kind: Pod");
        for end in 0..whole.len() {
            let told = unpacked(&whole[..end], 100);
            assert!(
                matches!(&told, Err(Failure::Encoding(text)) if text.starts_with("is not a complete gzip stream: ")),
                "{told:?}"
            );
        }
    }
}
