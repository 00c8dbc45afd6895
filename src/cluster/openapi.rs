//! Reads the OpenAPI v3 index, which contains the URL of each group version's schema document.
//!
//! Each URL contains a hash of the document, so a changed URL means a changed document.
//!
//! Source: kube-openapi `pkg/handler3/handler.go`.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use kube::Client;
use serde::Deserialize;

use super::error::Error;
use super::http;
use crate::schema::GroupVersion;

const PATH: &str = "/openapi/v3";

pub(crate) type Index = BTreeMap<GroupVersion, String>;

/// Polls the index.
///
/// The aggregator sends no entity tag for the index, so the hashes of response bodies are compared.
///
/// Source: kube-aggregator `pkg/controllers/openapiv3/aggregator/aggregator.go`, `ServeHTTP`.
#[derive(Debug, Default)]
pub(crate) struct OpenApi {
    etag: Option<String>,
    hasher: RandomState,
    hash: Option<u64>,
}

#[derive(Deserialize)]
struct Document {
    paths: BTreeMap<String, Path>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Path {
    // kube-openapi defines the name of this JSON field.
    #[serde(rename = "serverRelativeURL")]
    address: String,
}

impl OpenApi {
    /// Reads the index. Returns `None` if the index has not changed since the last call.
    pub(crate) async fn refresh(&mut self, client: &Client) -> Result<Option<Index>, Error> {
        let document = http::get(client, PATH, "application/json", self.etag.as_deref()).await?;
        let Some(document) = document else {
            return Ok(None);
        };
        let hash = self.hasher.hash_one(&document.body);
        if self.hash == Some(hash) {
            return Ok(None);
        }
        let index = parse(&document.body)?;
        self.etag = document.etag;
        self.hash = Some(hash);
        Ok(Some(index))
    }
}

fn parse(body: &[u8]) -> Result<Index, Error> {
    let document: Document =
        serde_json::from_slice(body).map_err(|error| Error::Decode(error.to_string()))?;
    let group_versions = document
        .paths
        .into_iter()
        .filter_map(|(path, Path { address })| {
            // Other URLs are ignored. Requests contain credentials, so they must go to this API server only.
            let is_own = address.starts_with("/openapi/v3/");
            is_own.then_some((GroupVersion::from_openapi_path(&path)?, address))
        })
        .collect();
    Ok(group_versions)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::testing::{Reply, client, paths};

    #[tokio::test]
    async fn refresh_returns_none_for_unchanged_index() {
        let (client, log) = client(|_| {
            let index = json!({"paths": {
                ".well-known/openid-configuration": {"serverRelativeURL": "/openapi/v3/x?hash=0"},
                "api": {"serverRelativeURL": "/openapi/v3/api?hash=1"},
                "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=2"},
                "apis/apps": {"serverRelativeURL": "/openapi/v3/apis/apps?hash=3"},
                "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=4"},
                "apis/evil/v1": {"serverRelativeURL": "https://example.com/"},
            }});
            Some(Reply::json(&index).etag("\"a\""))
        });
        let mut openapi = OpenApi::default();
        let index = openapi.refresh(&client).await.unwrap().unwrap();
        let entries: Vec<String> = index
            .iter()
            .map(|(gv, path)| format!("{gv} {path}"))
            .collect();
        assert_eq!(
            entries,
            [
                "v1 /openapi/v3/api/v1?hash=2",
                "apps/v1 /openapi/v3/apis/apps/v1?hash=4"
            ]
        );
        assert_eq!(openapi.refresh(&client).await.unwrap(), None);
        assert_eq!(paths(&log), ["/openapi/v3", "/openapi/v3"]);
    }

    #[tokio::test]
    async fn index_without_etag_is_compared_by_content() {
        let address = std::sync::Mutex::new("/openapi/v3/api/v1?hash=1");
        let shared = std::sync::Arc::new(address);
        let served = std::sync::Arc::clone(&shared);
        let (client, _) = client(move |_| {
            let address = *served.lock().unwrap();
            let index = json!({"paths": {"api/v1": {"serverRelativeURL": address}}});
            Some(Reply::json(&index))
        });
        let mut openapi = OpenApi::default();
        assert!(openapi.refresh(&client).await.unwrap().is_some());
        assert_eq!(openapi.refresh(&client).await.unwrap(), None);
        *shared.lock().unwrap() = "/openapi/v3/api/v1?hash=2";
        assert!(openapi.refresh(&client).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn refresh_fails_for_document_of_another_format() {
        let (client, _) = client(|_| Some(Reply::json(&json!({"swagger": "2.0"}))));
        let error = OpenApi::default().refresh(&client).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read the response: missing field `paths` at line 1 column 17"
        );
    }
}
