package main

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
)

// covered contains the kinds of the table and their storage strategies.
//
// A kind has an entry for each served version. The first entry of an API group is the reference: the other entries of
// the group are compared with it.
var covered = []struct {
	apiVersion, kind string
	strategy         rest.RESTCreateStrategy
}{
	{"v1", "ConfigMap", configmap.Strategy},
	{"v1", "Endpoints", endpoint.Strategy},
	{"v1", "Event", event.Strategy},
	{"events.k8s.io/v1", "Event", event.Strategy},
	{"v1", "LimitRange", limitrange.Strategy},
	{"v1", "Namespace", namespace.Strategy},
	{"v1", "Node", node.Strategy},
	{"v1", "PersistentVolume", persistentvolume.Strategy},
	{"v1", "PersistentVolumeClaim", persistentvolumeclaim.Strategy},
	{"v1", "Pod", pod.Strategy},
	{"v1", "PodTemplate", podtemplate.Strategy},
	{"v1", "ReplicationController", replicationcontroller.Strategy},
	{"v1", "ResourceQuota", resourcequota.Strategy},
	{"v1", "Secret", secret.Strategy},
	{"v1", "Service", service.Strategy},
	{"v1", "ServiceAccount", serviceaccount.Strategy},
	{"apps/v1", "ControllerRevision", controllerrevision.Strategy},
	{"apps/v1", "DaemonSet", daemonset.Strategy},
	{"apps/v1", "Deployment", deployment.Strategy},
	{"apps/v1", "ReplicaSet", replicaset.Strategy},
	{"apps/v1", "StatefulSet", statefulset.Strategy},
	{"autoscaling/v1", "HorizontalPodAutoscaler", horizontalpodautoscaler.Strategy},
	{"autoscaling/v2", "HorizontalPodAutoscaler", horizontalpodautoscaler.Strategy},
	{"batch/v1", "CronJob", cronjob.Strategy},
	{"batch/v1", "Job", job.Strategy},
	{"coordination.k8s.io/v1", "Lease", lease.Strategy},
	{"discovery.k8s.io/v1", "EndpointSlice", endpointslice.Strategy},
	{"flowcontrol.apiserver.k8s.io/v1", "FlowSchema", flowschema.Strategy},
	{"flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", prioritylevelconfiguration.Strategy},
	{"networking.k8s.io/v1", "Ingress", ingress.Strategy},
	{"networking.k8s.io/v1", "IngressClass", ingressclass.Strategy},
	{"networking.k8s.io/v1", "NetworkPolicy", networkpolicy.Strategy},
	{"networking.k8s.io/v1", "IPAddress", ipaddress.Strategy},
	{"networking.k8s.io/v1beta1", "IPAddress", ipaddress.Strategy},
	{"networking.k8s.io/v1", "ServiceCIDR", servicecidr.Strategy},
	{"networking.k8s.io/v1beta1", "ServiceCIDR", servicecidr.Strategy},
	{"node.k8s.io/v1", "RuntimeClass", runtimeclass.Strategy},
	{"policy/v1", "PodDisruptionBudget", poddisruptionbudget.Strategy},
	{"rbac.authorization.k8s.io/v1", "ClusterRole", clusterrole.Strategy},
	{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", clusterrolebinding.Strategy},
	{"rbac.authorization.k8s.io/v1", "Role", role.Strategy},
	{"rbac.authorization.k8s.io/v1", "RoleBinding", rolebinding.Strategy},
	{"resource.k8s.io/v1", "DeviceClass", deviceclass.Strategy},
	{"resource.k8s.io/v1", "ResourceSlice", resourceslice.Strategy},
	{"scheduling.k8s.io/v1", "PriorityClass", priorityclass.Strategy},
	{"storage.k8s.io/v1", "CSIDriver", csidriver.Strategy},
	{"storage.k8s.io/v1", "CSINode", csinode.Strategy},
	{"storage.k8s.io/v1", "CSIStorageCapacity", csistoragecapacity.Strategy},
	{"storage.k8s.io/v1", "StorageClass", storageclass.Strategy},
	{"storage.k8s.io/v1", "VolumeAttachment", volumeattachment.Strategy},
	{"storage.k8s.io/v1", "VolumeAttributesClass", volumeattributesclass.Strategy},
	{"storage.k8s.io/v1beta1", "VolumeAttributesClass", volumeattributesclass.Strategy},
	{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", mutatingwebhookconfiguration.Strategy},
	{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", validatingwebhookconfiguration.Strategy},
}
