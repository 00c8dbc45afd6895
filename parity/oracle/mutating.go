//go:build !(k130 || k131 || k132 || k133 || k134 || k135)

package main

import (
	"encoding/json"
	"strings"

	"github.com/google/cel-go/cel"

	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// mutatingPolicy is the type of mutating policies.
type mutatingPolicy = v1.MutatingAdmissionPolicy

// loadPoliciesOfEitherSort reads all ValidatingAdmissionPolicies and MutatingAdmissionPolicies in the files and
// directories, in order.
func loadPoliciesOfEitherSort(paths []string) ([]PolicyDoc, error) {
	var docs []PolicyDoc
	for _, path := range paths {
		err := eachDocument(path, func(file string, index int, raw []byte) error {
			doc := PolicyDoc{File: file, Index: index}
			if doc.Policy, doc.Err = parsePolicy(raw); doc.Policy == nil && doc.Err == nil {
				doc.Mutating, doc.Err = parseMutatingPolicy(raw)
			}
			if doc.Policy != nil || doc.Mutating != nil || doc.Err != nil {
				docs = append(docs, doc)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// parseMutatingPolicy decodes a mutating policy as v1. It returns nil for a document of a different kind.
func parseMutatingPolicy(raw []byte) (*v1.MutatingAdmissionPolicy, error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	if head.Kind != "MutatingAdmissionPolicy" || !strings.HasPrefix(head.APIVersion, policyGroup) {
		return nil, nil
	}
	// All versions have the same fields, so this converts older versions.
	policy := &v1.MutatingAdmissionPolicy{}
	if err := json.Unmarshal(raw, policy); err != nil {
		return nil, err
	}
	return policy, nil
}

// compileMutating compiles the expressions of a mutating policy like the API server's validation (mode new) or the
// admission plugin (mode stored).
func compileMutating(doc PolicyDoc, mode string) ([]CompiledExpression, error) {
	spec := doc.Mutating.Spec
	composed, err := plugincel.NewCompositedCompiler(baseEnvSet())
	if err != nil {
		return nil, err
	}
	var matchCompiler plugincel.Compiler = composed
	envType := environment.StoredExpressions
	if mode == modeNew {
		envType = environment.NewExpressions
		matchCompiler = plugincel.NewCompiler(baseEnvSet())
	}
	hasParams := spec.ParamKind != nil
	options := plugincel.OptionalVariableDeclarations{HasParams: hasParams, HasAuthorizer: true}
	ofMutations := options
	ofMutations.HasPatchTypes = true
	estimator, err := newCostCompiler(hasParams)
	if err != nil {
		return nil, err
	}
	// The environment for estimating the costs of mutations also contains the declarations for mutations.
	mutationEstimator, err := newCostCompiler(hasParams,
		common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), cel.Lib(jsonPatchLibrary{}))
	if err != nil {
		return nil, err
	}

	var results []CompiledExpression
	record := func(path *field.Path, result plugincel.CompilationResult, cost *CostEstimate) {
		compiled := CompiledExpression{FieldRef: path.String(), OK: result.Error == nil}
		if result.Error != nil {
			compiled.ErrorType = string(result.Error.Type)
			compiled.Error = result.Error.Detail
		} else {
			compiled.OutputType = result.OutputType.String()
			compiled.Cost = cost
		}
		results = append(results, compiled)
	}
	expression := func(path *field.Path, compiler plugincel.Compiler, accessor plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations, estimator *costCompiler) {
		if mode == modeNew && strings.TrimSpace(accessor.GetExpression()) == "" {
			results = append(results, CompiledExpression{
				FieldRef:  path.String(),
				ErrorType: string(apiservercel.ErrorTypeRequired),
				Error:     "expression is not specified",
			})
			return
		}
		record(path, compiler.CompileCELExpression(accessor, options, envType), estimator.estimate(accessor, envType))
	}
	trimmed := func(s string) string {
		if mode == modeNew {
			return strings.TrimSpace(s)
		}
		return s
	}
	matchConditions := func() {
		for i, c := range spec.MatchConditions {
			expression(field.NewPath("spec", "matchConditions").Index(i).Child("expression"), matchCompiler,
				&matchconditions.MatchCondition{Name: c.Name, Expression: trimmed(c.Expression)}, options, estimator)
		}
	}
	if mode == modeNew {
		matchConditions()
	}
	for i, v := range spec.Variables {
		accessor := &validating.Variable{Name: v.Name, Expression: v.Expression}
		path := field.NewPath("spec", "variables").Index(i).Child("expression")
		mutationEstimator.estimateVariable(accessor, envType)
		record(path, composed.CompileAndStoreVariable(accessor, options, envType), estimator.estimateVariable(accessor, envType))
	}
	if mode == modeStored {
		matchConditions()
	}
	for i, m := range spec.Mutations {
		path := field.NewPath("spec", "mutations").Index(i)
		switch {
		case m.PatchType == v1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			expression(path.Child("applyConfiguration", "expression"), composed,
				&patch.ApplyConfigurationCondition{Expression: trimmed(m.ApplyConfiguration.Expression)}, ofMutations, mutationEstimator)
		case m.PatchType == v1.PatchTypeJSONPatch && m.JSONPatch != nil:
			expression(path.Child("jsonPatch", "expression"), composed,
				&patch.JSONPatchCondition{Expression: trimmed(m.JSONPatch.Expression)}, ofMutations, mutationEstimator)
		}
	}
	return results, nil
}

// jsonPatchLibrary is the library that upstream adds for mutations.
type jsonPatchLibrary struct{}

func (jsonPatchLibrary) CompileOptions() []cel.EnvOption {
	return []cel.EnvOption{library.JSONPatch()}
}

func (jsonPatchLibrary) ProgramOptions() []cel.ProgramOption { return nil }
