//! The time at which certificates of servers are judged (I39).
//!
//! A host may boot with a clock in the past. It has to reach its registries and sources nevertheless, and what has expired has to stay expired. So
//! the time is that of [`judged_at`]: the clock, the release of this version, and the begin of a certificate that a trusted authority signed, whichever
//! is latest. An authority says by the begin that time has passed at least that far. It counts for its own chain alone: one that is wrong by years
//! does no harm to other servers. So a clock that is right never differs from this, but for a certificate that was made for the future.

use jiff::Timestamp;
use podstead_trust::judged_at;
use podstead_workload::cron::BUILT;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;
use std::time::Duration;

/// Certificates of a chain whose begins may differ. Chains have no more, and each step costs a verification.
const CHAIN_MAX: usize = 6;

/// A verifier of certificates that asks another one at the newest time that is known.
#[derive(Debug)]
pub(super) struct Judge {
    verifier: Arc<WebPkiServerVerifier>,
}

impl Judge {
    pub(super) fn new(verifier: Arc<WebPkiServerVerifier>) -> Self {
        Self { verifier }
    }
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut at = latest(now, None);
        for _ in 0..CHAIN_MAX {
            match self.verifier.verify_server_cert(certificate, intermediates, name, ocsp, at) {
                // It begins later. That is worth nothing until the chain is verified at that time as a whole.
                Err(Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) if not_before > at => {
                    at = latest(now, Some(not_before));
                }
                result => return result,
            }
        }
        self.verifier.verify_server_cert(certificate, intermediates, name, ocsp, at)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// The latest of the clock, the release of this version, and what a certificate says.
fn latest(now: UnixTime, stated: Option<UnixTime>) -> UnixTime {
    let time = |time: UnixTime| i64::try_from(time.as_secs()).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let at =
        judged_at(time(now).unwrap_or(Timestamp::MAX), Some(BUILT), stated.map(|stated| time(stated).unwrap_or(Timestamp::MAX)));
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(at.as_second()).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::super::tls::{Authorities, client_config};
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::time_provider::TimeProvider;
    use rustls::{ClientConnection, ServerConfig, ServerConnection};

    /// Seconds since 1970 at noon of a day.
    fn noon(year: i16, month: i8, day: i8) -> u64 {
        let noon = jiff::civil::date(year, month, day).at(12, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        noon.timestamp().as_second().try_into().unwrap()
    }

    #[derive(Debug)]
    struct Clock(u64);

    impl TimeProvider for Clock {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
        }
    }

    type Years = (i32, i32);

    fn params(names: &[&str], (from, until): Years) -> CertificateParams {
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(from, 1, 1), rcgen::date_time_ymd(until, 1, 1));
        params
    }

    fn authority(years: Years) -> CertificateParams {
        let mut params = params(&[], years);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    }

    /// An authority, one that it signed, and a server.
    struct Site {
        root: CertificateDer<'static>,
        server: Arc<ServerConfig>,
    }

    impl Site {
        /// Valid in these years each.
        fn new(root: Years, between: Years, leaf: Years) -> Self {
            let [root_key, between_key, key] = [(); 3].map(|()| KeyPair::generate().unwrap());
            let root_certificate = authority(root).self_signed(&root_key).unwrap().der().clone();
            let root = Issuer::new(authority(root), root_key);
            let between_certificate = authority(between).signed_by(&between_key, &root).unwrap().der().clone();
            let between = Issuer::new(authority(between), between_key);
            let leaf = params(&["registry.lan"], leaf).signed_by(&key, &between).unwrap().der().clone();
            let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
            let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
            let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
            let server = builder.with_single_cert(vec![leaf, between_certificate], key).unwrap();
            Self { root: root_certificate, server: Arc::new(server) }
        }

        /// A handshake by a client whose clock shows this.
        fn meet(&self, name: &str, trusted: &CertificateDer<'static>, clock: u64) -> Result<(), Error> {
            let mut config = client_config(Authorities::Only(vec![trusted.clone()]), None).unwrap();
            config.time_provider = Arc::new(Clock(clock));
            let name = ServerName::try_from(name.to_owned()).unwrap();
            let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
            let mut server = ServerConnection::new(Arc::clone(&self.server)).unwrap();
            while client.is_handshaking() {
                let mut sent = Vec::new();
                client.write_tls(&mut sent).unwrap();
                server.read_tls(&mut sent.as_slice()).unwrap();
                server.process_new_packets()?;
                let mut answered = Vec::new();
                server.write_tls(&mut answered).unwrap();
                client.read_tls(&mut answered.as_slice()).unwrap();
                client.process_new_packets()?;
            }
            Ok(())
        }

        fn at(&self, clock: u64) -> Result<(), Error> {
            self.meet("registry.lan", &self.root, clock)
        }
    }

    fn is_expired(result: Result<(), Error>) -> bool {
        matches!(result, Err(Error::InvalidCertificate(CertificateError::ExpiredContext { .. })))
    }

    #[test]
    fn clock_in_the_past_reaches_what_is_valid_since() {
        let site = Site::new((2020, 2050), (2031, 2040), (2030, 2035));
        for clock in [0, noon(2026, 12, 1), noon(2030, 6, 1), noon(2032, 6, 1)] {
            site.at(clock).unwrap();
        }
        assert!(is_expired(site.at(noon(2035, 6, 1))));
    }

    #[test]
    fn expired_certificates_stay_expired_at_a_wrong_clock() {
        // Before the release of this version.
        let old = Site::new((2000, 2050), (2000, 2040), (2020, 2025));
        for clock in [0, noon(2021, 1, 1), noon(2027, 1, 1)] {
            assert!(is_expired(old.at(clock)), "{clock}");
        }
        // Its authority had no time left when it began.
        assert!(is_expired(Site::new((2000, 2050), (2000, 2030), (2031, 2040)).at(0)));
    }

    #[test]
    fn begin_of_an_untrusted_chain_counts_for_nothing() {
        let (site, other) =
            (Site::new((2020, 2050), (2030, 2040), (2030, 2040)), Site::new((2020, 2050), (2020, 2050), (2020, 2050)));
        assert!(matches!(site.meet("registry.lan", &other.root, 0), Err(Error::InvalidCertificate(_))));
        assert!(matches!(
            site.meet("other.lan", &site.root, 0),
            Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. }))
        ));
    }
}
