// Package helm compares the objects that Helm renders from the chart with those that kustomize renders from config/. It
// also lints and packages the chart, renders it for common clusters, and renders it with invalid values. It uses Helm's
// command and kustomize's library.
package helm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

const (
	chart     = "../../charts/vap-status-controller"
	namespace = "vap-status-system"
)

type object = map[string]any

// helm runs Helm's command in the version of go.mod, and returns the output.
func helm(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	command := exec.Command("go", append([]string{"tool", "helm"}, arguments...)...)
	home := t.TempDir()
	for _, variable := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		command.Env = append(command.Environ(), variable+"="+filepath.Join(home, variable))
	}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if err != nil {
		err = fmt.Errorf("helm %s: %w: %s", strings.Join(arguments, " "), err, stderr.String())
	}
	return stdout.String(), err
}

// render returns the objects of the chart, including hooks. `settings` are the arguments of `--set`.
func render(t *testing.T, release string, settings ...string) []object {
	t.Helper()
	arguments := []string{"template", release, chart, "--namespace", namespace}
	for _, setting := range settings {
		arguments = append(arguments, "--set", setting)
	}
	text, err := helm(t, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, []byte(text))
}

func objects(t *testing.T, text []byte) []object {
	t.Helper()
	var found []object
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		var one object
		if err := yaml.UnmarshalStrict(document, &one); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(one) > 0 {
			found = append(found, one)
		}
	}
}

func kustomize(t *testing.T, folder string) []object {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join("../../config", folder))
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, text)
}

func metadata(o object) object {
	found, _ := o["metadata"].(object)
	return found
}

func annotation(o object, key string) string {
	annotations, _ := metadata(o)["annotations"].(object)
	value, _ := annotations[key].(string)
	return value
}

func id(o object) string {
	return fmt.Sprintf("%v %v/%v", o["kind"], metadata(o)["namespace"], metadata(o)["name"])
}

// comparable returns the objects by name. It removes hooks, the labels of the installing tool, and the version, which
// kustomize adds only in config/default. It also removes the annotation that keeps the CRDs when Helm uninstalls.
func comparable(all []object) map[string]object {
	found := map[string]object{}
	for _, o := range all {
		if annotation(o, "helm.sh/hook") != "" || o["kind"] == "Namespace" {
			continue
		}
		labels, _ := metadata(o)["labels"].(object)
		for label := range labels {
			tool := strings.HasPrefix(label, "helm.sh/") || label == "app.kubernetes.io/managed-by" ||
				label == "app.kubernetes.io/version"
			if tool {
				delete(labels, label)
			}
		}
		if annotation(o, "helm.sh/resource-policy") == "keep" {
			delete(metadata(o), "annotations")
		}
		found[id(o)] = o
	}
	return found
}

func assertEqual(t *testing.T, ofHelm, ofKustomize []object) {
	t.Helper()
	one, two := comparable(ofHelm), comparable(ofKustomize)
	names := map[string]bool{}
	for name := range one {
		names[name] = true
	}
	for name := range two {
		names[name] = true
	}
	if len(names) == 0 {
		t.Fatal("nothing was rendered")
	}
	for name := range names {
		if !reflect.DeepEqual(one[name], two[name]) {
			left, _ := yaml.Marshal(one[name])
			right, _ := yaml.Marshal(two[name])
			t.Errorf("%s differs; helm:\n%s\nkustomize:\n%s", name, left, right)
		}
	}
}

func TestDefaultsEqualThoseOfKustomize(t *testing.T) {
	assertEqual(t, render(t, "vap-status-controller"), kustomize(t, "default"))
}

