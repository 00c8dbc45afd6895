//go:build !(k130 || k131 || k132 || k133 || k134 || k135)

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	schemaobjectmeta "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	structuralpruning "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// AdmittedLine is the result of `oracle crd admit` for a definition and objects.
type AdmittedLine struct {
	Line    int              `json:"line"`
	Objects []AdmittedObject `json:"objects"`
	// Nanos is the mean time of a request in nanoseconds. It is unset if the time is not measured.
	Nanos float64 `json:"nanos,omitempty"`
	Error string  `json:"error,omitempty"`
	Panic *Panic  `json:"panic,omitempty"`
}

// AdmittedObject is the API server's result for a request.
type AdmittedObject struct {
	// Unread is the error for an object that cannot be decoded.
	Unread string `json:"unread,omitempty"`
	// Outcomes are the observed lists of causes. There are several if they depend on Go's map order.
	Outcomes [][]Cause `json:"outcomes"`
	// Result is the stored form of the object. It is unset if the object is invalid.
	Result any    `json:"result,omitempty"`
	Panic  *Panic `json:"panic,omitempty"`
}

// Cause is a cause of a rejection.
type Cause struct {
	Field   string `json:"field"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// customStrategy contains the methods of customresource.NewStrategy's result. Its type is not exported.
type customStrategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

type servedVersion struct {
	strategy   customStrategy
	structural *structuralschema.Structural
	gvk        schema.GroupVersionKind
}

// serve prepares a version like the API server's handler of custom resources.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/customresource_handler.go, getOrCreateServingInfoFor.
func serve(crd *apiextensionsv1.CustomResourceDefinition, version string) (*servedVersion, error) {
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Name != version || v.Schema == nil {
			continue
		}
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
			return nil, err
		}
		structural, err := structuralschema.NewStructural(&internal)
		if err != nil {
			return nil, err
		}
		validator, _, err := apiservervalidation.NewSchemaValidator(&internal)
		if err != nil {
			return nil, err
		}
		var status *apiextensions.CustomResourceSubresourceStatus
		var scale *apiextensions.CustomResourceSubresourceScale
		if v.Subresources != nil && v.Subresources.Status != nil {
			status = &apiextensions.CustomResourceSubresourceStatus{}
		}
		if v.Subresources != nil && v.Subresources.Scale != nil {
			scale = &apiextensions.CustomResourceSubresourceScale{}
			if err := apiextensionsv1.Convert_v1_CustomResourceSubresourceScale_To_apiextensions_CustomResourceSubresourceScale(v.Subresources.Scale, scale, nil); err != nil {
				return nil, err
			}
		}
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind}
		strategy := customresource.NewStrategy(unstructuredscheme.NewUnstructuredObjectTyper(), crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
			gvk, validator, nil, structural, status, scale, v.SelectableFields)
		return &servedVersion{strategy: strategy, structural: structural, gvk: gvk}, nil
	}
	return nil, errors.New("no such version")
}

// read decodes an object like the body of a request.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/customresource_handler.go, unstructuredSchemaCoercer.apply,
// unstructuredDefaulter.Default.
func (s *servedVersion) read(data []byte) (*unstructured.Unstructured, error) {
	content, err := contentOf(data)
	if err != nil {
		return nil, err
	}
	return s.readContent(content)
}

func contentOf(data []byte) (content map[string]any, err error) {
	err = utiljson.Unmarshal(data, &content)
	return content, err
}

// readContent decodes an object from parsed JSON. It changes the JSON.
func (s *servedVersion) readContent(content map[string]any) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: content}
	kind, foundKind, err := unstructured.NestedString(content, "kind")
	if err != nil {
		return nil, err
	}
	apiVersion, foundAPIVersion, err := unstructured.NestedString(content, "apiVersion")
	if err != nil {
		return nil, err
	}
	objectMeta, foundMeta, _, err := schemaobjectmeta.GetObjectMetaWithOptions(content, schemaobjectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	structuralpruning.Prune(content, s.structural, true)
	structuraldefaulting.PruneNonNullableNullsWithoutDefaults(content, s.structural)
	if err, _ := schemaobjectmeta.CoerceWithOptions(nil, content, s.structural, false, schemaobjectmeta.CoerceOptions{ReturnUnknownFieldPaths: true}); err != nil {
		return nil, err
	}
	if foundKind {
		u.SetKind(kind)
	}
	if foundAPIVersion {
		u.SetAPIVersion(apiVersion)
	}
	if foundMeta {
		if err := schemaobjectmeta.SetObjectMeta(content, objectMeta); err != nil {
			return nil, err
		}
	}
	structuraldefaulting.Default(content, s.structural)
	return u, nil
}

func causesOf(err error) []Cause {
	causes := []Cause{}
	if err == nil || reflect.ValueOf(err).IsZero() {
		return causes
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return append(causes, Cause{Reason: "Error", Message: err.Error()})
	}
	for _, cause := range status.Status().Details.Causes {
		causes = append(causes, Cause{Field: cause.Field, Reason: string(cause.Type), Message: selfType.ReplaceAllString(cause.Message, "selfType")})
	}
	return causes
}

// The minimum and maximum number of attempts. Several are necessary to detect a random order of causes, because Go's
// maps with two entries rarely change their order.
const fewestTries, mostTries = 3, 160

func (s *servedVersion) admit(object, old *unstructured.Unstructured, namespace string) (result *unstructured.Unstructured, causes []Cause) {
	if old != nil {
		old = old.DeepCopy()
	}
	return s.admitRead(object.DeepCopy(), old, namespace)
}

// admitRead admits a decoded object. It changes the object.
func (s *servedVersion) admitRead(object, old *unstructured.Unstructured, namespace string) (result *unstructured.Unstructured, causes []Cause) {
	ctx := genericapirequest.WithNamespace(context.Background(), namespace)
	if old == nil {
		rest.WipeObjectMetaSystemFields(object)
		rest.FillObjectMetaSystemFields(object)
		if name := object.GetGenerateName(); name != "" && object.GetName() == "" {
			object.SetName(name + "x7x7x")
		}
		return object, causesOf(rest.BeforeCreate(s.strategy, ctx, object))
	}
	return object, causesOf(rest.BeforeUpdate(s.strategy, ctx, object, old))
}

// isOfSomeField returns true if the cause is about a random field. A rule that compares whole objects visits their
// fields in Go's map order, and upstream reports the first field with invalid data.
func isOfSomeField(cause Cause) bool {
	return strings.Contains(cause.Message, "invalid data, ")
}

func (s *servedVersion) outcomes(objectData, oldData []byte, namespace string) AdmittedObject {
	answer := AdmittedObject{Outcomes: [][]Cause{}}
	object, old, err := s.readBoth(objectData, oldData)
	if err != nil {
		answer.Unread = err.Error()
		return answer
	}
	answer.Panic = guard(func() {
		for try := 0; try < mostTries; try++ {
			result, causes := s.admit(object, old, namespace)
			if !slices.ContainsFunc(answer.Outcomes, func(known []Cause) bool { return slices.Equal(known, causes) }) {
				answer.Outcomes = append(answer.Outcomes, causes)
			}
			if len(causes) == 0 {
				answer.Result = result.Object
			}
			if !slices.ContainsFunc(causes, isOfSomeField) && (len(causes) < 2 || len(answer.Outcomes) > 1) && try+1 >= fewestTries {
				return
			}
		}
	})
	return answer
}

func (s *servedVersion) readBoth(objectData, oldData []byte) (object, old *unstructured.Unstructured, err error) {
	if object, err = s.read(objectData); err != nil {
		return nil, nil, err
	}
	if len(oldData) > 0 {
		if old, err = s.read(oldData); err != nil {
			return nil, nil, fmt.Errorf("old: %w", err)
		}
	}
	return object, old, nil
}

// measure returns the mean time of decoding and admitting an object and its old version. Like our own measurement, it
// excludes the parsing of JSON. Objects that cannot be decoded count as zero.
func (s *servedVersion) measure(objectData, oldData []byte, namespace string, repeat int) (measured time.Duration) {
	content, err := contentOf(objectData)
	if err != nil {
		return 0
	}
	var oldContent map[string]any
	if len(oldData) > 0 {
		if oldContent, err = contentOf(oldData); err != nil {
			return 0
		}
	}
	if _, _, err := s.readBoth(objectData, oldData); err != nil {
		return 0
	}
	begin := time.Now()
	for range repeat {
		object, err := s.readContent(runtime.DeepCopyJSON(content))
		if err != nil {
			return 0
		}
		var old *unstructured.Unstructured
		if oldContent != nil {
			if old, err = s.readContent(runtime.DeepCopyJSON(oldContent)); err != nil {
				return 0
			}
		}
		s.admitRead(object, old, namespace)
	}
	return time.Since(begin)
}

func admittedLine(n int, data []byte, repeat int) AdmittedLine {
	line := AdmittedLine{Line: n, Objects: []AdmittedObject{}}
	var group struct {
		CRD     apiextensionsv1.CustomResourceDefinition `json:"crd"`
		Version string                                   `json:"version"`
		Objects []struct {
			Object    json.RawMessage `json:"object"`
			Old       json.RawMessage `json:"old"`
			Namespace string          `json:"namespace"`
		} `json:"objects"`
	}
	if err := json.Unmarshal(data, &group); err != nil {
		line.Error = err.Error()
		return line
	}
	line.Panic = guard(func() {
		served, err := serve(&group.CRD, group.Version)
		if err != nil {
			line.Error = err.Error()
			return
		}
		var measured time.Duration
		for _, request := range group.Objects {
			line.Objects = append(line.Objects, served.outcomes(request.Object, request.Old, request.Namespace))
			if repeat == 0 {
				continue
			}
			measured += served.measure(request.Object, request.Old, request.Namespace, repeat)
		}
		if repeat > 0 && len(group.Objects) > 0 {
			line.Nanos = float64(measured.Nanoseconds()) / float64(repeat*len(group.Objects))
		}
	})
	return line
}
