//go:build k132 || k133 || k134

package main

import (
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// mustBaseEnvSet returns the base environment of policies. The feature gate StrictCostEnforcementForVAP is enabled.
func mustBaseEnvSet(v *version.Version) *environment.EnvSet {
	return environment.MustBaseEnvSet(v, true)
}

// ruleEnvSet returns the base environment of validation rules.
var ruleEnvSet = baseEnvSet

// declarations returns the declarations with the API server's settings.
func declarations(d plugincel.OptionalVariableDeclarations) plugincel.OptionalVariableDeclarations {
	d.StrictCost = true
	return d
}
