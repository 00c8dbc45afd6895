//go:build !(k130 || k131 || k132 || k133 || k134 || k135)

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"
)

// mutateCase is a request for a custom resource, and its policies in the order of their application. If CRD is unset,
// the object is of a built-in kind.
type mutateCase struct {
	CRD     json.RawMessage `json:"crd"`
	Version string          `json:"version"`
	// Group and Resource are those of the request. The default of Group is the group of the object's kind.
	Group       string            `json:"group"`
	Resource    string            `json:"resource"`
	Subresource string            `json:"subresource"`
	UserInfo    *UserInfo         `json:"userInfo"`
	Operation   string            `json:"operation"`
	Object      json.RawMessage   `json:"object"`
	Old         json.RawMessage   `json:"old"`
	Namespace   *corev1.Namespace `json:"namespace"`
	Policies    []struct {
		Policy   v1.MutatingAdmissionPolicy          `json:"policy"`
		Bindings []v1.MutatingAdmissionPolicyBinding `json:"bindings"`
		Params   []map[string]any                    `json:"params"`
	} `json:"policies"`
}

// customInterfaces implements admission.ObjectInterfaces for a custom resource. It sets the defaults of the schema.
type customInterfaces struct {
	objectInterfaces
	structural *structuralschema.Structural
}

func (c *customInterfaces) GetObjectCreater() runtime.ObjectCreater {
	return unstructuredscheme.NewUnstructuredCreator()
}
func (c *customInterfaces) GetObjectTyper() runtime.ObjectTyper {
	return unstructuredscheme.NewUnstructuredObjectTyper()
}
func (c *customInterfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return c }

// Default implements runtime.ObjectDefaulter.
func (c *customInterfaces) Default(in runtime.Object) {
	if u, ok := in.(*unstructured.Unstructured); ok {
		structuraldefaulting.Default(u.UnstructuredContent(), c.structural)
	}
}

// typedInterfaces implements admission.ObjectInterfaces for built-in objects. It sets no defaults.
type typedInterfaces struct{ objectInterfaces }

func (t *typedInterfaces) GetObjectCreater() runtime.ObjectCreater     { return scheme.Scheme }
func (t *typedInterfaces) GetObjectTyper() runtime.ObjectTyper         { return scheme.Scheme }
func (t *typedInterfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return scheme.Scheme }
func (t *typedInterfaces) GetObjectConvertor() runtime.ObjectConvertor { return scheme.Scheme }

// mutatedKind is the type information about the request's object.
type mutatedKind struct {
	converter managedfields.TypeConverter
	// structural is the schema of a custom resource. It is nil for other objects.
	structural *structuralschema.Structural
}

func (k *mutatedKind) interfaces(equivalents runtime.EquivalentResourceMapper) admission.ObjectInterfaces {
	base := objectInterfaces{equivalents: equivalents}
	if k.structural == nil {
		return &typedInterfaces{base}
	}
	return &customInterfaces{objectInterfaces: base, structural: k.structural}
}

func (k *mutatedKind) read(data []byte) (runtime.Object, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	if k.structural != nil {
		return u, nil
	}
	object, err := decodeObject(content, "typed")
	if err == nil {
		object.GetObjectKind().SetGroupVersionKind(u.GroupVersionKind())
	}
	return object, err
}

func kindOf(converters *converters, c *mutateCase) (*mutatedKind, error) {
	if len(c.CRD) > 0 {
		converter, err := converters.get(c.Version+string(c.CRD), func() ([]byte, error) { return publishedDocument(c.CRD, c.Version) })
		if err != nil {
			return nil, err
		}
		structural, err := structuralOf(c.CRD, c.Version)
		return &mutatedKind{converter, structural}, err
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(c.Object); err != nil {
		return nil, err
	}
	name := documentName(object.GroupVersionKind().GroupVersion())
	converter, err := converters.get(name, func() ([]byte, error) { return os.ReadFile(filepath.Join(converters.openapi, name)) })
	return &mutatedKind{converter: converter}, err
}

// oneConverter is a patch.TypeConverterManager for a single document.
type oneConverter struct {
	gv        schema.GroupVersion
	converter managedfields.TypeConverter
}

func (o oneConverter) GetTypeConverter(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	if gvk.GroupVersion() != o.gv {
		return nil
	}
	return o.converter
}

func (o oneConverter) Run(context.Context) {}

// mutatingEvaluator compiles a policy like the admission plugin.
//
// Source: k8s.io/apiserver pkg/admission/plugin/policy/mutating/compilation.go, compilePolicy, which is not exported.
func mutatingEvaluator(policy *v1.MutatingAdmissionPolicy) (mutating.PolicyEvaluator, error) {
	options := plugincel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	compiler, err := plugincel.NewCompositedCompiler(baseEnvSet())
	if err != nil {
		return mutating.PolicyEvaluator{}, err
	}
	for _, variable := range policy.Spec.Variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: variable.Name, Expression: variable.Expression}, options, environment.StoredExpressions)
	}
	evaluator := mutating.PolicyEvaluator{CompositedCompiler: compiler}
	var conditions []plugincel.ExpressionAccessor
	for i := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	if len(conditions) > 0 {
		compiled := compiler.CompileCondition(conditions, options, environment.StoredExpressions)
		evaluator.Matcher = matchconditions.NewMatcher(compiled, policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	}
	options.HasPatchTypes = true
	for _, m := range policy.Spec.Mutations {
		switch {
		case m.PatchType == v1.PatchTypeJSONPatch && m.JSONPatch != nil:
			accessor := &patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}
			evaluator.Mutators = append(evaluator.Mutators, patch.NewJSONPatcher(compiler.CompileMutatingEvaluator(accessor, options, environment.StoredExpressions)))
		case m.PatchType == v1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			accessor := &patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}
			evaluator.Mutators = append(evaluator.Mutators, patch.NewApplyConfigurationPatcher(compiler.CompileMutatingEvaluator(accessor, options, environment.StoredExpressions)))
		}
	}
	return evaluator, nil
}

