//! TLS by rustls, with the cryptography that the crate's features chose.

use std::sync::Arc;

use agent_core::{Error, ErrorKind, Result};
use rustls::{ClientConfig, RootCertStore, crypto::CryptoProvider};
use rustls_platform_verifier::BuilderVerifierExt;

/// A configuration that trusts what the operating system trusts; or one for connections without TLS, which trusts
/// nobody, so that they work on machines without certificates.
pub(crate) fn config(verified: bool) -> Result<ClientConfig> {
    let fail = |error: rustls::Error| Error::new(ErrorKind::Invalid, "set up TLS").with_source(error);
    let builder =
        ClientConfig::builder_with_provider(provider()?).with_safe_default_protocol_versions().map_err(fail)?;
    let builder = if verified {
        builder.with_platform_verifier().map_err(|error| {
            let context = "set up TLS with the certificates that the system trusts; install them if there are none";
            Error::new(ErrorKind::Invalid, context).with_source(error)
        })?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}

fn provider() -> Result<Arc<CryptoProvider>> {
    let chosen = CryptoProvider::get_default().cloned();
    #[cfg(feature = "ring")]
    let chosen = chosen.or_else(|| Some(Arc::new(rustls::crypto::ring::default_provider())));
    #[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
    let chosen = chosen.or_else(|| Some(Arc::new(rustls::crypto::aws_lc_rs::default_provider())));
    chosen.ok_or_else(|| {
        let context = "set up TLS: no cryptography; enable the feature `ring` or `aws-lc-rs` of agent-providers, or \
                       install a default provider of rustls";
        Error::new(ErrorKind::Unsupported, context)
    })
}
