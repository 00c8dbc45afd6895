//go:build !(k130 || k131 || k132 || k133 || k134)

package main

import (
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// mustBaseEnvSet returns the base environment of policies.
var mustBaseEnvSet = environment.MustBaseEnvSet

// ruleEnvSet returns the base environment of validation rules.
var ruleEnvSet = baseEnvSet

// declarations returns the declarations with the API server's settings.
func declarations(d plugincel.OptionalVariableDeclarations) plugincel.OptionalVariableDeclarations {
	return d
}
