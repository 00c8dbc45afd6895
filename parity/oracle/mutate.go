//go:build !(k130 || k131 || k132 || k133 || k134 || k135)

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/spec3"
)

// MutateLine is the result of `oracle mutate` for an object and its apply configuration or patch.
type MutateLine struct {
	Line int `json:"line"`
	// Live is the object as the API server decodes it. It is unset if the kind is not a built-in one.
	Live any `json:"live,omitempty"`
	// Result is the resulting object as JSON. Its numbers have Go's notation.
	Result string `json:"result,omitempty"`
	// Errors are set if there is no result. There are several if the error depends on Go's map order.
	Errors []string `json:"errors,omitempty"`
	Error  string   `json:"error,omitempty"`
	Panic  *Panic   `json:"panic,omitempty"`
}

// mutateTries is the number of merges of an object. Several are necessary to detect nondeterministic errors.
const mutateTries = 300

func cmdMutate(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	fs := flag.NewFlagSet("mutate", flag.ContinueOnError)
	openapi := fs.String("openapi", "", "directory of OpenAPI v3 documents (*_openapi.json)")
	if err := parseFlags(fs, args[1:]); err != nil {
		return err
	}
	// Source: apiserver pkg/server/config.go, NewConfig.
	jsonpatch.AccumulatedCopySizeLimit = 3 * 1024 * 1024
	converters := &converters{openapi: *openapi, known: map[string]knownConverter{}}
	var answer func(n int, data []byte) MutateLine
	switch args[0] {
	case "merge":
		answer = func(n int, data []byte) MutateLine { return mergeLine(converters, n, data) }
	case "patch":
		answer = patchLine
	case "admit":
		answer = func(n int, data []byte) MutateLine { return mutateAdmitLine(converters, n, data) }
	default:
		return errUsage
	}
	for _, path := range fs.Args() {
		err := readCases(path, func(n int, data []byte) error { return writeLine(out, answer(n, data)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// converters caches type converters by OpenAPI document.
type converters struct {
	openapi string
	known   map[string]knownConverter
}

type knownConverter struct {
	converter managedfields.TypeConverter
	err       error
}

func (c *converters) get(key string, document func() ([]byte, error)) (managedfields.TypeConverter, error) {
	known, ok := c.known[key]
	if !ok {
		known.converter, known.err = newConverter(document)
		c.known[key] = known
	}
	return known.converter, known.err
}

// newConverter creates a converter from a document, like upstream's typeConverterManager.
func newConverter(document func() ([]byte, error)) (managedfields.TypeConverter, error) {
	data, err := document()
	if err != nil {
		return nil, err
	}
	var read spec3.OpenAPI
	if err := json.Unmarshal(data, &read); err != nil {
		return nil, err
	}
	if read.Components == nil {
		return nil, errors.New("no components")
	}
	return managedfields.NewTypeConverter(read.Components.Schemas, false)
}

// publishedDocument returns the OpenAPI document of a CustomResourceDefinition's version, as the API server publishes
// it.
func publishedDocument(data []byte, version string) ([]byte, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(data, &crd); err != nil {
		return nil, err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	published, err := builder.BuildOpenAPIV3(&crd, version, builder.Options{V2: false})
	if err != nil {
		return nil, err
	}
	return json.Marshal(published)
}

func mergeLine(converters *converters, n int, data []byte) MutateLine {
	line := MutateLine{Line: n}
	var c struct {
		GVK      [3]string       `json:"gvk"`
		CRD      json.RawMessage `json:"crd"`
		Document json.RawMessage `json:"document"`
		Live     json.RawMessage `json:"live"`
		Applied  json.RawMessage `json:"applied"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		line.Error = err.Error()
		return line
	}
	gvk := schema.GroupVersionKind{Group: c.GVK[0], Version: c.GVK[1], Kind: c.GVK[2]}
	isTyped := false
	var converter managedfields.TypeConverter
	var err error
	switch {
	case len(c.CRD) > 0:
		converter, err = converters.get(gvk.Version+string(c.CRD), func() ([]byte, error) { return publishedDocument(c.CRD, gvk.Version) })
	case len(c.Document) > 0:
		converter, err = converters.get(string(c.Document), func() ([]byte, error) { return c.Document, nil })
	default:
		isTyped = scheme.Scheme.Recognizes(gvk)
		name := documentName(gvk.GroupVersion())
		converter, err = converters.get(name, func() ([]byte, error) { return os.ReadFile(filepath.Join(converters.openapi, name)) })
	}
	if err != nil {
		line.Error = err.Error()
		return line
	}
	var live, applied map[string]any
	if err := errors.Join(utiljson.Unmarshal(c.Live, &live), utiljson.Unmarshal(c.Applied, &applied)); err != nil {
		line.Error = err.Error()
		return line
	}
	var object runtime.Object = &unstructured.Unstructured{Object: live}
	if isTyped {
		object, err = scheme.Scheme.New(gvk)
		if err == nil {
			err = json.Unmarshal(c.Live, object)
		}
		if err != nil {
			line.Error = err.Error()
			return line
		}
		object.GetObjectKind().SetGroupVersionKind(gvk)
	}
	line.Live, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		line.Error = err.Error()
		return line
	}
	line.Panic = guard(func() {
		for range mutateTries {
			applied := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(applied)}
			applied.SetGroupVersionKind(gvk)
			result, err := patch.ApplyStructuredMergeDiff(converter, object, applied)
			if err == nil {
				line.Result = text(result, &line)
				break
			}
			if !slices.Contains(line.Errors, err.Error()) {
				line.Errors = append(line.Errors, err.Error())
			}
		}
	})
	return line
}

func text(object any, line *MutateLine) string {
	data, err := json.Marshal(object)
	if err != nil {
		line.Error = err.Error()
	}
	return string(data)
}

// operations is an evaluator that returns a given patch instead of evaluating an expression.
type operations struct{ value ref.Val }

func (o operations) ForInput(context.Context, *admission.VersionedAttributes, *admissionv1.AdmissionRequest, plugincel.OptionalVariableBindings, *corev1.Namespace, int64) (plugincel.EvaluationResult, int64, error) {
	return plugincel.EvaluationResult{EvalResult: o.value}, 0, nil
}

func (o operations) CompilationErrors() []error { return nil }

// interfaces implements admission.ObjectInterfaces for a custom resource.
type interfaces struct {
	runtime.ObjectCreater
	runtime.ObjectTyper
}

func (i interfaces) GetObjectCreater() runtime.ObjectCreater                       { return i.ObjectCreater }
func (i interfaces) GetObjectTyper() runtime.ObjectTyper                           { return i.ObjectTyper }
func (i interfaces) GetObjectDefaulter() runtime.ObjectDefaulter                   { return nil }
func (i interfaces) GetObjectConvertor() runtime.ObjectConvertor                   { return nil }
func (i interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return nil }

func patchLine(n int, data []byte) MutateLine {
	line := MutateLine{Line: n}
	var c struct {
		Object json.RawMessage `json:"object"`
		Patch  []struct {
			Op    string          `json:"op"`
			Path  string          `json:"path"`
			From  string          `json:"from"`
			Value json.RawMessage `json:"value"`
		} `json:"patch"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		line.Error = err.Error()
		return line
	}
	var content map[string]any
	if err := utiljson.Unmarshal(c.Object, &content); err != nil {
		line.Error = err.Error()
		return line
	}
	var steps []ref.Val
	for _, step := range c.Patch {
		val := &mutation.JSONPatchVal{Op: step.Op, Path: step.Path, From: step.From}
		if len(step.Value) > 0 {
			var value any
			if err := utiljson.Unmarshal(step.Value, &value); err != nil {
				line.Error = err.Error()
				return line
			}
			val.Val = types.DefaultTypeAdapter.NativeToValue(value)
		}
		steps = append(steps, val)
	}
	object := &unstructured.Unstructured{Object: content}
	gvk := object.GroupVersionKind()
	patcher := patch.NewJSONPatcher(operations{types.NewRefValList(types.DefaultTypeAdapter, steps)})
	attributes := admission.NewAttributesRecord(object, nil, gvk, "", "", schema.GroupVersionResource{}, "", admission.Create, &metav1.CreateOptions{}, false, nil)
	request := patch.Request{
		VersionedAttributes: &admission.VersionedAttributes{Attributes: attributes, VersionedKind: gvk, VersionedObject: versionedObject(object)},
		ObjectInterfaces:    interfaces{unstructuredscheme.NewUnstructuredCreator(), unstructuredscheme.NewUnstructuredObjectTyper()},
	}
	line.Panic = guard(func() {
		result, err := patcher.Patch(context.Background(), request, celconfig.RuntimeCELCostBudget)
		if err != nil {
			line.Errors = append(line.Errors, err.Error())
			return
		}
		patched, ok := result.(*unstructured.Unstructured)
		if !ok {
			line.Error = fmt.Sprintf("%T", result)
			return
		}
		line.Result = text(patched.Object, &line)
	})
	return line
}
