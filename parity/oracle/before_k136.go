//go:build k130 || k131 || k132 || k133 || k134 || k135

package main

import (
	"errors"
	"io"

	"github.com/google/cel-go/cel"
	v1 "k8s.io/api/admissionregistration/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

func newTypeCheckingCompiler(envSet *environment.EnvSet) (*plugincel.CompositedCompiler, error) {
	env, err := plugincel.NewCompositionEnv(plugincel.VariablesTypeName, envSet)
	if err != nil {
		return nil, err
	}
	return &plugincel.CompositedCompiler{CompositionEnv: env}, nil
}

// newValidator returns upstream's validator. These versions return errors of the compiler earlier, so the last
// argument is always nil.
func newValidator(validations conditionEvaluator, matcher matchconditions.Matcher, auditAnnotations, messages conditionEvaluator, failurePolicy *v1.FailurePolicyType, _ error) validating.Validator {
	return validating.NewValidator(validations, matcher, auditAnnotations, messages, failurePolicy)
}

// compositedEnv returns the environment in which compiler compiles expressions.
func compositedEnv(compiler *plugincel.CompositedCompiler, envType environment.Type) (*cel.Env, error) {
	return compiler.CompositionEnv.Env(envType)
}

var errNoMutations = errors.New("not available: Kubernetes has mutating policies in v1 since 1.36")

type mutatingPolicy struct{ Name string }

// loadPoliciesOfEitherSort reads all ValidatingAdmissionPolicies. It skips mutating policies.
func loadPoliciesOfEitherSort(paths []string) ([]PolicyDoc, error) { return LoadPolicies(paths) }

func compileMutating(PolicyDoc, string) ([]CompiledExpression, error) { return nil, errNoMutations }

// AdmittedLine is the result of `oracle crd admit`.
type AdmittedLine struct {
	Line  int    `json:"line"`
	Error string `json:"error"`
}

func admittedLine(n int, _ []byte, _ int) AdmittedLine {
	return AdmittedLine{n, "not available before Kubernetes 1.36"}
}

func cmdMutate([]string, io.Writer) error { return errNoMutations }
