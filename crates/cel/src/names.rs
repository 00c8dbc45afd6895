//! Names that most expressions and objects have: one copy serves them all.
//!
//! A name that an expression selects by and the name of a field are then the same in memory, so that neither
//! is read for them to be found equal; and an object is read with fewer allocations.

use std::sync::{Arc, LazyLock};

/// The names that macros and operators give, and those of the fields that most objects have.
const NAMES: &[&str] = &[
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
    "add",
    "affinity",
    "all",
    "allowPrivilegeEscalation",
    "annotations",
    "apiGroup",
    "apiGroups",
    "apiVersion",
    "app",
    "appProtocol",
    "args",
    "automountServiceAccountToken",
    "backend",
    "capabilities",
    "claimName",
    "clusterIP",
    "command",
    "configMap",
    "configMapKeyRef",
    "configMapRef",
    "containerPort",
    "containers",
    "contains",
    "controller",
    "cpu",
    "creationTimestamp",
    "data",
    "defaultMode",
    "dnsPolicy",
    "drop",
    "dryRun",
    "emptyDir",
    "endsWith",
    "env",
    "envFrom",
    "ephemeral-storage",
    "ephemeralContainers",
    "exec",
    "exists",
    "externalIPs",
    "extra",
    "failureThreshold",
    "fieldPath",
    "fieldRef",
    "finalizers",
    "fsGroup",
    "generateName",
    "generation",
    "group",
    "groups",
    "host",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPath",
    "hostPort",
    "hostProcess",
    "http",
    "httpGet",
    "image",
    "imagePullPolicy",
    "imagePullSecrets",
    "ingressClassName",
    "initContainers",
    "initialDelaySeconds",
    "items",
    "jobTemplate",
    "key",
    "kind",
    "labels",
    "level",
    "lifecycle",
    "limits",
    "livenessProbe",
    "localhostProfile",
    "matchExpressions",
    "matchLabels",
    "matches",
    "medium",
    "memory",
    "metadata",
    "minReadySeconds",
    "mountPath",
    "name",
    "namespace",
    "namespaceObject",
    "nodePort",
    "nodeSelector",
    "number",
    "object",
    "oldObject",
    "operation",
    "operator",
    "options",
    "ownerReferences",
    "params",
    "path",
    "pathType",
    "paths",
    "periodSeconds",
    "persistentVolumeClaim",
    "port",
    "ports",
    "priorityClassName",
    "privileged",
    "procMount",
    "protocol",
    "readOnly",
    "readOnlyRootFilesystem",
    "readinessProbe",
    "replicas",
    "request",
    "requestKind",
    "requestResource",
    "requests",
    "resource",
    "resourceNames",
    "resourceVersion",
    "resources",
    "restartPolicy",
    "role",
    "roleRef",
    "rollingUpdate",
    "rules",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "runtimeClassName",
    "seLinuxOptions",
    "seccompProfile",
    "secret",
    "secretKeyRef",
    "secretName",
    "securityContext",
    "selector",
    "service",
    "serviceAccount",
    "serviceAccountName",
    "shareProcessNamespace",
    "size",
    "spec",
    "startsWith",
    "startupProbe",
    "status",
    "storage",
    "storageClassName",
    "strategy",
    "stringData",
    "subPath",
    "subjects",
    "successThreshold",
    "supplementalGroups",
    "sysctls",
    "targetPort",
    "tcpSocket",
    "template",
    "terminationGracePeriodSeconds",
    "timeoutSeconds",
    "tls",
    "tolerations",
    "topologyKey",
    "type",
    "uid",
    "updateStrategy",
    "user",
    "userInfo",
    "username",
    "value",
    "valueFrom",
    "variables",
    "verbs",
    "version",
    "volumeClaimTemplates",
    "volumeMounts",
    "volumes",
    "windowsOptions",
];

/// The names by their lengths, those of each length sorted.
static SHARED: LazyLock<Vec<Vec<Arc<str>>>> = LazyLock::new(|| {
    let longest = NAMES.iter().map(|name| name.len()).max();
    let mut by_length = vec![Vec::new(); longest.map_or(0, |longest| longest.saturating_add(1))];
    for name in NAMES {
        if let Some(names) = by_length.get_mut(name.len()) {
            names.push(Arc::from(*name));
        }
    }
    for names in &mut by_length {
        names.sort_unstable();
    }
    by_length
});

/// `name`, without a copy of its own where it is a common one.
pub(crate) fn shared(name: &str) -> Arc<str> {
    let names = SHARED.get(name.len()).map(Vec::as_slice);
    let names = names.unwrap_or_default();
    let found = names.binary_search_by(|shared| (**shared).cmp(name));
    let found = found.ok().and_then(|at| names.get(at));
    found.map_or_else(|| Arc::from(name), Arc::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_names_are_one() {
        for name in NAMES {
            assert!(Arc::ptr_eq(&shared(name), &shared(name)), "{name}");
            assert_eq!(*shared(name), **name);
        }
        assert!(!Arc::ptr_eq(&shared("uncommon"), &shared("uncommon")));
        assert_eq!(*shared(""), *"");
    }
}
