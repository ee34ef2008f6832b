//! Tokens for the TLS port: who got it over the socket, until when, and a code of authentication by a key that only this process has. **Pure**
//! but for the key.

use super::Caller;
use podstead_settings::Role;
use ring::hmac;
use ring::rand::SystemRandom;
use std::sync::Arc;
use std::time::Duration;

/// Time that a token is good for. kubectl asks for one per command.
const LIFETIME: Duration = Duration::from_secs(600);
/// Groups in a token; a header has to have room for it.
const MOST_GROUPS: usize = 512;
const MAC_BYTES: usize = 32;
const HEAD_BYTES: usize = 17;

/// Reasons why a token cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenError {
    #[error("the system has no random numbers: no token can be made")]
    NoKey,
    #[error("the user is in {0} groups, which is more than a token has room for ({MOST_GROUPS})")]
    TooManyGroups(usize),
}

/// A token that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unsealed {
    /// It is of this daemon and in time.
    Valid(Caller),
    /// It is of this daemon and too old.
    Expired,
    /// It is not of this daemon.
    Foreign,
}

/// The key of this process.
pub(super) struct Tokens(Option<hmac::Key>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens(..)")
    }
}

impl Tokens {
    /// A key that nobody has had before.
    pub(super) fn with_new_key() -> Self {
        Self(hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok())
    }

    /// The token of a client. `now` is the time since the boot.
    pub(super) fn seal(&self, caller: &Caller, now: Duration) -> Result<String, TokenError> {
        let key = self.0.as_ref().ok_or(TokenError::NoKey)?;
        let Caller { uid, pid, gids, limit } = caller;
        if gids.len() > MOST_GROUPS {
            return Err(TokenError::TooManyGroups(gids.len()));
        }
        let mut bytes = Vec::with_capacity(HEAD_BYTES + gids.len() * 4 + MAC_BYTES);
        bytes.push(limit.map_or(0, code));
        bytes.extend((now + LIFETIME).as_secs().to_be_bytes());
        bytes.extend(uid.to_be_bytes());
        bytes.extend(pid.unwrap_or_default().to_be_bytes());
        gids.iter().for_each(|gid| bytes.extend(gid.to_be_bytes()));
        let mac = hmac::sign(key, &bytes);
        bytes.extend(mac.as_ref());
        Ok(hex::encode(bytes))
    }

    /// Reads a token. Nothing in it is looked at before its code of authentication.
    pub(super) fn unseal(&self, token: &str, now: Duration) -> Unsealed {
        self.open(token).map_or(Unsealed::Foreign, |(caller, expires)| {
            if now.as_secs() >= expires { Unsealed::Expired } else { Unsealed::Valid(caller) }
        })
    }

    fn open(&self, token: &str) -> Option<(Caller, u64)> {
        let bytes = hex::decode(token).ok()?;
        let (content, mac) = bytes.split_at_checked(bytes.len().checked_sub(MAC_BYTES)?)?;
        hmac::verify(self.0.as_ref()?, content, mac).ok()?;
        let (limit, content) = content.split_first()?;
        let (expires, content) = content.split_first_chunk()?;
        let (uid, content) = content.split_first_chunk()?;
        let (pid, gids) = content.split_first_chunk()?;
        let (gids, rest) = gids.as_chunks();
        let gids: Arc<[u32]> = gids.iter().map(|gid| u32::from_be_bytes(*gid)).collect();
        let pid = Some(i32::from_be_bytes(*pid)).filter(|pid| *pid != 0);
        let limit = [Role::View, Role::Edit, Role::Admin].into_iter().find(|role| code(*role) == *limit);
        let caller = Caller { uid: u32::from_be_bytes(*uid), pid, gids, limit };
        rest.is_empty().then_some((caller, u64::from_be_bytes(*expires)))
    }
}

const fn code(role: Role) -> u8 {
    match role {
        Role::View => 1,
        Role::Edit => 2,
        Role::Admin => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anna() -> Caller {
        Caller { uid: 1000, pid: Some(77), gids: Arc::from([1000, 27]), limit: Some(Role::Edit) }
    }

    #[test]
    fn token_names_its_owner_until_it_expires() {
        let tokens = Tokens::with_new_key();
        let now = Duration::from_secs(5);
        let token = tokens.seal(&anna(), now).unwrap();
        assert_eq!(tokens.unseal(&token, now), Unsealed::Valid(anna()));
        assert_eq!(tokens.unseal(&token, now + LIFETIME - Duration::from_secs(1)), Unsealed::Valid(anna()));
        assert_eq!(tokens.unseal(&token, now + LIFETIME), Unsealed::Expired);
        assert_eq!(Tokens::with_new_key().unseal(&token, now), Unsealed::Foreign, "another life of the daemon");
    }

    #[test]
    fn changed_token_is_foreign() {
        let tokens = Tokens::with_new_key();
        let token = tokens.seal(&anna(), Duration::ZERO).unwrap();
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            let forged = String::from_utf8(bytes).unwrap();
            assert_eq!(tokens.unseal(&forged, Duration::ZERO), Unsealed::Foreign, "{at}");
        }
        for odd in ["", "x", "00", &token[2..], &token[..token.len() - 2], &"0".repeat(100_000)] {
            assert_eq!(tokens.unseal(odd, Duration::ZERO), Unsealed::Foreign);
        }
    }

    #[test]
    fn groups_without_end_have_no_token() {
        let many = Caller { gids: (0..=MOST_GROUPS as u32).collect(), ..anna() };
        assert!(matches!(Tokens::with_new_key().seal(&many, Duration::ZERO), Err(TokenError::TooManyGroups(513))));
    }
}
