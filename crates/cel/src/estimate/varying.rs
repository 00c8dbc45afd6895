//! Counts the sizes that may differ between estimators.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cost::{AstNode, Path, SizeEstimate, SizeEstimator};

/// An estimator that counts its results that may differ between estimators.
pub(super) struct Varying<'a> {
    sizes: &'a dyn SizeEstimator,
    n_varying: AtomicUsize,
}

impl<'a> Varying<'a> {
    pub(super) fn new(sizes: &'a dyn SizeEstimator) -> Self {
        Self {
            sizes,
            n_varying: AtomicUsize::new(0),
        }
    }

    pub(super) fn n_varying(&self) -> usize {
        self.n_varying.load(Ordering::Relaxed)
    }

    /// Counts a size that may differ between estimators.
    pub(super) fn count(&self) {
        self.n_varying.fetch_add(1, Ordering::Relaxed);
    }
}

impl SizeEstimator for Varying<'_> {
    fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate> {
        let (size, varies) = self.sizes.estimate_varying_size(node);
        if varies {
            self.count();
        }
        size
    }

    fn is_list(&self, path: Path<'_>) -> Option<bool> {
        self.sizes.is_list(path)
    }
}
