//! The inputs that determine the results of probes.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use crate::controller::cluster::schemas::Schemas;
use crate::controller::subjects::generation::Generation;
use crate::controller::subjects::params::{Key, Unavailable};
use crate::policy::admission::Binding;

/// The inputs that determine the results of a policy's probes.
///
/// Namespaces and permissions also affect the results, but are omitted since their changes are not watched.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    pub(crate) about: About,
    /// The revision of the served resources.
    pub(crate) revision: u64,
    pub(crate) bindings: Result<Vec<Arc<ValidatingAdmissionPolicyBinding>>, Unavailable>,
    pub(crate) params: Result<Vec<(Key, String)>, Unavailable>,
    /// The cached schemas of the sample objects. The check of the policy usually caches them, since the policy usually
    /// matches the kinds of the sample objects.
    pub(crate) schemas: Schemas,
}

/// The generations of a policy and of its probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) policy: Generation,
    pub(crate) probes: Vec<(String, Generation)>,
}

impl PartialEq for Inputs {
    fn eq(&self, other: &Self) -> bool {
        self.about == other.about
            && self.revision == other.revision
            && self.params == other.params
            && self.schemas.are_those_of(&other.schemas)
            && match (&self.bindings, &other.bindings) {
                (Ok(ours), Ok(theirs)) => are_same(ours, theirs),
                (Err(ours), Err(theirs)) => ours == theirs,
                _ => false,
            }
    }
}

fn are_same(
    ours: &[Arc<ValidatingAdmissionPolicyBinding>],
    theirs: &[Arc<ValidatingAdmissionPolicyBinding>],
) -> bool {
    let is_same = |ours: &Arc<ValidatingAdmissionPolicyBinding>,
                   theirs: &Arc<ValidatingAdmissionPolicyBinding>| {
        Arc::ptr_eq(ours, theirs)
            || (ours.metadata.name == theirs.metadata.name
                && ours.metadata.annotations == theirs.metadata.annotations
                && ours.spec == theirs.spec)
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| is_same(a, b))
}

impl Inputs {
    pub(crate) fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    pub(crate) fn n_params(&self) -> usize {
        self.params.as_ref().map_or(0, Vec::len)
    }

    /// Returns the bindings in the cluster. Empty if the bindings are unknown.
    pub(crate) fn bindings(&self) -> &[Arc<ValidatingAdmissionPolicyBinding>] {
        self.bindings.as_deref().unwrap_or_default()
    }

    /// Returns the bindings in the form that admission evaluates.
    ///
    /// # Errors
    /// Returns the reason why the bindings are unknown.
    pub(crate) fn ready_bindings(&self) -> Result<Vec<Binding>, Unavailable> {
        let bindings = self.bindings.as_ref().map_err(Unavailable::clone)?;
        Ok(bindings
            .iter()
            .map(|binding| Binding::new(binding))
            .collect())
    }
}
