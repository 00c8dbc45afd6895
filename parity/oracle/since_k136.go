//go:build !(k130 || k131 || k132 || k133 || k134 || k135)

package main

import (
	"github.com/google/cel-go/cel"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"
)

var newTypeCheckingCompiler = plugincel.NewCompositedCompilerForTypeChecking

var newValidator = validating.NewValidator

// compositedEnv returns the environment in which compiler compiles expressions.
func compositedEnv(compiler *plugincel.CompositedCompiler, envType environment.Type) (*cel.Env, error) {
	return compiler.Env(envType)
}
