//go:build !(k130 || k131)

package main

import (
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type conditionEvaluator = plugincel.ConditionEvaluator

func compileCondition(compiler *plugincel.CompositedCompiler, expressions []plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations) conditionEvaluator {
	return compiler.CompileCondition(expressions, options, environment.StoredExpressions)
}
