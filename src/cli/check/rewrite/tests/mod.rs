mod dialects;
mod idioms;

use super::literals::type_name;
use crate::cli::check::finding::Severity;
use crate::cli::check::tokens::TokenText;
use crate::cli::check::{Options, run};

/// Returns the expression after the first fix of the check, or the hint of the first finding without a fix.
pub(super) fn corrected(operations: &str, role: &str, text: &str) -> String {
    let manifest = format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n\
         metadata: {{name: a}}\nspec:\n  matchConstraints:\n    resourceRules:\n    \
         - {{apiGroups: [apps], apiVersions: [v1], operations: {operations}, resources: [deployments]}}\n  \
         variables: [{{name: names, expression: \"['a']\"}}]\n  \
         validations:\n  - expression: object.spec.replicas < 5\n    {role}: |-\n      {text}\n"
    );
    let manifest = if role == "expression" {
        manifest.replace("expression: object.spec.replicas < 5\n    ", "")
    } else {
        manifest
    };
    let options = Options {
        paths: vec!["-".into()],
        ..Options::default()
    };
    let report = run(&options, &mut manifest.as_bytes()).unwrap();
    let mut findings = report
        .findings
        .iter()
        .filter(|finding| !finding.is_hidden && finding.severity != Severity::Note);
    let fix = findings.clone().find_map(|finding| finding.fix.clone());
    match fix.and_then(|fix| fix.applied()) {
        Some(fixed) => {
            let prefix = format!("    {role}: |-\n      ");
            let prefix = prefix.replacen(
                "    ",
                if role == "expression" { "  - " } else { "    " },
                1,
            );
            fixed.split_once(&prefix).unwrap().1.trim().to_owned()
        }
        None => findings
            .find_map(|finding| finding.help.clone())
            .unwrap_or_default(),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn idioms_of_other_languages_are_corrected() {
    for (text, expected) in [
        (
            "object.metadata.name.startsWith(['a-', 'b-'])",
            "['a-', 'b-'].exists(p, object.metadata.name.startsWith(p))",
        ),
        (
            "object.metadata.?annotations != null",
            "object.metadata.?annotations.hasValue()",
        ),
        ("has(object.spec.paused) != null", "has(object.spec.paused)"),
        (
            "has(object.spec.paused) == null",
            "!has(object.spec.paused)",
        ),
        (
            "ip(object.metadata.name).isLoopback",
            "ip(object.metadata.name).isLoopback()",
        ),
        (
            "object.spec.replicas > 1 && < 5",
            "object.spec.replicas > 1 && object.spec.replicas < 5",
        ),
        (
            "object.metadata.name == 'a' || == 'b' || 'c' == 'c'",
            "object.metadata.name == 'a' || object.metadata.name == 'b' || 'c' == 'c'",
        ),
        (
            "object.spec.paused ? object.metadata.name == 'x'",
            "`a ? b` has no value for a false condition: write `a ? b : true` to allow such requests, or `a ? b : false` to deny them; the API server rejects the policy",
        ),
        (
            "duration(object.metadata.name) < duration('5 minutes')",
            "duration(object.metadata.name) < duration('5m')",
        ),
        (
            "duration(object.metadata.name) < duration('1 day 2 hours')",
            "duration(object.metadata.name) < duration('24h2h')",
        ),
        (
            "duration(object.metadata.name) < duration('PT1H30M')",
            "duration(object.metadata.name) < duration('1h30m')",
        ),
        (
            "duration(object.metadata.name) < duration('30')",
            "a duration has a unit: write `30s` for seconds, `30m` for minutes or `30h` for hours; the API server rejects the policy",
        ),
        (
            "object.metadata.name - object.metadata.namespace < duration('5m')",
            "convert the strings: `timestamp(object.metadata.name) - timestamp(object.metadata.namespace)` if they are times, `int(object.metadata.name) - int(object.metadata.namespace)` if they are numbers, `quantity(object.metadata.name).sub(quantity(object.metadata.namespace))` if they are quantities; with failurePolicy Fail, a request for which the expression fails is denied",
        ),
        (
            "timestamp('2026-01-01T00:00:00Z') - object.metadata.namespace < duration('5m')",
            "convert the string: `timestamp('2026-01-01T00:00:00Z') - timestamp(object.metadata.namespace)` if it is a time, `timestamp('2026-01-01T00:00:00Z') - duration(object.metadata.namespace)` if it is a duration; with failurePolicy Fail, a request for which the expression fails is denied",
        ),
        (
            "request.userInfo.groups == 'admins'",
            "write `'admins' in request.userInfo.groups` if one item is enough, or `request.userInfo.groups == ['admins']`; the API server rejects the policy",
        ),
        (
            "request.userInfo.groups != 'admins'",
            "write `!('admins' in request.userInfo.groups)` if the list must not contain the item, or `request.userInfo.groups != ['admins']`; the API server rejects the policy",
        ),
        (
            "object.metadata.name in ['a'] || 'b' || 'c'",
            "object.metadata.name in ['a', 'b', 'c']",
        ),
        (
            "object.metadata.name == 'a' || 'b'",
            "object.metadata.name in ['a', 'b']",
        ),
        (
            "cidr('10.0.0.0/8').contains('10.0.0.1')",
            "cidr('10.0.0.0/8').containsIP('10.0.0.1')",
        ),
        (
            "cidr('10.0.0.0/8').contains('10.0.0.0/16')",
            "cidr('10.0.0.0/8').containsCIDR('10.0.0.0/16')",
        ),
        (
            "cidr('10.0.0.0/8').contains(string(object.metadata.name))",
            "write `containsIP()` for an address, or `containsCIDR()` for a network; the API server rejects the policy",
        ),
        (
            "double(quantity('1Gi')) > 1.0",
            "quantity('1Gi').asApproximateFloat() > 1.0",
        ),
        (
            "int(quantity('1Gi')) > 1",
            "write `quantity('1Gi').asInteger()`, which fails for a quantity such as `500m`, or `quantity('1Gi').asApproximateFloat()`; the API server rejects the policy",
        ),
        (
            "authorizer.group('').resource('pods').check('get') == true",
            "authorizer.group('').resource('pods').check('get').allowed()",
        ),
        (
            "authorizer.group('').resource('pods').check('get') != true",
            "!authorizer.group('').resource('pods').check('get').allowed()",
        ),
        (
            "object.spec.template.spec.containers.sum(c, size(c.name)) < 9",
            "object.spec.template.spec.containers.map(c, size(c.name)).sum() < 9",
        ),
        (
            "exists(object.spec.template.spec.containers, c, c.name == 'a')",
            "object.spec.template.spec.containers.exists(c, c.name == 'a')",
        ),
        (
            "all(c in object.spec.template.spec.containers, c.name == 'a')",
            "object.spec.template.spec.containers.all(c, c.name == 'a')",
        ),
        (
            "re('^a').matches(object.metadata.name)",
            "object.metadata.name.matches('^a')",
        ),
        (
            "re.match('^a', object.metadata.name)",
            "object.metadata.name.matches('^a')",
        ),
        (
            "strings.HasPrefix(object.metadata.name, 'a')",
            "object.metadata.name.startsWith('a')",
        ),
        ("self.spec.replicas < 5", "object.spec.replicas < 5"),
        (
            "input.review.object.spec.replicas < 5",
            "object.spec.replicas < 5",
        ),
        (
            "base64.decode(object.metadata.name) == b'a'",
            "expressions cannot encode or decode base64; the API server rejects the policy",
        ),
        (
            "any(c.name == 'a' for c in object.spec.template.spec.containers)",
            "object.spec.template.spec.containers.exists(c, c.name == 'a')",
        ),
        (
            "all(c.name == 'a' for c in object.spec.template.spec.containers if c.tty)",
            "object.spec.template.spec.containers.all(c, !(c.tty) || c.name == 'a')",
        ),
        (
            "[c.name for c in object.spec.template.spec.containers if c.tty] == []",
            "object.spec.template.spec.containers.map(c, c.tty, c.name) == []",
        ),
        (
            "[c for c in variables.names if c == 'a'] == []",
            "variables.names.filter(c, c == 'a') == []",
        ),
        (
            "object.metadata.name[0:3] == 'abc'",
            "object.metadata.name.substring(0, 3) == 'abc'",
        ),
        (
            "object.metadata.name[-3:] == 'abc'",
            "object.metadata.name.substring(size(object.metadata.name) - 3) == 'abc'",
        ),
        (
            "object.metadata.name LIKE 'a%'",
            "object.metadata.name.startsWith('a')",
        ),
        (
            "object.metadata.name not like '%a%' && true",
            "!object.metadata.name.contains('a') && true",
        ),
        (
            "object.spec.replicas BETWEEN 1 AND 5 || false",
            "1 <= object.spec.replicas && object.spec.replicas <= 5 || false",
        ),
        (
            "(object.spec.replicas & 1) == 1",
            "CEL has no bitwise operator `&`; the API server rejects the policy",
        ),
        (
            "object.spec.strategy != 'Recreate'",
            "object.spec.strategy.type != 'Recreate'",
        ),
        (
            "object.metadata.annotations.size > 3",
            "size(object.metadata.annotations) > 3",
        ),
        (
            "object.metadata.labels.count != 0",
            "size(object.metadata.labels) != 0",
        ),
        (
            "object.spec.template.spec.containers.all(c, c.resources.limits.len <= 2)",
            "object.spec.template.spec.containers.all(c, size(c.resources.limits) <= 2)",
        ),
        (
            "object.spec.replicas <= object.metadata.labels.size",
            "object.spec.replicas <= int(object.metadata.labels.size)",
        ),
    ] {
        assert_eq!(
            corrected("[CREATE]", "expression", text),
            expected,
            "{text}"
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn expressions_of_other_languages_are_corrected() {
    for (text, expected) in [
        (
            "request.userInfo.groups.contains('a') == true",
            "('a' in request.userInfo.groups) == true",
        ),
        (
            "!variables.names.contains(object.metadata.name)",
            "!(object.metadata.name in variables.names)",
        ),
        ("object.spec.replicas <= '5'", "object.spec.replicas <= 5"),
        (
            "authorizer.group('').resource('secrets').check('get').allowed",
            "authorizer.group('').resource('secrets').check('get').allowed()",
        ),
        (
            "object.metadata.namespace.labels['a'] == 'b'",
            "namespaceObject.metadata.labels['a'] == 'b'",
        ),
        (
            "object.spec.replicas <= object.metadata.labels['max']",
            "object.spec.replicas <= int(object.metadata.labels['max'])",
        ),
        (
            "object.metadata.creationTimestamp + duration('1h') > timestamp('2020-01-01T00:00:00Z')",
            "timestamp(object.metadata.creationTimestamp) + duration('1h') > timestamp('2020-01-01T00:00:00Z')",
        ),
        (
            "timestamp(object.metadata.creationTimestamp) + '1h' > timestamp('2020-01-01T00:00:00Z')",
            "timestamp(object.metadata.creationTimestamp) + duration('1h') > timestamp('2020-01-01T00:00:00Z')",
        ),
        (
            "object.spec.replicas < object.spec.template.spec.nodeName",
            "convert the string: `int(object.spec.template.spec.nodeName)` if it is a number, `quantity(object.spec.template.spec.nodeName)` if it is a quantity such as `1Gi`, `duration(object.spec.template.spec.nodeName)` if it is a duration; with failurePolicy Fail, a request for which the expression fails is denied",
        ),
        (
            "object.spec.replicas < 'many'",
            "with failurePolicy Fail, a request for which the expression fails is denied",
        ),
        (
            "timestamp('2026-01-01T00:00:00Z') < 'tomorrow'",
            "the API server rejects the policy",
        ),
        (
            "timestamp('2026-01-01T00:00:00Z') < '2027-01-01T00:00:00Z'",
            "timestamp('2026-01-01T00:00:00Z') < timestamp('2027-01-01T00:00:00Z')",
        ),
        (
            "has(object.spec.paused) && object.spec.paused == 'true'",
            "has(object.spec.paused) && object.spec.paused == true",
        ),
        (
            "request.kind == 'Deployment'",
            "request.kind.kind == 'Deployment'",
        ),
        (
            "request.object.spec.replicas < 5",
            "object.spec.replicas < 5",
        ),
        ("container.names.size() < 5", "variables.names.size() < 5"),
        (
            "quantity(object.metadata.name).isLessThan(2Gi)",
            "quantity(object.metadata.name).isLessThan(quantity('2Gi'))",
        ),
        (
            "not any(has(c.image) for c in object.spec.template.spec.containers)",
            "!object.spec.template.spec.containers.exists(c, has(c.image))",
        ),
        (
            "request.userInfo.user == 'a'",
            "request.userInfo.username == 'a'",
        ),
        (
            "userInfo.username == 'a'",
            "request.userInfo.username == 'a'",
        ),
        ("operation == 'CREATE'", "request.operation == 'CREATE'"),
        ("spec.replicas < 5", "object.spec.replicas < 5"),
        (
            "duration('90d') > duration('1h')",
            "duration('2160h') > duration('1h')",
        ),
        (
            "quantity('1Gi').lessThan(quantity('4Gi'))",
            "quantity('1Gi').isLessThan(quantity('4Gi'))",
        ),
        (
            "quantity('1Gi').isLessThan('4Gi')",
            "quantity('1Gi').isLessThan(quantity('4Gi'))",
        ),
        (
            "quantity('1') <= quantity('2')",
            "quantity('1').compareTo(quantity('2')) <= 0",
        ),
        (
            "object.spec.replicas ?? 1 < 5",
            "object.spec.?replicas.orValue(1) < 5",
        ),
        (
            "object.spec?.replicas ?? 1 < 5",
            "object.?spec.?replicas.orValue(1) < 5",
        ),
        (
            "object.spec.replicas in (1, 2)",
            "object.spec.replicas in [1, 2]",
        ),
        (
            "object.metadata.name not in ('a', 'b') && true",
            "!(object.metadata.name in ['a', 'b']) && true",
        ),
        (
            "object.spec.template.spec.containers.all(c => c.name != '')",
            "object.spec.template.spec.containers.all(c, c.name != '')",
        ),
        (
            "object.spec.template.spec.containers.all((c) -> c.name != '')",
            "object.spec.template.spec.containers.all(c, c.name != '')",
        ),
        (
            "object.spec.template.spec.containers.map(c, c.name).length > 1",
            "object.spec.template.spec.containers.map(c, c.name).size() > 1",
        ),
        (
            "object.metadata.creationTimestamp < timestamp('2024-01-01T00:00:00Z')",
            "timestamp(object.metadata.creationTimestamp) < timestamp('2024-01-01T00:00:00Z')",
        ),
        (
            "!authorizer.group('').resource('pods').check('use')",
            "!authorizer.group('').resource('pods').check('use').allowed()",
        ),
        ("!object.spec.strategy", "!has(object.spec.strategy)"),
        (
            "object.spec.replicas == 1 if object.metadata.name == 'x' else true",
            "object.metadata.name == 'x' ? object.spec.replicas == 1 : true",
        ),
        (
            "object.metadata.name is not null",
            "object.metadata.name != null",
        ),
        (
            "object.metadata.name startsWith 'a' && true",
            "object.metadata.name.startsWith('a') && true",
        ),
        (
            "'a' in object.metadata.labels.keys",
            "'a' in object.metadata.labels",
        ),
        (
            "'a' in object.metadata.name",
            "object.metadata.name.contains('a')",
        ),
        (
            "object.metadata.name in names",
            "object.metadata.name in variables.names",
        ),
        (
            "object.metadata.name != kube-system",
            "object.metadata.name != 'kube-system'",
        ),
        (
            "object.metadata.labels['x'] != true",
            "object.metadata.labels['x'] != 'true'",
        ),
        ("object.spec.replicas != '5'", "object.spec.replicas != 5"),
        (
            "5 == object.metadata.labels['x']",
            "write `'5'`; the policy may then allow requests that it denies now",
        ),
        (
            "object.spec.template.spec.activeDeadlineSeconds <= duration('1h')",
            "object.spec.template.spec.activeDeadlineSeconds <= duration('1h').getSeconds()",
        ),
        (
            "duration('1h') > object.spec.replicas",
            "write `duration('1h').getSeconds()` if the number counts seconds; with failurePolicy Fail, a request for which the expression fails is denied",
        ),
        (
            "if object.spec.replicas > 3 then object.metadata.name == 'a' else true",
            "object.spec.replicas > 3 ? object.metadata.name == 'a' : true",
        ),
        (
            "if (object.spec.replicas > 3) { object.metadata.name == 'a' } else { true }",
            "object.spec.replicas > 3 ? object.metadata.name == 'a' : true",
        ),
        (
            "if (object.spec.replicas > 3) { false }",
            "CEL has no `if`: write `condition ? value : other`; the API server rejects the policy",
        ),
        (
            "!object.metadata.name in ['a', 'b']",
            "!(object.metadata.name in ['a', 'b'])",
        ),
        (
            "object.spec.replicas > 1 || !object.metadata.name == 'a'",
            "object.spec.replicas > 1 || !(object.metadata.name == 'a')",
        ),
        (
            "object.metadata.labels in 'team'",
            "'team' in object.metadata.labels",
        ),
        (
            "!(object.spec.template.spec.nodeSelector in \"disk\")",
            "!(\"disk\" in object.spec.template.spec.nodeSelector)",
        ),
        (
            "object.metadata.name in 'a,b'",
            "object.metadata.name in ['a', 'b']",
        ),
        (
            "!(object.metadata.name in \"system:a; system:b\")",
            "!(object.metadata.name in [\"system:a\", \"system:b\"])",
        ),
        (
            "object.spec.template.spec.containers.all(c, c.name in 'web,db')",
            "object.spec.template.spec.containers.all(c, c.name in ['web', 'db'])",
        ),
        (
            "!variables.names.notExists(x, x == 'a')",
            "!(!variables.names.exists(x, x == 'a'))",
        ),
        (
            "object.metadata.name.notStartsWith('a')",
            "!object.metadata.name.startsWith('a')",
        ),
        (
            "authorizer.group('').resource('pods').check('use').disallowed()",
            "!authorizer.group('').resource('pods').check('use').allowed()",
        ),
        (
            "not(object.spec.replicas == 1)",
            "!(object.spec.replicas == 1)",
        ),
        (
            "not object.spec.replicas == 1 or object.spec.replicas == 3",
            "!(object.spec.replicas == 1) or object.spec.replicas == 3",
        ),
        (
            "not (object.spec.replicas == 1 or object.spec.replicas == 3)",
            "!(object.spec.replicas == 1 or object.spec.replicas == 3)",
        ),
        (
            "object.spec.replicas == 1 and not object.spec.paused",
            "object.spec.replicas == 1 && not object.spec.paused",
        ),
        (
            "object.spec.replicas == 1 and object.metadata.name not in ['a']",
            "object.spec.replicas == 1 && object.metadata.name not in ['a']",
        ),
        (
            "object.spec.template.spec.containers.none(c, c.name == '')",
            "!object.spec.template.spec.containers.exists(c, c.name == '')",
        ),
        ("object.spec.replicas =< 5", "object.spec.replicas <= 5"),
        ("object.spec.replicas => 5", "object.spec.replicas >= 5"),
        (
            "object.metadata.name =~ '^a'",
            "object.metadata.name.matches('^a')",
        ),
        (
            "object.metadata.?labels.?['a'].orValue('') != ''",
            "object.metadata.?labels[?'a'].orValue('') != ''",
        ),
        (
            "object.spec.template.metadata.labels.app.kubernetes.io/name == 'a'",
            "object.spec.template.metadata.labels['app.kubernetes.io/name'] == 'a'",
        ),
        (
            "variables.names.forAll(x, x != '')",
            "variables.names.all(x, x != '')",
        ),
        (
            "object.metadata.name.equals('a')",
            "object.metadata.name == 'a'",
        ),
        (
            "object.spec.template.metadata.labels.get('a', 'b') == 'c'",
            "object.spec.template.metadata.labels[?'a'].orValue('b') == 'c'",
        ),
        (
            "parseInt(object.metadata.name) > 4",
            "int(object.metadata.name) > 4",
        ),
        (
            "object.metadata.name.match('^a') && 'ä' != ''",
            "object.metadata.name.matches('^a') && 'ä' != ''",
        ),
    ] {
        assert_eq!(
            corrected("[CREATE]", "expression", text),
            expected,
            "{text}"
        );
    }
    let delete = corrected("[DELETE]", "expression", "object.metadata.name != 'a'");
    assert_eq!(delete, "oldObject.metadata.name != 'a'");
    let tested = corrected("[DELETE]", "expression", "has(object.metadata.labels)");
    assert_eq!(tested, "has(oldObject.metadata.labels)");
}

#[test]
fn messages_are_corrected() {
    for (text, expected) in [
        (
            "'a ' + object.spec.replicas + ' b'",
            "'a ' + string(object.spec.replicas) + ' b'",
        ),
        (
            "'names: ' + variables.names",
            "'names: ' + variables.names.join(', ')",
        ),
        ("object.spec.replicas", "string(object.spec.replicas)"),
        ("'{} of {}'.format([1, 2])", "'%s of %s'.format([1, 2])"),
        (
            "'%s'.format(object.metadata.name)",
            "'%s'.format([object.metadata.name])",
        ),
    ] {
        assert_eq!(
            corrected("[CREATE]", "messageExpression", text),
            expected,
            "{text}"
        );
    }
}

/// Only the author can choose between the meanings of these expressions, so there is a hint but no fix.
#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn ambiguous_expressions_have_hints_only() {
    for (operations, text, hint) in [
        (
            "[CREATE]",
            "object.spec.template.metadata.labels.contains('a')",
            "search the keys",
        ),
        (
            "[CREATE]",
            "object.spec?.replicas < 5",
            "write `object.?spec.?replicas.orValue(...)`",
        ),
        (
            "[CREATE]",
            "object.spec.template.spec.volumes?.all(v, has(v.emptyDir))",
            "write `object.spec.template.spec.?volumes.orValue([]).all(...)`, which is true for an absent field",
        ),
        (
            "[CREATE]",
            "object.spec?.template.spec.volumes.exists(v, v.name == 'a')",
            "write `object.?spec.?template.spec.volumes.orValue([]).exists(...)`, which is false for an absent field",
        ),
        (
            "[CREATE]",
            "object.spec.template.spec.nodeName?.startsWith('a')",
            "write `object.spec.template.spec.?nodeName.orValue(...).startsWith(...)` with the value to use for an absent field",
        ),
        (
            "[CREATE]",
            "object.spec.progressDeadlineSeconds < 3600s",
            "write `duration('3600s')` for a duration, or `3600` for a number",
        ),
        ("[CREATE, DELETE]", "object.metadata.name != 'a'", "null"),
        // `object` is null in a DELETE request. With `oldObject` instead, the expression would compare `oldObject` with
        // itself.
        (
            "[DELETE]",
            "object.spec == oldObject.spec",
            "only UPDATE requests have both",
        ),
        (
            "[CREATE]",
            "object.spec.replicas >= oldObject.spec.replicas",
            "only UPDATE requests have both",
        ),
        (
            "[CREATE]",
            "!object.spec.template.spec.containers.contains('a')",
            "the items of the list are not strings",
        ),
        (
            "[CREATE]",
            "object.spec.template.spec.containers.name == 'a'",
            "a list has no fields",
        ),
        (
            "[CREATE]",
            "quantity('4GB').isLessThan(quantity('1'))",
            "write `4G` for powers of 1000",
        ),
        (
            "[CREATE]",
            "quantity('500mi').isLessThan(quantity('1'))",
            "write `500m` for thousandths, `500M` for powers of 1000, or `500Mi` for powers of 1024",
        ),
        (
            "[CREATE]",
            "quantity('500mi').isLessThan(quantity(object.spec.template.spec.containers[0].resources.limits['cpu']))",
            "write `500m` for thousandths of a CPU",
        ),
        (
            "[CREATE]",
            "quantity('500mi').isLessThan(quantity(object.spec.template.spec.containers[0].resources.limits['memory']))",
            "write `500M` for powers of 1000, or `500Mi` for powers of 1024",
        ),
        (
            "[CREATE]",
            "quantity('2000 m').isLessThan(quantity('1'))",
            "write `2000m`: a quantity has no spaces",
        ),
        (
            "[CREATE]",
            "object.metadata.name >= 'v1.29.0'",
            "`semver(object.metadata.name, true).compareTo(semver('v1.29.0', true)) >= 0`",
        ),
        (
            "[CREATE]",
            "object.spec.template.foo == 'a'",
            "the fields are metadata, spec",
        ),
        (
            "[CREATE]",
            "object.metadata.name in 'a'",
            "write `object.metadata.name == 'a'`",
        ),
        (
            "[CREATE]",
            "object.metadata.name in object.metadata.namespace",
            "write `object.metadata.name in object.metadata.namespace.split(',')`",
        ),
        (
            "[CREATE]",
            "'nginx' in object.spec.template.spec.containers",
            "`object.spec.template.spec.containers.exists(x, x.name == 'nginx')`",
        ),
        (
            "[CREATE]",
            "object.spec.replicas += 1",
            "rejects the policy",
        ),
        (
            "[CREATE]",
            "object.spec.replicas =/= 1",
            "rejects the policy",
        ),
        (
            "[CREATE]",
            "'a,b' in object.metadata.name",
            "write `'a,b' in object.metadata.name.split(',')`",
        ),
        (
            "[CREATE]",
            "object.spec.metadata.labels['a'] == 'b'",
            "did you mean `template.metadata`, or `object.metadata`?",
        ),
        (
            "[CREATE]",
            "variables.notNames == []",
            "did you mean `!variables.names`?",
        ),
        (
            "[CREATE]",
            "variables.maximum == 1",
            "the only variable is `names`",
        ),
        (
            "[\"*\"]",
            "request.operation == 'delete' || object.spec.replicas > 1",
            "did you mean `DELETE`? the policy may then allow",
        ),
        (
            "[CREATE]",
            "object.spec.template.spec.containers.all(c, c.?ports.orValue([]).all(p, p.protocol != 'TDP'))",
            "`TCP` or `UDP`",
        ),
        (
            "[CREATE]",
            "object.spec.template.spec.?volumes.exists(v, v.name == 'a')",
            "write `object.spec.template.spec.?volumes.orValue([])`; for an absent list, `exists` is then false",
        ),
        (
            "[CREATE]",
            "!(object.spec.template.spec.volume == 'a')",
            "did you mean `volumes`?",
        ),
        (
            "[CREATE]",
            "object.metadata.name.exists(c, c == 'a')",
            "this value is a string: write `object.metadata.name.split(',')`",
        ),
        (
            "[CREATE]",
            "object.spec.template.spec.securityContext.privileged == false",
            "`privileged` is a field of the securityContext of each container",
        ),
        (
            "[CREATE]",
            "object.spec.template.spec.containers[0].securityContext.fsGroup == 1",
            "`fsGroup` is a field of the securityContext of the Pod",
        ),
        (
            "[CREATE]",
            "object.apiVersion >= '12.0'",
            "compare versions: `semver(object.apiVersion, true)",
        ),
        (
            "[CREATE]",
            "object.apiVersion >= '12Gi'",
            "compare quantities",
        ),
        (
            "[DELETE, UPDATE]",
            "object.spec.replicas > 1",
            "or read `oldObject`, which UPDATE and DELETE requests have",
        ),
    ] {
        let text = corrected(operations, "expression", text);
        assert!(text.contains(hint), "{hint}: {text}");
    }
}

#[test]
fn expected_type_name_is_proposed() {
    let text = "Object{spec: Object.template{replicas: 1}}";
    let source = TokenText::new(text);
    let brace = source.at(text.rfind('{').unwrap()).unwrap();
    let proposal = type_name(&source, brace, "Object.spec").unwrap();
    assert_eq!(proposal.help, "write `Object.spec`");
    let (bytes, replacement) = proposal.edit.unwrap();
    assert_eq!(
        (text.get(bytes).unwrap(), &*replacement),
        ("Object.template", "Object.spec")
    );
    let source = TokenText::new("variables.spec{replicas: 1}");
    assert_eq!(type_name(&source, 3, "Object.spec"), None);
}

#[test]
fn request_object_is_corrected_to_object_or_old_object() {
    for (operations, expected) in [
        ("[DELETE]", "oldObject.spec.replicas < 5"),
        ("[CREATE]", "object.spec.replicas < 5"),
    ] {
        let fixed = corrected(operations, "expression", "request.object.spec.replicas < 5");
        assert_eq!(fixed, expected);
    }
}
