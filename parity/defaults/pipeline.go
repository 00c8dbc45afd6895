package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane"
	kjson "sigs.k8s.io/json"
)

// tree is a JSON object. Integers are int64.
type tree = map[string]any

var scheme = legacyscheme.Scheme

// subject is a kind and the API server's operations on its objects.
type subject struct {
	gvk      schema.GroupVersionKind
	strategy rest.RESTCreateStrategy
}

func subjects() []subject {
	var all []subject
	for _, entry := range covered {
		gv, err := schema.ParseGroupVersion(entry.apiVersion)
		if err != nil {
			panic(err)
		}
		all = append(all, subject{gv.WithKind(entry.kind), entry.strategy})
	}
	return all
}

// decode decodes an object like the API server, but sets no defaults.
func (s subject) decode(input tree) (runtime.Object, error) {
	data, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	object, err := scheme.New(s.gvk)
	if err != nil {
		return nil, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, object); err != nil {
		return nil, err
	}
	return object, nil
}

// encode returns the form of an object that policies read.
func (s subject) encode(object runtime.Object) (tree, error) {
	object.GetObjectKind().SetGroupVersionKind(s.gvk)
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}

func (s subject) internal(object runtime.Object) (runtime.Object, error) {
	return scheme.UnsafeConvertToVersion(object, schema.GroupVersion{Group: s.gvk.Group, Version: runtime.APIVersionInternal})
}

// external converts an object from the storage version to the subject's version.
func (s subject) external(object runtime.Object) (tree, error) {
	out, err := scheme.New(s.gvk)
	if err != nil {
		return nil, err
	}
	if err := scheme.Convert(object, out, nil); err != nil {
		return nil, err
	}
	return s.encode(out)
}

// plain decodes the input into its Go type and encodes it again. It sets no defaults.
func (s subject) plain(input tree) (tree, error) {
	object, err := s.decode(input)
	if err != nil {
		return nil, err
	}
	return s.encode(object)
}

// recovered converts a panic of the caller to an error. The caller must defer it.
func recovered(err *error) {
	if broken := recover(); broken != nil {
		*err = fmt.Errorf("panic: %v", broken)
	}
}

// stored decodes the input, sets defaults, and converts the object to the storage version.
func (s subject) stored(input tree) (result runtime.Object, err error) {
	defer recovered(&err)
	object, err := s.decode(input)
	if err != nil {
		return nil, err
	}
	scheme.Default(object)
	return s.internal(object)
}

// defaulted decodes the input and sets defaults.
func (s subject) defaulted(input tree) (tree, error) {
	object, err := s.stored(input)
	if err != nil {
		return nil, err
	}
	return s.external(object)
}

func (s subject) context() context.Context {
	ctx := request.WithNamespace(context.Background(), metav1.NamespaceAll)
	if s.strategy.NamespaceScoped() {
		ctx = request.WithNamespace(ctx, "default")
	}
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: s.gvk.Group, APIVersion: s.gvk.Version})
	return request.WithUser(ctx, &user.DefaultInfo{Name: "ann"})
}

// created returns the stored form of the input after its creation. It omits validation.
func (s subject) created(input tree) (tree, error) {
	return s.convert(input, s)
}

// convert returns the stored form of the input in the version of other. other is a subject of the same kind.
func (s subject) convert(input tree, other subject) (result tree, err error) {
	defer recovered(&err)
	object, err := s.stored(input)
	if err != nil {
		return nil, err
	}
	s.strategy.PrepareForCreate(s.context(), object)
	s.strategy.Canonicalize(object)
	return other.external(object)
}

// updated returns the stored form of the input after an update of old.
func (s subject) updated(input, old tree) (result tree, err error) {
	defer recovered(&err)
	strategy, ok := s.strategy.(rest.RESTUpdateStrategy)
	if !ok {
		return nil, fmt.Errorf("the kind has no strategy for updates")
	}
	object, err := s.stored(input)
	if err != nil {
		return nil, err
	}
	before, err := s.stored(old)
	if err != nil {
		return nil, err
	}
	ours, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	theirs, err := meta.Accessor(before)
	if err != nil {
		return nil, err
	}
	ours.SetGeneration(theirs.GetGeneration())
	strategy.PrepareForUpdate(s.context(), object, before)
	strategy.Canonicalize(object)
	return s.external(object)
}

// others returns the subjects for the other versions of the kind.
func (s subject) others() []subject {
	var others []subject
	for _, other := range subjects() {
		same := other.gvk.Group == s.gvk.Group || isEvent(other.gvk) && isEvent(s.gvk)
		if other.gvk.Kind == s.gvk.Kind && same && other.gvk != s.gvk {
			others = append(others, other)
		}
	}
	return others
}

func isEvent(gvk schema.GroupVersionKind) bool {
	return gvk.Kind == "Event" && (gvk.Group == "" || gvk.Group == "events.k8s.io")
}

func (s subject) String() string {
	return strings.TrimPrefix(s.gvk.GroupVersion().String()+"/"+s.gvk.Kind, "/")
}
