package helm

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
)

// manifests are the rendered objects of a release, decoded as the API server decodes them.
type manifests struct {
	raw   []object
	typed map[string]runtime.Object
}

// clusters has a row for each kind of cluster. All rows also meet the requirements of assertPortable.
var clusters = []struct {
	name   string
	values string
	check  func(t *testing.T, m manifests)
}{
	{"defaults", "", func(t *testing.T, m manifests) {
		assertReaches(t, m, defaultDeny(), 443)
	}},
	{"IPv6-only", "", func(t *testing.T, m manifests) {
		assertDualStack(t, m)
	}},
	{"dual-stack", "service: {ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6, IPv4]}", func(t *testing.T, m manifests) {
		assertDualStack(t, m)
		service := typed[*corev1.Service](t, m, fullName)
		if *service.Spec.IPFamilyPolicy != corev1.IPFamilyPolicyPreferDualStack || len(service.Spec.IPFamilies) != 2 {
			t.Errorf("service: %v", service.Spec)
		}
	}},
	{"OpenShift", "", func(t *testing.T, m manifests) {
		for name, pod := range pods(t, m) {
			if problem := restrictedV2(pod.Spec); problem != "" {
				t.Errorf("%s: the SCC restricted-v2 rejects %s", name, problem)
			}
		}
	}},
	{"tainted pool", `
tolerations: [{key: pool, operator: Equal, value: infra, effect: NoSchedule}]
nodeSelector: {pool: infra}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms: [{matchExpressions: [{key: arch, operator: In, values: [arm64]}]}]
`, func(t *testing.T, m manifests) {
		taint := &corev1.Taint{Key: "pool", Value: "infra", Effect: corev1.TaintEffectNoSchedule}
		for name, pod := range pods(t, m) {
			tolerates := func(it corev1.Toleration) bool { return it.ToleratesTaint(klog.Background(), taint, false) }
			if !slices.ContainsFunc(pod.Spec.Tolerations, tolerates) {
				t.Errorf("%s does not tolerate the taint", name)
			}
			if pod.Spec.NodeSelector["pool"] != "infra" || pod.Spec.Affinity.NodeAffinity == nil {
				t.Errorf("%s: nodeSelector and affinity: %v", name, pod.Spec)
			}
		}
	}},
	{"default-deny network policy", `
networkPolicy: {metricsFrom: [{namespaceSelector: {matchLabels: {team: monitoring}}}]}
`, func(t *testing.T, m manifests) {
		assertReaches(t, m, defaultDeny(), 6443)
		all, policies := pods(t, m), append(networkPolicies(m), defaultDeny())
		prometheus := peer{labels: map[string]string{"app": "prometheus"}, namespace: map[string]string{"team": "monitoring"}}
		for _, row := range []struct {
			from    peer
			port    int32
			allowed bool
		}{
			{prometheus, 8081, true},
			{prometheus, 8080, true},
			{peerOf(all["test"]), 8081, false},
			{peerOf(all["clear"]), 8081, false},
		} {
			if allows(policies, ingress, all["controller"], row.from, corev1.ProtocolTCP, row.port) != row.allowed {
				t.Errorf("ingress of %v to port %d: expected %v", row.from.labels, row.port, row.allowed)
			}
		}
	}},
	{"known addresses of the API server", "networkPolicy: {apiServerTo: [{ipBlock: {cidr: 10.0.0.1/32}}]}",
		func(t *testing.T, m manifests) {
			all, policies := pods(t, m), append(networkPolicies(m), defaultDeny())
			for _, name := range []string{"controller", "clear"} {
				for address, expected := range map[string]bool{"10.0.0.1": true, "10.0.0.2": false} {
					if allows(policies, egress, all[name], peer{address: address}, corev1.ProtocolTCP, 6443) != expected {
						t.Errorf("egress of %s to %s: expected %v", name, address, expected)
					}
				}
			}
		}},
	{"MicroK8s", "", func(t *testing.T, m manifests) {
		assertReaches(t, m, defaultDeny(), 16443)
	}},
	{"minikube", "", func(t *testing.T, m manifests) {
		assertReaches(t, m, defaultDeny(), 8443)
	}},
	{"own service account", "serviceAccount: {create: false, name: mine}", func(t *testing.T, m manifests) {
		for name, pod := range pods(t, m) {
			if name != "test" && pod.Spec.ServiceAccountName != "mine" {
				t.Errorf("%s: %s", name, pod.Spec.ServiceAccountName)
			}
		}
		for _, o := range m.raw {
			if o["kind"] == "ServiceAccount" {
				t.Errorf("%s is rendered", id(o))
			}
			for _, subject := range subjects(o) {
				if subject["name"] != "mine" {
					t.Errorf("%s is for %v", id(o), subject)
				}
			}
		}
	}},
	{"installer without cluster-admin", `
rbac: {aggregateParamsRoles: false}
paramsRoles: [{apiGroup: rules.example.com, resources: [replicalimits]}]
priorityClass: {create: false}
crds: {enabled: false}
`, func(t *testing.T, m manifests) {
		for _, o := range m.raw {
			if o["aggregationRule"] != nil || o["kind"] == "PriorityClass" || o["kind"] == "CustomResourceDefinition" {
				t.Errorf("%s is rendered", id(o))
			}
		}
		role := find(t, m.raw, "ClusterRole", fullName+"-params")
		if !strings.Contains(fmt.Sprint(role["rules"]), "replicalimits") {
			t.Errorf("rules: %v", role["rules"])
		}
		if name := pods(t, m)["controller"].Spec.PriorityClassName; name != "" {
			t.Errorf("priority class: %s", name)
		}
	}},
	{"labels and environment", `
nameOverride: policies
commonLabels: {team: platform, app.kubernetes.io/instance: overridden, helm.sh/chart: overridden}
podLabels: {mesh: enabled}
extraEnv: [{name: RUST_LOG, value: debug}]
image: {registry: registry.example.com/mirror}
metrics: {runbookBaseUrl: https://wiki.example.com/runbooks/, prometheusRule: {enabled: true}, dashboard: {enabled: true}}
`, func(t *testing.T, m manifests) {
		all := pods(t, m)
		controller := all["controller"]
		expected := map[string]string{
			"app.kubernetes.io/component": "controller", "app.kubernetes.io/instance": "edge",
			"app.kubernetes.io/name": "policies", "app.kubernetes.io/part-of": "vap-status-controller",
			"app.kubernetes.io/version": "0.1.0", "helm.sh/chart": "overridden", "mesh": "enabled", "team": "platform",
		}
		if !maps.Equal(controller.Labels, expected) {
			t.Errorf("labels: %v", controller.Labels)
		}
		for name, pod := range all {
			if pod.Spec.Containers[0].Image != "registry.example.com/mirror/vap-status-controller:0.1.0" {
				t.Errorf("%s: image: %s", name, pod.Spec.Containers[0].Image)
			}
		}
		last := controller.Spec.Containers[0].Env
		if variable := last[len(last)-1]; variable.Name != "RUST_LOG" || variable.Value != "debug" {
			t.Errorf("environment: %v", last)
		}
		for _, o := range m.raw {
			labels, _ := metadata(o)["labels"].(object)
			if labels["team"] != "platform" || labels["app.kubernetes.io/instance"] != "edge" {
				t.Errorf("%s: %v", id(o), labels)
			}
			isHook := annotation(o, "helm.sh/hook") != ""
			if !isHook && labels["helm.sh/chart"] != "vap-status-controller-0.1.0" {
				t.Errorf("%s: chart %v", id(o), labels["helm.sh/chart"])
			}
		}
		assertRenamed(t, m.raw)
	}},
}

