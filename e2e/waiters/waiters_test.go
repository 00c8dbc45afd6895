// Package waiters tests how other tools evaluate the statuses that the controller writes: kstatus (Flux, Helm --wait),
// the Lua script for Argo CD in config/argocd, and the expressions for Flux in config/flux.
package waiters

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// testCase is a status and the expected health in each tool.
type testCase struct {
	Name       string         `json:"name"`
	Note       string         `json:"note"`
	Generation int64          `json:"generation"`
	Status     map[string]any `json:"status"`
	Kstatus    string         `json:"kstatus"`
	ArgoCD     string         `json:"argocd"`
	Flux       string         `json:"flux"`
	// Message is the expected message in Argo CD, if set.
	Message string `json:"message"`
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// cases returns all cases and their policies. The policies are decoded like in a client of the API server.
func cases(t *testing.T) map[*unstructured.Unstructured]testCase {
	t.Helper()
	var list []testCase
	if err := yaml.UnmarshalStrict(read(t, "testdata/policies.yaml"), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatal("no cases")
	}
	policies := map[*unstructured.Unstructured]testCase{}
	for _, c := range list {
		text, err := yaml.Marshal(map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1",
			"kind":       "ValidatingAdmissionPolicy",
			"metadata":   map[string]any{"name": "limits", "generation": c.Generation},
			"status":     c.Status,
		})
		if err != nil {
			t.Fatal(err)
		}
		policy := &unstructured.Unstructured{}
		// Decodes integral numbers as int64, like a client of the API server.
		if err := utilyaml.Unmarshal(text, &policy.Object); err != nil {
			t.Fatal(err)
		}
		policies[policy] = c
	}
	return policies
}

// TestSamples evaluates the statuses that the controller wrote for the policies of config/samples. They were recorded
// with `kubectl get validatingadmissionpolicies -o json` on an API server with kube-controller-manager.
func TestSamples(t *testing.T) {
	var samples []any
	if err := utilyaml.Unmarshal(read(t, "testdata/samples.json"), &samples); err != nil {
		t.Fatal(err)
	}
	wanted := map[string]string{
		"sample-sound":              "Current Current Healthy",
		"sample-sound-params":       "Current Current Healthy",
		"sample-wildcard":           "Current Current Healthy",
		"sample-misspelt-field":     "Failed Failed Degraded",
		"sample-wrong-type":         "Failed Failed Degraded",
		"sample-missing-param-kind": "InProgress InProgress Progressing",
		"sample-no-such-resource":   "InProgress InProgress Progressing",
	}
	evaluator := fluxEvaluator(t)
	script := string(read(t, "../../config/argocd/health.lua"))
	for _, sample := range samples {
		policy := &unstructured.Unstructured{Object: sample.(map[string]any)}
		byKstatus, err := status.Compute(policy)
		if err != nil {
			t.Fatal(err)
		}
		byFlux, err := evaluator.Evaluate(context.Background(), policy)
		if err != nil {
			t.Fatal(err)
		}
		health, _ := run(t, script, policy.Object)
		got := byKstatus.Status.String() + " " + byFlux.Status.String() + " " + health
		if got != wanted[policy.GetName()] {
			t.Errorf("%s: %s, expected %s", policy.GetName(), got, wanted[policy.GetName()])
		}
		delete(wanted, policy.GetName())
	}
	if len(wanted) > 0 {
		t.Errorf("not among the samples: %v", wanted)
	}
}

func TestKstatus(t *testing.T) {
	for policy, c := range cases(t) {
		result, err := status.Compute(policy)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if result.Status.String() != c.Kstatus {
			t.Errorf("%s: %s, expected %s", c.Name, result.Status, c.Kstatus)
		}
		if wrong := c.Kstatus != c.Flux; wrong != (c.Note != "") {
			t.Errorf("%s: the case needs a note: kstatus and Flux's expressions differ", c.Name)
		}
	}
}

// fluxEvaluator returns Flux's evaluator for the expressions of config/flux.
func fluxEvaluator(t *testing.T) *cel.StatusEvaluator {
	t.Helper()
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(read(t, "../../config/flux/kustomization.yaml"), &kustomization); err != nil {
		t.Fatal(err)
	}
	checks := kustomization.Spec.HealthCheckExprs
	if len(checks) != 1 || checks[0].APIVersion != "admissionregistration.k8s.io/v1" || checks[0].Kind != "ValidatingAdmissionPolicy" {
		t.Fatalf("expected one check of policies, got %v", checks)
	}
	evaluator, err := cel.NewStatusEvaluator(&checks[0].HealthCheckExpressions)
	if err != nil {
		t.Fatal(err)
	}
	return evaluator
}

func TestFluxHealthCheckExprs(t *testing.T) {
	evaluator := fluxEvaluator(t)
	for policy, c := range cases(t) {
		result, err := evaluator.Evaluate(context.Background(), policy)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if result.Status.String() != c.Flux {
			t.Errorf("%s: %s, expected %s", c.Name, result.Status, c.Flux)
		}
	}
}

func TestArgoCDHealth(t *testing.T) {
	script := string(read(t, "../../config/argocd/health.lua"))
	var configMap struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(read(t, "../../config/argocd/argocd-cm.yaml"), &configMap); err != nil {
		t.Fatal(err)
	}
	const key = "resource.customizations.health.admissionregistration.k8s.io_ValidatingAdmissionPolicy"
	if configMap.Data[key] != script {
		t.Errorf("config/argocd/argocd-cm.yaml does not contain the script of health.lua")
	}
	for policy, c := range cases(t) {
		health, message := run(t, script, policy.Object)
		if health != c.ArgoCD {
			t.Errorf("%s: %s, expected %s", c.Name, health, c.ArgoCD)
		}
		if message == "" || !strings.Contains(message, c.Message) {
			t.Errorf("%s: %q, expected %q", c.Name, message, c.Message)
		}
	}
}

// run evaluates a script on an object like Argo CD. The script cannot use libraries for the operating system, and can
// run for at most a second. The object is in the variable `obj`. The result is a table.
//
// Source: `github.com/argoproj/argo-cd` `util/lua/lua.go`, `runLuaWithResourceActions`, `GetResourceHealth`.
func run(t *testing.T, script string, object map[string]any) (health, message string) {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage},
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
	} {
		function := lua.P{Fn: state.NewFunction(library.open), Protect: true}
		if err := state.CallByParam(function, lua.LString(library.name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", luaValue(state, object))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %s", state.Get(-1).Type())
	}
	return lua.LVAsString(answer.RawGetString("status")), lua.LVAsString(answer.RawGetString("message"))
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.CreateTable(len(value), 0)
		for _, item := range value {
			table.Append(luaValue(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(value))
		for key, item := range value {
			table.RawSetString(key, luaValue(state, item))
		}
		return table
	default:
		return lua.LNil
	}
}
