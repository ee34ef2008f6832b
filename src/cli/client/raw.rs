//! Opening a connection that is forwarded to a pod.

use super::{Client, ClientError, Target, error};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use podstead_api::RAW_PROTOCOL;

impl Client {
    /// Opens the connection; a refusal has the daemon's message.
    pub(crate) async fn open_raw(&self, target: Target) -> Result<TokioIo<Upgraded>, ClientError> {
        let broken = |source| ClientError::Broken { source };
        let stream = self.connect().await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // Ends with the switch of protocols, or with the refusal's body.
        tokio::spawn(connection.with_upgrades());
        let request = Request::builder().uri(target.uri()).header(header::HOST, "podstead");
        let request = request.header(header::CONNECTION, "Upgrade").header(header::UPGRADE, RAW_PROTOCOL);
        let request = request.body(Empty::<Bytes>::new()).map_err(ClientError::BadRequest)?;
        let response = sender.send_request(request).await.map_err(broken)?;
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => Ok(TokioIo::new(hyper::upgrade::on(response).await.map_err(broken)?)),
            _ => Err(error::refusal(response).await),
        }
    }
}
