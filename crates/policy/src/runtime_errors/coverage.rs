//! The kinds and requests that the search for runtime errors does not cover.

use super::requests::{RequestBuilder, minimal_constraints};

/// The kinds and requests that the search for runtime errors does not cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncovered {
    /// The number of kinds that the rules match by name.
    pub n_kinds: usize,
    /// The number of kinds that the rules match by name and for which no requests are evaluated.
    pub n_kinds_left: usize,
    /// True if no valid request that the policy matches could be generated for any kind with a schema.
    pub has_no_request: bool,
}

/// Returns true if a minimal request matches the policy.
pub(super) fn has_matching_request(builder: &RequestBuilder<'_>) -> bool {
    let all = minimal_constraints(&builder.operations);
    let mut requests = all.iter().filter_map(|it| builder.build(it));
    requests.any(|synthetic| {
        let request = builder.admission_request(&synthetic);
        request.is_some_and(|(request, _, namespaces)| {
            builder.admission.matches_exactly(&request, &namespaces)
        })
    })
}
