//! Names that most expressions have: one copy serves them all.

use std::sync::{Arc, LazyLock};

/// The names that macros and operators give, sorted.
static SHARED: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| {
    let mut names: Vec<Arc<str>> = [
        "!_",
        "#unused",
        "-_",
        "@in",
        "@not_strictly_false",
        "@result",
        "_!=_",
        "_%_",
        "_&&_",
        "_*_",
        "_+_",
        "_-_",
        "_/_",
        "_<=_",
        "_<_",
        "_==_",
        "_>=_",
        "_>_",
        "_?._",
        "_?_:_",
        "_[?_]",
        "_[_]",
        "_||_",
        "containers",
        "labels",
        "metadata",
        "name",
        "namespace",
        "object",
        "oldObject",
        "params",
        "request",
        "size",
        "spec",
        "startsWith",
        "template",
        "variables",
    ]
    .into_iter()
    .map(Arc::from)
    .collect();
    names.sort_unstable();
    names
});

/// `name`, without a copy of its own where it is a common one.
pub(super) fn shared(name: &str) -> Arc<str> {
    let names = &*SHARED;
    names
        .binary_search_by(|probe| (**probe).cmp(name))
        .ok()
        .and_then(|found| names.get(found))
        .map_or_else(|| Arc::from(name), Arc::clone)
}