// TestMonitoringEqualsThatOfKustomize enables all features that have a directory in config/.
func TestMonitoringEqualsThatOfKustomize(t *testing.T) {
	rendered := render(t, "vap-status-controller", "metrics.serviceMonitor.enabled=true",
		"metrics.prometheusRule.enabled=true", "metrics.dashboard.enabled=true", "subjectAccessReviews.enabled=true",
		"rbac.aggregateToEdit=true", "flowSchema.enabled=true",
		"follow={mutatingadmissionpolicies,mutatingwebhookconfigurations,validatingwebhookconfigurations,"+
			"customresourcedefinitions}")
	overlay := t.TempDir()
	root, err := filepath.Abs("../../config")
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(overlay, root)
	if err != nil {
		t.Fatal(err)
	}
	kustomization := `labels:
- pairs:
    app.kubernetes.io/component: controller
    app.kubernetes.io/instance: vap-status-controller
    app.kubernetes.io/name: vap-status-controller
    app.kubernetes.io/part-of: vap-status-controller
resources:
`
	for _, folder := range []string{"default", "alerts", "dashboards"} {
		kustomization += "- " + filepath.Join(relative, folder) + "\n"
	}
	kustomization += "components:\n"
	components := []string{"aggregate-to-edit", "flow-schema", "subject-access-reviews", "mutatingadmissionpolicies",
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "customresourcedefinitions"}
	for _, component := range components {
		kustomization += "- " + filepath.Join(relative, "components", component) + "\n"
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	assertEqual(t, rendered, objects(t, text))
}

func TestClearJobEqualsThatOfKustomize(t *testing.T) {
	rendered, ofKustomize := render(t, "vap-status-controller"), kustomize(t, "clear")
	for _, kind := range []string{"Job", "NetworkPolicy"} {
		hook := find(t, rendered, kind, "vap-status-controller-clear")
		other := find(t, ofKustomize, kind, "vap-status-controller-clear")
		if kind == "Job" {
			// The hook needs its own service account, because Helm deletes the controller's before the hook runs.
			podSpec(other)["serviceAccountName"] = "vap-status-controller-clear"
		}
		if !reflect.DeepEqual(hook["spec"], other["spec"]) {
			left, _ := yaml.Marshal(hook["spec"])
			right, _ := yaml.Marshal(other["spec"])
			t.Errorf("helm:\n%s\nkustomize:\n%s", left, right)
		}
	}
}

func find(t *testing.T, all []object, kind, name string) object {
	t.Helper()
	for _, o := range all {
		if o["kind"] == kind && metadata(o)["name"] == name {
			return o
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

func podSpec(workload object) object {
	return workload["spec"].(object)["template"].(object)["spec"].(object)
}

func TestValuesReachTheManifests(t *testing.T) {
	all := render(t, "mine", "image.repository=registry.example.com/vap", "image.tag=1.2.3", "replicaCount=3",
		"profile=upstream", "readyRequires={Compiled,Bound}", "excludeNames={gke-*,aks-managed}",
		"excludeSelector=vendor in (a\\,b)", "extraArgs={--concurrency=8}", "priorityClassName=mine",
		"paramsRoles[0].apiGroup=rules.example.com", "paramsRoles[0].resources={replicalimits}",
		"nodeSelector.disk=ssd", "networkPolicy.apiServerPorts={9443}",
		"networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=monitoring",
		"resources.limits.memory=1Gi", "podDisruptionBudget.enabled=false", "clear.enabled=false")
	name := "mine-vap-status-controller"
	deployment := find(t, all, "Deployment", name)
	if replicas := deployment["spec"].(object)["replicas"]; replicas != float64(3) {
		t.Errorf("replicas: %v", replicas)
	}
	pod := podSpec(deployment)
	container := pod["containers"].([]any)[0].(object)
	if container["image"] != "registry.example.com/vap:1.2.3" {
		t.Errorf("image: %v", container["image"])
	}
	arguments := strings.Trim(fmt.Sprint(container["args"]), "[]")
	for _, wanted := range []string{"--profile upstream", "--ready-requires Compiled,Bound",
		"--exclude-names gke-*,aks-managed", "--exclude-selector vendor in (a,b)", "--concurrency=8"} {
		if !strings.Contains(arguments, wanted) {
			t.Errorf("no `%s` in `%s`", wanted, arguments)
		}
	}
	if pod["priorityClassName"] != "mine" || !reflect.DeepEqual(pod["nodeSelector"], object{"disk": "ssd"}) {
		t.Errorf("pod: %v", pod)
	}
	limits := container["resources"].(object)["limits"].(object)
	if limits["memory"] != "1Gi" {
		t.Errorf("limits: %v", limits)
	}
	role := find(t, all, "ClusterRole", name+"-params-of-values")
	if metadata(role)["labels"].(object)["vap-status.dev/aggregate-to-controller"] != "true" {
		t.Errorf("the role for params does not aggregate other roles")
	}
	policy, _ := yaml.Marshal(find(t, all, "NetworkPolicy", name)["spec"])
	if !strings.Contains(string(policy), "9443") || !strings.Contains(string(policy), "team: monitoring") {
		t.Errorf("network policy: %s", policy)
	}
	for _, o := range all {
		absent := o["kind"] == "PodDisruptionBudget" || o["kind"] == "PriorityClass" ||
			annotation(o, "helm.sh/hook") == "post-delete"
		if absent {
			t.Errorf("%s is rendered although it is disabled", id(o))
		}
		for _, subject := range subjects(o) {
			if subject["name"] != name || subject["namespace"] != namespace {
				t.Errorf("%s is for %v", id(o), subject)
			}
		}
	}
}

func subjects(o object) []object {
	list, _ := o["subjects"].([]any)
	var found []object
	for _, subject := range list {
		found = append(found, subject.(object))
	}
	return found
}

func TestDigestIsUsedInsteadOfTheTag(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	all := render(t, "vap-status-controller", "image.digest="+digest)
	pod := podSpec(find(t, all, "Deployment", "vap-status-controller"))
	if image := pod["containers"].([]any)[0].(object)["image"]; image != "vap-status-controller@"+digest {
		t.Errorf("image: %v", image)
	}
}

func TestInvalidValuesAreRejected(t *testing.T) {
	for _, setting := range []string{"replicas=3", "replicaCount=two", "profile=mine", "readyRequires={Redy}",
		"follow={pods}",
		"image.repository=", "metrics.alerts.enabled=true", "image.digest=latest"} {
		_, err := helm(t, "template", "x", chart, "--set", setting)
		if err == nil || !strings.Contains(err.Error(), "values don't meet the specifications of the schema") {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

func TestLintAndPackage(t *testing.T) {
	if _, err := helm(t, "lint", "--strict", chart); err != nil {
		t.Error(err)
	}
	folder := t.TempDir()
	if _, err := helm(t, "package", chart, "--destination", folder); err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(folder, "vap-status-controller-0.1.0.tgz")
	text, err := helm(t, "template", "vap-status-controller", packed, "--namespace", namespace)
	if err != nil {
		t.Fatal(err)
	}
	assertEqual(t, objects(t, []byte(text)), render(t, "vap-status-controller"))
}

// TestArtifactHubListsTheCRDs compares the annotation of Chart.yaml with the CRDs.
func TestArtifactHubListsTheCRDs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Annotations map[string]string `json:"annotations"`
	}
	var listed []struct{ Kind, Version, Name, DisplayName, Description string }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(file.Annotations["artifacthub.io/crds"]), &listed); err != nil {
		t.Fatal(err)
	}
	var names, expected []string
	for _, crd := range listed {
		names = append(names, crd.Name+" "+crd.Kind+" "+crd.Version)
		if crd.DisplayName == "" || crd.Description == "" {
			t.Errorf("%s has no description", crd.Name)
		}
	}
	for _, o := range render(t, "vap-status-controller") {
		if o["kind"] == "CustomResourceDefinition" {
			spec := o["spec"].(object)
			version := spec["versions"].([]any)[0].(object)["name"]
			expected = append(expected, fmt.Sprint(metadata(o)["name"], " ", spec["names"].(object)["kind"], " ", version))
		}
	}
	sort.Strings(names)
	sort.Strings(expected)
	if !reflect.DeepEqual(names, expected) {
		t.Errorf("%v, expected %v", names, expected)
	}
}

// TestHooksAreComplete lists the hooks. Helm creates these objects only during an operation such as a test.
func TestHooksAreComplete(t *testing.T) {
	var hooks []string
	for _, o := range render(t, "vap-status-controller") {
		if hook := annotation(o, "helm.sh/hook"); hook != "" {
			hooks = append(hooks, fmt.Sprintf("%s %v", hook, o["kind"]))
		}
	}
	sort.Strings(hooks)
	wanted := []string{"post-delete ClusterRole", "post-delete ClusterRoleBinding", "post-delete Job",
		"post-delete NetworkPolicy", "post-delete Role", "post-delete RoleBinding", "post-delete ServiceAccount",
		"test NetworkPolicy", "test Pod"}
	if !reflect.DeepEqual(hooks, wanted) {
		t.Errorf("%v", hooks)
	}
}
