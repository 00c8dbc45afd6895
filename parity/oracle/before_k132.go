//go:build k130 || k131

package main

import (
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type conditionEvaluator = plugincel.Filter

func compileCondition(compiler *plugincel.CompositedCompiler, expressions []plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations) conditionEvaluator {
	return compiler.Compile(expressions, options, environment.StoredExpressions)
}

// mustBaseEnvSet returns the base environment of policies. The feature gate StrictCostEnforcementForVAP is disabled.
func mustBaseEnvSet(v *version.Version) *environment.EnvSet {
	return environment.MustBaseEnvSet(v, false)
}

// ruleEnvSet returns the base environment of validation rules, which have strict costs in all versions.
func ruleEnvSet() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion(), true)
}

// declarations returns the declarations with the API server's settings.
func declarations(d plugincel.OptionalVariableDeclarations) plugincel.OptionalVariableDeclarations {
	return d
}