func structuralOf(data []byte, version string) (*structuralschema.Structural, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(data, &crd); err != nil {
		return nil, err
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == version && v.Schema != nil {
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				return nil, err
			}
			return structuralschema.NewStructural(&internal)
		}
	}
	return nil, errors.New("no such version")
}

func mutateAdmitLine(converters *converters, n int, data []byte) MutateLine {
	line := MutateLine{Line: n}
	failed := func(err error) MutateLine {
		line.Error = err.Error()
		return line
	}
	var c mutateCase
	if err := json.Unmarshal(data, &c); err != nil {
		return failed(err)
	}
	kind, err := kindOf(converters, &c)
	if err != nil {
		return failed(err)
	}
	var hooks []mutating.PolicyHook
	for i := range c.Policies {
		given := &c.Policies[i]
		evaluator, err := mutatingEvaluator(&given.Policy)
		if err != nil {
			return failed(err)
		}
		hook := mutating.PolicyHook{Policy: &given.Policy, Evaluator: evaluator}
		for j := range given.Bindings {
			hook.Bindings = append(hook.Bindings, &given.Bindings[j])
		}
		if given.Policy.Spec.ParamKind != nil {
			var params []runtime.Object
			for _, param := range given.Params {
				params = append(params, &unstructured.Unstructured{Object: param})
			}
			hook.ParamInformer = newParamInformer(params)
			hook.ParamScope = meta.RESTScopeNamespace
		}
		hooks = append(hooks, hook)
	}
	namespaces := namespaceLister{c.Namespace}
	matcher := matching.NewMatcher(namespaces, namespaces.client())
	line.Panic = guard(func() {
		for range 40 {
			result, text, err := mutateOnce(&c, hooks, matcher, kind)
			if err != nil {
				line.Error = err.Error()
				return
			}
			if text == "" {
				line.Result = result
				return
			}
			if !contains(line.Errors, text) {
				line.Errors = append(line.Errors, text)
			}
		}
	})
	return line
}

func contains(texts []string, text string) bool {
	for _, known := range texts {
		if known == text {
			return true
		}
	}
	return false
}

func mutateOnce(c *mutateCase, hooks []mutating.PolicyHook, matcher *matching.Matcher, kind *mutatedKind) (result, refusal string, err error) {
	object, err := kind.read(c.Object)
	if err != nil {
		return "", "", err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", "", err
	}
	var old runtime.Object
	if len(c.Old) > 0 {
		if old, err = kind.read(c.Old); err != nil {
			return "", "", err
		}
	}
	gvk := object.GetObjectKind().GroupVersionKind()
	gvr := gvk.GroupVersion().WithResource(c.Resource)
	if c.Group != "" {
		gvr = schema.GroupVersionResource{Group: c.Group, Version: c.Version, Resource: c.Resource}
	}
	operation := admission.Operation(c.Operation)
	var options runtime.Object = &metav1.CreateOptions{}
	if operation == admission.Update {
		options = &metav1.UpdateOptions{}
	}
	attributes := admission.NewAttributesRecord(object, old, gvk, accessor.GetNamespace(), accessor.GetName(), gvr, c.Subresource, operation, options, false, c.UserInfo.user())
	registry := runtime.NewEquivalentResourceRegistry()
	registry.RegisterKindFor(gvr, c.Subresource, gvk)
	interfaces := kind.interfaces(registry)
	dispatcher := mutating.NewDispatcher(fakeAuthorizer{}, matcher, oneConverter{gvk.GroupVersion(), kind.converter})
	err = dispatcher.Dispatch(context.Background(), attributes, interfaces, hooks)
	if again := attributes.GetReinvocationContext(); err == nil && again.ShouldReinvoke() {
		again.SetIsReinvoke()
		err = dispatcher.Dispatch(context.Background(), attributes, interfaces, hooks)
	}
	if err != nil && !reflect.ValueOf(err).IsNil() {
		var status apierrors.APIStatus
		answer := Status{Message: err.Error()}
		if errors.As(err, &status) {
			s := status.Status()
			answer = Status{Code: s.Code, Reason: string(s.Reason), Message: s.Message}
		}
		data, err := utiljson.Marshal(answer)
		return "", string(data), err
	}
	data, err := json.Marshal(object)
	return string(data), "", err
}
