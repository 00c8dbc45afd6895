//! Building blocks of policies, by their effect in the API server.

/// Conditions that are true for every generated object and request.
pub(crate) const TRUE: &[&str] = &[
    "true",
    "object != null || oldObject != null",
    "request.operation in ['CREATE', 'UPDATE', 'DELETE', 'CONNECT']",
    "!has(request.nosuch) || true",
    "size([1, 2]) == 2",
    "has(request.userInfo)",
    "  1 < 2  ",
];

/// Conditions that are false.
pub(crate) const FALSE: &[&str] = &[
    "false",
    "request.operation == 'PATCH'",
    "object == null && oldObject == null",
    "// never\nfalse",
    "request.name == 'no-such-name'",
    "[1, 2].all(x, x > 1)",
];

/// Conditions whose evaluation fails with an error.
pub(crate) const FAILING: &[&str] = &[
    "object.nosuch.field == 1",
    "oldObject.nosuch == 1",
    "1 / 0 == 1",
    "[1][3] == 1",
    "int(object.metadata.name) == 1",
    "object.metadata.labels['nosuch'] == 'a'",
    "namespaceObject.metadata.labels['nosuch'] == 'a'",
    "optional.none().value() == 1",
    "dyn('a') && true",
    "quantity(object.metadata.name).isInteger()",
    "request.options.nosuch == 1",
    "object.metadata.name.matches(dyn('('))",
    "lists.range(2000).all(x, lists.range(2000).all(y, x == x))",
];

pub(crate) const BROKEN: &[&str] = &[
    "",
    " ",
    "nosuch == 1",
    "'text'",
    "1 +",
    "1 == 'a'",
    "variables.nosuch",
    "request.nosuch == 'a'",
    "request.userInfo.nosuch == 'a'",
    "namespaceObject.spec.nosuch == 'a'",
    "has(object)",
    "object.metadata.name.nosuch()",
    "authorizer.nosuch()",
    "null",
    "[true]",
    "'a'.matches('[')",
];

pub(crate) const REQUEST: &[&str] = &[
    "request.userInfo.username == 'ann'",
    "'dev' in request.userInfo.groups",
    "request.userInfo.groups.exists(g, g.startsWith('system:'))",
    "request.userInfo.extra['team'] == ['a']",
    "has(request.userInfo.uid)",
    "request.dryRun != true",
    "request.kind.kind == 'Deployment'",
    "request.resource.resource + '.' + request.resource.group == 'deployments.apps'",
    "request.requestKind.version == request.kind.version",
    "request.requestResource.resource == request.resource.resource",
    "has(request.subResource) && request.subResource == 'status'",
    "request.namespace == 'default'",
    "request.name.startsWith('w')",
    "has(request.options) && has(request.options.fieldManager)",
    "request.uid == ''",
    "namespaceObject == null || has(namespaceObject.metadata.labels)",
    "namespaceObject.metadata.name == 'default'",
    "namespaceObject.metadata.labels.env == 'prod'",
    "namespaceObject.status.phase == 'Active'",
    "has(namespaceObject.spec.finalizers)",
    "authorizer.group('apps').resource('deployments').check('delete').allowed()",
    "authorizer.requestResource.check('update').allowed()",
    "authorizer.requestResource.check('custom').reason() == 'not you'",
    "authorizer.serviceAccount('default', 'web').group('').resource('pods').namespace('default').check('list').allowed()",
    "authorizer.path('/healthz').check('get').allowed() || authorizer.path('/metrics').check('get').errored()",
];

/// Conditions on params. The params are a `ConfigMap`, or a custom resource with a `spec`.
pub(crate) const PARAMS: &[&str] = &[
    "params != null",
    "params == null || has(params.data)",
    "int(params.data.limit) >= 3",
    "params.spec.max >= 3",
    "object.spec.replicas <= params.spec.max",
    "has(params.metadata.labels) && params.metadata.labels.env == 'prod'",
    "params.metadata.name in ['one', 'two']",
    "params.nosuch == 1",
    "dyn(params).?data.?limit.orValue('0') != '0'",
];

pub(crate) const MESSAGES: &[&str] = &[
    "'rejected: ' + object.metadata.name",
    "'limit ' + string(params.spec.max)",
    "'by ' + request.userInfo.username",
    "''",
    "'   '",
    "'two\\nlines'",
    "' padded '",
    "string(1 / 0)",
    "object.nosuch",
    "1",
    "authorizer.group('').resource('pods').check('get').reason()",
    "nosuch",
    "lists.range(1100).map(x, 'aaaaa').join()",
    "variables.v0",
    "'%s has %d'.format([request.name, 3])",
];

pub(crate) const ANNOTATIONS: &[&str] = &[
    "'value'",
    "string(object.spec.replicas)",
    "null",
    "request.dryRun ? 'dry' : null",
    "1",
    "object.nosuch",
    "''",
    "' a '",
    "nosuch",
    "object.metadata.?labels.?app.orValue('none')",
    "string(1 / 0)",
    "lists.range(2200).map(x, 'aaaaa').join()",
];

pub(crate) const VARIABLES: &[&str] = &[
    "object.metadata.name",
    "object.spec",
    "object.?spec.?replicas.orValue(0)",
    "has(object.metadata.labels) ? object.metadata.labels : {}",
    "request.operation",
    "params",
    "1 / 0",
    "nosuch",
    "[1, 2, 3].map(x, x * 2)",
    "quantity('1Gi')",
    "authorizer.group('').resource('pods').check('get').allowed()",
    "optional.of(1)",
    "'a'",
    "true",
    "null",
    "dyn(1)",
    "object.spec.?template.spec.containers.orValue([])",
];

/// Conditions on a variable. `V` is the placeholder of the variable.
pub(crate) const VARIABLE_USES: &[&str] = &[
    "V == V",
    "V != null",
    "V",
    "V == 'web'",
    "V > 0",
    "has(V.replicas)",
    "V.size() > 0",
    "V.all(x, x == x)",
    "type(V) == string",
    "!V",
    "V.isGreaterThan(quantity('1'))",
    "V.hasValue()",
    "string(V) != ''",
];

/// Valid reasons, and an invalid one.
pub(crate) const REASONS: &[&str] = &[
    "Unauthorized",
    "Forbidden",
    "Invalid",
    "RequestEntityTooLarge",
    "Teapot",
];

pub(crate) const TEXTS: &[&str] = &[
    "not allowed",
    "",
    " spaces around ",
    "two\nlines",
    "with 'quotes' and \"others\"",
    "ünïcödé",
];

/// A condition that is true and has nearly the maximum cost.
pub(crate) const EXPENSIVE: &str = "lists.range(350).all(x, lists.range(350).all(y, x + y >= 0))";