// release is the name of a release, which differs from the chart's name. fullName is the name of its objects.
const (
	release  = "edge"
	fullName = "edge-vap-status-controller"
)

func TestClusters(t *testing.T) {
	for _, cluster := range clusters {
		t.Run(cluster.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(cluster.values), 0o600); err != nil {
				t.Fatal(err)
			}
			text, err := helm(t, "template", release, chart, "--namespace", namespace, "--values", file)
			if err != nil {
				t.Fatal(err)
			}
			m := decode(t, text)
			assertPortable(t, m)
			cluster.check(t, m)
		})
	}
}

// TestDependency installs a parent chart, whose values enable and disable the chart.
func TestDependency(t *testing.T) {
	source, err := filepath.Abs(chart)
	if err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml": fmt.Sprintf(`apiVersion: v2
name: platform
version: 1.0.0
dependencies:
- name: vap-status-controller
  version: 0.1.0
  repository: file://%s
  condition: vap-status-controller.enabled
`, source),
		"values.yaml": `global: {team: platform}
vap-status-controller: {enabled: true, replicaCount: 3}
`,
	} {
		if err := os.WriteFile(filepath.Join(parent, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := helm(t, "dependency", "build", parent); err != nil {
		t.Fatal(err)
	}
	text, err := helm(t, "template", release, parent, "--namespace", namespace)
	if err != nil {
		t.Fatal(err)
	}
	m := decode(t, text)
	assertPortable(t, m)
	if replicas := *typed[*appsv1.Deployment](t, m, fullName).Spec.Replicas; replicas != 3 {
		t.Errorf("%d replicas", replicas)
	}
	if len(m.raw) != len(render(t, release)) {
		t.Errorf("the dependency renders %d objects", len(m.raw))
	}
	text, err = helm(t, "template", release, parent, "--set", "vap-status-controller.enabled=false")
	if err != nil || strings.TrimSpace(text) != "" {
		t.Errorf("%v, %s", err, text)
	}
	if _, err := helm(t, "template", release, parent, "--set", "vap-status-controller.enable=false"); err == nil {
		t.Error("an unknown value is accepted")
	}
}

// TestCRDsAreKept checks the annotation for `helm uninstall`.
func TestCRDsAreKept(t *testing.T) {
	for setting, expected := range map[string]string{"crds.keep=true": "keep", "crds.keep=false": ""} {
		n := 0
		for _, o := range render(t, release, setting) {
			policy := annotation(o, "helm.sh/resource-policy")
			if o["kind"] != "CustomResourceDefinition" {
				if policy != "" {
					t.Errorf("%s: %s", id(o), policy)
				}
				continue
			}
			n++
			if policy != expected {
				t.Errorf("%s: %s: %q", setting, id(o), policy)
			}
		}
		files, err := filepath.Glob("../../crds/*.vap-status.dev.yaml")
		if err != nil || n != len(files) || n == 0 {
			t.Errorf("%d CRDs of %d, %v", n, len(files), err)
		}
	}
}

// decode decodes the objects like an API server with strict field validation. It skips objects of the Prometheus
// operator.
func decode(t *testing.T, text string) manifests {
	t.Helper()
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types, json.SerializerOptions{Strict: true})
	m := manifests{raw: objects(t, []byte(text)), typed: map[string]runtime.Object{}}
	for _, o := range m.raw {
		if o["apiVersion"] == "monitoring.coreos.com/v1" {
			continue
		}
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text, err = yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		decoded, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", id(o), err)
		}
		if _, ok := m.typed[id(o)]; ok {
			t.Errorf("%s is rendered twice", id(o))
		}
		m.typed[id(o)] = decoded
	}
	return m
}

// typed returns the object that has the type and the name.
func typed[T runtime.Object](t *testing.T, m manifests, name string) T {
	t.Helper()
	for _, o := range m.typed {
		if one, ok := o.(T); ok && any(o).(metav1.Object).GetName() == name {
			return one
		}
	}
	t.Fatalf("no %T %s", *new(T), name)
	return *new(T)
}

// pods returns the pods of the release by component: controller, clear and test.
func pods(t *testing.T, m manifests) map[string]corev1.Pod {
	t.Helper()
	all := map[string]corev1.Pod{}
	for _, o := range m.typed {
		var template corev1.PodTemplateSpec
		switch o := o.(type) {
		case *appsv1.Deployment:
			template = o.Spec.Template
		case *batchv1.Job:
			template = o.Spec.Template
		case *corev1.Pod:
			template = corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
		default:
			continue
		}
		all[template.Labels["app.kubernetes.io/component"]] = corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	}
	if len(all) != 3 {
		t.Fatalf("%d pods", len(all))
	}
	return all
}

// assertPortable checks the requirements of all clusters: the restricted pod security standard in each version, one
// image, references to existing objects, and hooks that exist before the pods that need them.
func assertPortable(t *testing.T, m manifests) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := pods(t, m)
	for name, pod := range all {
		for minor := 30; minor <= 37; minor++ {
			level := api.LevelVersion{Level: api.LevelRestricted, Version: api.MajorMinorVersion(1, minor)}
			result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
			if !result.Allowed {
				t.Errorf("%s: restricted:v1.%d: %s", name, minor, result.ForbiddenDetail())
			}
		}
		for _, container := range pod.Spec.Containers {
			if image := all["controller"].Spec.Containers[0].Image; container.Image != image {
				t.Errorf("%s has the image %s", name, container.Image)
			}
		}
	}
	for _, o := range m.raw {
		weight, isHook := annotation(o, "helm.sh/hook-weight"), annotation(o, "helm.sh/hook") != ""
		isPod := o["kind"] == "Job" || o["kind"] == "Pod"
		if isHook && (weight == "-1") == isPod {
			t.Errorf("%s has the weight %q", id(o), weight)
		}
	}
	var deployment *appsv1.Deployment
	for _, o := range m.typed {
		if one, ok := o.(*appsv1.Deployment); ok {
			deployment = one
		}
	}
	for name, pod := range all {
		selects := true
		for key, value := range deployment.Spec.Selector.MatchLabels {
			selects = selects && pod.Labels[key] == value
		}
		if selects != (name == "controller") {
			t.Errorf("the Deployment's selector and the pod %s: %v", name, selects)
		}
	}
	if deployment.Spec.Selector.MatchLabels["app.kubernetes.io/instance"] != release {
		t.Errorf("selector: %v", deployment.Spec.Selector)
	}
}

// assertDualStack checks that the controller listens on IPv6 and IPv4, and that no address works with only one of them.
func assertDualStack(t *testing.T, m manifests) {
	t.Helper()
	controller := pods(t, m)["controller"].Spec.Containers[0]
	arguments := strings.Join(controller.Args, " ")
	for _, expected := range []string{"--listen [::]:8080", "--metrics-listen [::]:8081"} {
		if !strings.Contains(arguments, expected) {
			t.Errorf("no `%s` in `%s`", expected, arguments)
		}
	}
	for _, probe := range []*corev1.Probe{controller.StartupProbe, controller.LivenessProbe, controller.ReadinessProbe} {
		if probe.HTTPGet.Host != "" {
			t.Errorf("host of a probe: %s", probe.HTTPGet.Host)
		}
	}
	for _, o := range m.raw {
		text, _ := yaml.Marshal(o)
		if o["kind"] != "CustomResourceDefinition" && strings.Contains(string(text), "0.0.0.0") {
			t.Errorf("%s has an IPv4 address", id(o))
		}
	}
}

// restrictedV2 returns the field that OpenShift's SCC restricted-v2 rejects.
//
// Source: openshift/cluster-kube-apiserver-operator bindata/bootkube/scc-manifests,
// 0000_20_kube-apiserver-operator_00_scc-restricted-v2.yaml. Users and groups must be in the range of the namespace, so
// portable manifests set none.
func restrictedV2(pod corev1.PodSpec) string {
	context := pod.SecurityContext
	if context == nil {
		context = &corev1.PodSecurityContext{}
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		return "a host namespace"
	}
	if context.RunAsUser != nil || context.FSGroup != nil || context.SELinuxOptions != nil ||
		len(context.SupplementalGroups) > 0 {
		return "a fixed user, group or SELinux context of the pod"
	}
	if seccomp := context.SeccompProfile; seccomp != nil && seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault {
		return "the seccomp profile"
	}
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil || volume.NFS != nil {
			return "the volume " + volume.Name
		}
	}
	for _, container := range append(pod.InitContainers, pod.Containers...) {
		context := container.SecurityContext
		if context == nil || context.AllowPrivilegeEscalation == nil || *context.AllowPrivilegeEscalation {
			return "allowPrivilegeEscalation"
		}
		if context.RunAsUser != nil || context.SELinuxOptions != nil {
			return "a fixed user or SELinux context of a container"
		}
		if context.Privileged != nil && *context.Privileged {
			return "privileged"
		}
		if context.Capabilities != nil && len(context.Capabilities.Add) > 0 {
			return "capabilities"
		}
		for _, port := range container.Ports {
			if port.HostPort != 0 {
				return "a host port"
			}
		}
	}
	return ""
}

// TestRestrictedV2RejectsFixedUser checks restrictedV2 itself.
func TestRestrictedV2RejectsFixedUser(t *testing.T) {
	for values, expected := range map[string]string{
		"podSecurityContext.runAsUser=65532":            "a fixed user, group or SELinux context of the pod",
		"securityContext.runAsUser=65532":               "a fixed user or SELinux context of a container",
		"podSecurityContext.fsGroup=65532":              "a fixed user, group or SELinux context of the pod",
		"securityContext.allowPrivilegeEscalation=true": "allowPrivilegeEscalation",
	} {
		text, err := helm(t, "template", release, chart, "--namespace", namespace, "--set", values)
		if err != nil {
			t.Fatal(err)
		}
		for name, pod := range pods(t, decode(t, text)) {
			if problem := restrictedV2(pod.Spec); problem != expected {
				t.Errorf("%s: %s: %q", values, name, problem)
			}
		}
	}
}

// assertRenamed checks that the texts of alerts have the names of the release, and the address of its runbooks.
func assertRenamed(t *testing.T, all []object) {
	t.Helper()
	rule := find(t, all, "PrometheusRule", "edge-policies")
	text, _ := yaml.Marshal(rule["spec"])
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, other := range []string{"deployment/vap-status-controller", "ClusterRole vap-status-controller",
		"app.kubernetes.io/name=vap-status-controller", "https://github.com"} {
		if strings.Contains(words, other) {
			t.Errorf("the alerts have `%s`", other)
		}
	}
	for _, expected := range []string{"deployment/edge-policies", "ClusterRole edge-policies",
		"app.kubernetes.io/name=policies", "runbook_url: https://wiki.example.com/runbooks/VapPolicyNotReady "} {
		if !strings.Contains(words, expected) {
			t.Errorf("the alerts do not have `%s`", expected)
		}
	}
	dashboard, _ := yaml.Marshal(find(t, all, "ConfigMap", "edge-policies-dashboard"))
	if !strings.Contains(string(dashboard), `"https://wiki.example.com/runbooks/${__value.raw}"`) {
		t.Error("the dashboard links to other runbooks")
	}
}
