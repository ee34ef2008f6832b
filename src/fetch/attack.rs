//! Servers that say what a job that was taken over would try, in test builds alone: by a header `podstead-attack: WORD`.

use crate::child::say;
use crate::message::{BodyEnd, Head, PIECE_MAX, Reply};
use podstead_outbound::Failure;
use reqwest::header::HeaderMap;
use std::io;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;

const NAME: &str = "podstead-attack";

/// Tries what the server says, if it says so. The answer may be a lie.
pub(crate) async fn attack(headers: &HeaderMap, to: &mut OwnedWriteHalf) -> io::Result<()> {
    let Some(word) = headers.get(NAME).and_then(|value| value.to_str().ok()) else { return Ok(()) };
    let head = |length| Reply::Head(Head { status: 200, headers: Vec::new(), length, remote: None });
    match word {
        "endless-messages" => loop {
            say(to, &head(None)).await?;
        },
        "long-message" => to.write_u32(u32::MAX).await?,
        "no-message" => to.write_all(&[0, 0, 0, 3, b'f', b'o', b'o']).await?,
        "other-header" => {
            let headers = vec![("set-cookie".to_owned(), "a".to_owned())];
            say(to, &Reply::Head(Head { status: 200, headers, length: None, remote: None })).await?;
        }
        "header-line" => {
            let headers = vec![("link".to_owned(), "a\r\nb".to_owned())];
            say(to, &Reply::Head(Head { status: 200, headers, length: None, remote: None })).await?;
        }
        "other-status" => say(to, &Reply::Head(Head { status: 65535, headers: Vec::new(), length: None, remote: None })).await?,
        "more-bytes" => {
            say(to, &head(Some(1))).await?;
            to.write_all(&[0, 0, 0, 2, b'a', b'a']).await?;
        }
        "fewer-bytes" => {
            say(to, &head(Some(1))).await?;
            to.write_u32(0).await?;
            say(to, &BodyEnd::Whole).await?;
        }
        "long-piece" => {
            say(to, &head(None)).await?;
            to.write_u32(u32::try_from(PIECE_MAX).unwrap_or(u32::MAX) + 1).await?;
        }
        "endless-body" => {
            say(to, &head(None)).await?;
            let piece = [&[0, 1, 0, 0][..], &vec![b'a'; 1 << 16]].concat();
            loop {
                to.write_all(&piece).await?;
            }
        }
        "words" => say(to, &Reply::Failed(Failure::Broken("\x1b[31mred\n".repeat(1000)))).await?,
        "own-failure" => say(to, &Reply::Failed(Failure::Process("as it likes".to_owned()))).await?,
        "close" => return Err(io::ErrorKind::Other.into()),
        "panic" => panic!("as the server wants it"),
        "silence" => {}
        word => {
            let text = format!("{word}: {}", podstead_sys::testing::attack(word));
            say(to, &Reply::Failed(Failure::Broken(text))).await?;
        }
    }
    // Nothing else comes.
    std::future::pending().await
}
