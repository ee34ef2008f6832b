//! Quoted strings with the escapes of Go. **Pure**.

use crate::parse::ParseError;

/// Reads the inside of a quoted string. Bytes that are no UTF-8 (`\xff`) become U+FFFD.
pub(crate) fn unquote(inside: &str, quote: char) -> Result<String, ParseError> {
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            if character == quote {
                return Err(ParseError::Escape);
            }
            push(&mut bytes, character);
            continue;
        }
        let escaped = rest.next().ok_or(ParseError::Escape)?;
        match escaped {
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'f' => bytes.push(12),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(11),
            '\\' => bytes.push(b'\\'),
            '\'' | '"' if escaped == quote => push(&mut bytes, escaped),
            'x' => bytes.push(u8::try_from(number(&mut rest, 2, 16, 0)?).map_err(|_| ParseError::Escape)?),
            'u' => push(&mut bytes, unicode(number(&mut rest, 4, 16, 0)?)?),
            'U' => push(&mut bytes, unicode(number(&mut rest, 8, 16, 0)?)?),
            '0'..='7' => {
                let first = escaped.to_digit(8).unwrap_or_default();
                bytes.push(u8::try_from(number(&mut rest, 2, 8, first)?).map_err(|_| ParseError::Escape)?);
            }
            _ => return Err(ParseError::Escape),
        }
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn push(bytes: &mut Vec<u8>, character: char) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Reads `count` digits that follow `first`.
fn number(rest: &mut std::str::Chars<'_>, count: usize, radix: u32, first: u32) -> Result<u32, ParseError> {
    let mut number = first;
    for _ in 0..count {
        let digit = rest.next().and_then(|digit| digit.to_digit(radix)).ok_or(ParseError::Escape)?;
        number = number.checked_mul(radix).and_then(|number| number.checked_add(digit)).ok_or(ParseError::Escape)?;
    }
    Ok(number)
}

fn unicode(number: u32) -> Result<char, ParseError> {
    char::from_u32(number).ok_or(ParseError::Escape)
}
