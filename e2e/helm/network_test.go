package helm

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	ingress = networkingv1.PolicyTypeIngress
	egress  = networkingv1.PolicyTypeEgress
)

// peer is the other end of a connection: a pod, or an address outside the cluster.
type peer struct {
	labels map[string]string
	// The labels of the pod's namespace. Nil for a pod in the namespace of the policies.
	namespace map[string]string
	address   string
	// The ports of the pod by name.
	ports map[string]int32
}

func peerOf(pod corev1.Pod) peer {
	ports := map[string]int32{}
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			ports[port.Name] = port.ContainerPort
		}
	}
	return peer{labels: pod.Labels, ports: ports}
}

// defaultDeny returns the policy that denies all traffic of pods without another policy.
func defaultDeny() networkingv1.NetworkPolicy {
	return networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{ingress, egress},
	}}
}

func networkPolicies(m manifests) []networkingv1.NetworkPolicy {
	var policies []networkingv1.NetworkPolicy
	for _, o := range m.typed {
		if policy, ok := o.(*networkingv1.NetworkPolicy); ok {
			policies = append(policies, *policy)
		}
	}
	return policies
}

// allows returns true if the policies allow a connection between a pod in their namespace and a peer. `port` is the port
// of the pod for ingress, and that of the peer for egress.
//
// Source: the API documentation of NetworkPolicySpec in k8s.io/api/networking/v1.
func allows(policies []networkingv1.NetworkPolicy, direction networkingv1.PolicyType, pod corev1.Pod, other peer,
	protocol corev1.Protocol, port int32) bool {
	isIsolated := false
	for _, policy := range policies {
		if !slices.Contains(policy.Spec.PolicyTypes, direction) || !matches(&policy.Spec.PodSelector, pod.Labels) {
			continue
		}
		isIsolated = true
		if direction == ingress {
			for _, rule := range policy.Spec.Ingress {
				if allowsPort(rule.Ports, peerOf(pod), protocol, port) && allowsPeer(rule.From, other) {
					return true
				}
			}
			continue
		}
		for _, rule := range policy.Spec.Egress {
			if allowsPort(rule.Ports, other, protocol, port) && allowsPeer(rule.To, other) {
				return true
			}
		}
	}
	return !isIsolated
}

func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}

func allowsPort(ports []networkingv1.NetworkPolicyPort, server peer, protocol corev1.Protocol, port int32) bool {
	for _, allowed := range ports {
		number := allowed.Port.IntVal
		if allowed.Port.Type == intstr.String {
			number = server.ports[allowed.Port.StrVal]
		}
		if *allowed.Protocol == protocol && number == port {
			return true
		}
	}
	return len(ports) == 0
}

func allowsPeer(peers []networkingv1.NetworkPolicyPeer, other peer) bool {
	for _, allowed := range peers {
		if allowed.IPBlock != nil {
			network, err := netip.ParsePrefix(allowed.IPBlock.CIDR)
			address, notAddress := netip.ParseAddr(other.address)
			if err == nil && notAddress == nil && network.Contains(address) {
				return true
			}
			continue
		}
		isNamespace := other.namespace == nil
		if allowed.NamespaceSelector != nil {
			isNamespace = matches(allowed.NamespaceSelector, other.namespace)
		}
		isPod := allowed.PodSelector == nil || matches(allowed.PodSelector, other.labels)
		if other.address == "" && isNamespace && isPod {
			return true
		}
	}
	return len(peers) == 0
}

// assertReaches checks that the pods can reach the API server and DNS, and that `helm test` can reach the controller.
// `base` is an additional policy of the namespace.
func assertReaches(t *testing.T, m manifests, base networkingv1.NetworkPolicy, apiServerPort int32) {
	t.Helper()
	all, policies := pods(t, m), append(networkPolicies(m), base)
	controller, test := all["controller"], all["test"]
	dns := peer{labels: map[string]string{"k8s-app": "kube-dns"}, namespace: map[string]string{"name": "kube-system"}}
	for _, name := range []string{"controller", "clear"} {
		if !allows(policies, egress, all[name], peer{address: "fd00::1"}, corev1.ProtocolTCP, apiServerPort) {
			t.Errorf("%s does not reach the API server at port %d", name, apiServerPort)
		}
	}
	for name, pod := range all {
		// OpenShift's DNS pods listen on port 5353.
		for _, port := range []int32{53, 5353} {
			for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
				if !allows(policies, egress, pod, dns, protocol, port) {
					t.Errorf("%s does not reach DNS at %s %d", name, protocol, port)
				}
			}
		}
	}
	if !allows(policies, egress, test, peerOf(controller), corev1.ProtocolTCP, 8080) ||
		!allows(policies, ingress, controller, peerOf(test), corev1.ProtocolTCP, 8080) {
		t.Error("helm test does not reach the controller")
	}
	// All other traffic stays denied.
	if allows(policies, egress, test, peer{address: "fd00::1"}, corev1.ProtocolTCP, apiServerPort) ||
		allows(policies, ingress, test, peerOf(controller), corev1.ProtocolTCP, 8080) ||
		allows(policies, egress, controller, peer{address: "fd00::1"}, corev1.ProtocolTCP, 25) {
		t.Error("the policies allow unnecessary connections")
	}
}
