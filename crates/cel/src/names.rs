//! Interned names, which occur in many expressions and objects.
//!
//! A selection and a field with the same interned name share one allocation. The names can therefore be compared by
//! address, without reading their characters. Decoding an object also needs fewer allocations.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, LazyLock};

/// Names produced by macros and operators, and names of common fields.
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

/// Number of slots, a power of two. There are several slots per name, so that few names collide.
const N_SLOTS: usize = 1 << N_SLOT_BITS;
const N_SLOT_BITS: u32 = 10;

/// The names, each in its first slot or in the next free slot.
static SHARED: LazyLock<Vec<Option<Arc<str>>>> = LazyLock::new(|| {
    let mut slots = vec![None; N_SLOTS];
    for name in NAMES {
        let mut slot = slot_of(name);
        while let Some(Some(_)) = slots.get(slot) {
            slot = next_slot(slot);
        }
        if let Some(slot) = slots.get_mut(slot) {
            *slot = Some(Arc::from(*name));
        }
    }
    slots
});

/// Returns the first slot of `name`, computed from its length and three of its bytes.
fn slot_of(name: &str) -> usize {
    let bytes = name.as_bytes();
    let byte = |slot: usize| bytes.get(slot).copied().map_or(0, u32::from);
    let last = bytes.len().saturating_sub(1);
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let key = byte(0) | byte(last / 2) << 8 | byte(last) << 16 | length << 24;
    (key.wrapping_mul(0x9e37_79b1) >> (u32::BITS - N_SLOT_BITS)) as usize
}

fn next_slot(slot: usize) -> usize {
    (slot + 1) % N_SLOTS
}

/// Returns `name` as a shared string, without a copy if it is interned.
pub(crate) fn shared(name: &str) -> Arc<str> {
    let slots = &**SHARED;
    let mut slot = slot_of(name);
    while let Some(Some(common)) = slots.get(slot) {
        if **common == *name {
            return Arc::clone(common);
        }
        slot = next_slot(slot);
    }
    Arc::from(name)
}

/// FNV-1a hash of declared names. All keys are defined in code, so untrusted input cannot provoke collisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map whose keys are declared names.
pub(crate) type NameMap<T> = HashMap<&'static str, T, BuildHasherDefault<NameHasher>>;

pub(crate) type NameSet = HashSet<&'static str, BuildHasherDefault<NameHasher>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_names_are_allocated_once() {
        for name in NAMES {
            assert!(Arc::ptr_eq(&shared(name), &shared(name)), "{name}");
            assert_eq!(*shared(name), **name);
        }
        assert!(!Arc::ptr_eq(&shared("uncommon"), &shared("uncommon")));
        assert_eq!(*shared(""), *"");
        let long = "containers".repeat(100);
        assert_eq!(*shared(&long), *long);
    }

    #[test]
    fn distinct_names_mostly_have_distinct_slots() {
        let slots: HashSet<usize> = NAMES.iter().map(|name| slot_of(name)).collect();
        assert!(slots.len() * 5 > NAMES.len() * 4, "{}", slots.len());
    }
}
