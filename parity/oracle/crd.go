package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	crdcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"
)

// DefinitionLine is the result of `oracle crd compile` for a CustomResourceDefinition. It contains the API server's
// errors on creation.
type DefinitionLine struct {
	Line int `json:"line"`
	// Errors are the errors about validation rules, sorted.
	Errors []string `json:"errors"`
	// Others are all other errors, sorted.
	Others []string `json:"others"`
	// Costs are the estimated costs of the valid expressions, by path.
	Costs map[string]uint64 `json:"costs"`
	Error string            `json:"error,omitempty"`
	Panic *Panic            `json:"panic,omitempty"`
}

// ObjectsLine is the result of `oracle crd validate` for a schema and objects.
type ObjectsLine struct {
	Line int `json:"line"`
	// Outcomes are the results for each object. An object has several results if they depend on Go's map order.
	Outcomes [][]ObjectOutcome `json:"outcomes"`
	// Nanos is the mean time of validating an object in nanoseconds. It is unset if the time is not measured.
	Nanos float64 `json:"nanos,omitempty"`
	Error string  `json:"error,omitempty"`
	Panic *Panic  `json:"panic,omitempty"`
}

// ObjectOutcome is the result of a schema's rules for an object.
type ObjectOutcome struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
	// Cost is the total cost of all evaluations. It is unset if they were aborted.
	Cost  *int64 `json:"cost,omitempty"`
	Panic *Panic `json:"panic,omitempty"`
}

func cmdCRD(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	fs := flag.NewFlagSet("crd", flag.ContinueOnError)
	repeat := fs.Int("repeat", 0, "number of validations per object to measure the time")
	if err := parseFlags(fs, args[1:]); err != nil {
		return err
	}
	var answer func(n int, data []byte) any
	switch args[0] {
	case "compile":
		answer = func(n int, data []byte) any { return definitionLine(n, data) }
	case "validate":
		answer = func(n int, data []byte) any { return objectsLine(n, data, *repeat) }
	case "admit":
		answer = func(n int, data []byte) any { return admittedLine(n, data, *repeat) }
	default:
		return errUsage
	}
	for _, path := range fs.Args() {
		err := readCases(path, func(n int, data []byte) error { return writeLine(out, answer(n, data)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// selfType matches the name of the validated object's type. The name ends in a timestamp.
var selfType = regexp.MustCompile(`selfType[0-9]+`)

func ruleErrorText(err *field.Error) string {
	return selfType.ReplaceAllString(err.Error(), "selfType")
}

func definitionLine(n int, data []byte) DefinitionLine {
	line := DefinitionLine{Line: n, Errors: []string{}, Others: []string{}, Costs: map[string]uint64{}}
	var written apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(data, &written); err != nil {
		line.Error = err.Error()
		return line
	}
	line.Panic = guard(func() {
		apiextensionsv1.SetDefaults_CustomResourceDefinition(&written)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&written.Spec)
		var definition apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&written, &definition, nil); err != nil {
			line.Error = err.Error()
			return
		}
		for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), &definition) {
			isAboutRules := strings.Contains(err.Field, "x-kubernetes-validations[") ||
				strings.HasSuffix(err.Field, "x-kubernetes-validations") && err.Type == field.ErrorTypeInternal ||
				strings.HasPrefix(err.Detail, "x-kubernetes-validations estimated rule cost total")
			if isAboutRules {
				line.Errors = append(line.Errors, ruleErrorText(err))
			} else {
				line.Others = append(line.Others, ruleErrorText(err))
			}
		}
		slices.Sort(line.Errors)
		slices.Sort(line.Others)
		collectCosts(&definition, line.Costs)
	})
	return line
}

// collectCosts estimates the costs of all rules like upstream. It uses upstream's contexts for nested schemas.
func collectCosts(definition *apiextensions.CustomResourceDefinition, costs map[string]uint64) {
	of := func(schema *apiextensions.CustomResourceValidation, path *field.Path) {
		if schema == nil || schema.OpenAPIV3Schema == nil {
			return
		}
		if structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema); err != nil ||
			len(structuralschema.ValidateStructural(nil, structural)) > 0 {
			return
		}
		costsOf(schema.OpenAPIV3Schema, path.Child("openAPIV3Schema"), validation.RootCELContext(schema.OpenAPIV3Schema), costs)
	}
	spec := field.NewPath("spec")
	of(definition.Spec.Validation, spec.Child("validation"))
	for i, version := range definition.Spec.Versions {
		of(version.Schema, spec.Child("versions").Index(i).Child("schema"))
	}
}

func costsOf(schema *apiextensions.JSONSchemaProps, path *field.Path, ctx *validation.CELSchemaContext, costs map[string]uint64) {
	if schema == nil {
		return
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		values := schema.AdditionalProperties.Schema
		costsOf(values, path.Child("additionalProperties"), ctx.ChildAdditionalPropertiesContext(values), costs)
	}
	for name, property := range schema.Properties {
		costsOf(&property, path.Child("properties").Key(name), ctx.ChildPropertyContext(&property, name), costs)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		costsOf(schema.Items.Schema, path.Child("items"), ctx.ChildItemsContext(schema.Items.Schema), costs)
	}
	if len(schema.XValidations) == 0 {
		return
	}
	info, err := ctx.TypeInfo()
	if err != nil || info == nil {
		return
	}
	results, err := crdcel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit, ruleEnvSet(), crdcel.NewExpressionsEnvLoader())
	if err != nil {
		return
	}
	for i, result := range results {
		rule := path.Child("x-kubernetes-validations").Index(i)
		if result.Program != nil {
			cardinality := result.MaxCardinality
			if ctx.MaxCardinality != nil {
				cardinality = *ctx.MaxCardinality
			}
			costs[rule.Child("rule").String()] = product(result.MaxCost, cardinality)
		}
		if result.MessageExpression != nil {
			costs[rule.Child("messageExpression").String()] = result.MessageExpressionMaxCost
		}
	}
}

// product returns the product of a and b. It returns the maximum if the product overflows.
func product(a, b uint64) uint64 {
	if a != 0 && ^uint64(0)/a < b {
		return ^uint64(0)
	}
	return a * b
}

type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

func objectsLine(n int, data []byte, repeat int) ObjectsLine {
	line := ObjectsLine{Line: n, Outcomes: [][]ObjectOutcome{}}
	var group struct {
		Schema  apiextensionsv1.JSONSchemaProps `json:"schema"`
		Objects []struct {
			Object json.RawMessage `json:"object"`
			Old    json.RawMessage `json:"old"`
		} `json:"objects"`
	}
	if err := json.Unmarshal(data, &group); err != nil {
		line.Error = err.Error()
		return line
	}
	line.Panic = guard(func() {
		var schema apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&group.Schema, &schema, nil); err != nil {
			line.Error = err.Error()
			return
		}
		structural, err := structuralschema.NewStructural(&schema)
		if err != nil {
			line.Error = err.Error()
			return
		}
		validator := crdcel.NewValidator(structural, true, celconfig.PerCallLimit)
		var measured time.Duration
		for _, object := range group.Objects {
			var current, old any
			if err := utiljson.Unmarshal(object.Object, &current); err != nil {
				line.Error = err.Error()
				return
			}
			if len(object.Old) > 0 {
				if err := utiljson.Unmarshal(object.Old, &old); err != nil {
					line.Error = err.Error()
					return
				}
			}
			line.Outcomes = append(line.Outcomes, objectOutcomes(validator, structural, current, old))
			begin := time.Now()
			for range repeat {
				validate(validator, structural, current, old)
			}
			measured += time.Since(begin)
		}
		if repeat > 0 && len(group.Objects) > 0 {
			line.Nanos = float64(measured.Nanoseconds()) / float64(repeat*len(group.Objects))
		}
	})
	return line
}

// tries is the number of validations of an object. Several are necessary to detect nondeterministic results.
const tries = 24

func objectOutcomes(validator *crdcel.Validator, structural *structuralschema.Structural, object, old any) []ObjectOutcome {
	var outcomes []ObjectOutcome
	for range tries {
		outcome := objectOutcome(validator, structural, object, old)
		isKnown := slices.ContainsFunc(outcomes, func(known ObjectOutcome) bool { return reflect.DeepEqual(known, outcome) })
		if !isKnown {
			outcomes = append(outcomes, outcome)
		}
	}
	return outcomes
}

// validate evaluates the rules for an object. It returns the errors, the warnings and the remaining budget.
func validate(validator *crdcel.Validator, structural *structuralschema.Structural, object, old any) (field.ErrorList, *warnings, int64) {
	recorder := &warnings{}
	ctx := warning.WithWarningRecorder(context.Background(), recorder)
	var options []crdcel.Option
	if old != nil {
		correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: structural})
		options = append(options, crdcel.WithRatcheting(correlated))
	}
	errs, remaining := validator.Validate(ctx, nil, structural, object, old, celconfig.RuntimeCELCostBudget, options...)
	return errs, recorder, remaining
}

func objectOutcome(validator *crdcel.Validator, structural *structuralschema.Structural, object, old any) ObjectOutcome {
	outcome := ObjectOutcome{Errors: []string{}, Warnings: []string{}}
	outcome.Panic = guard(func() {
		errs, recorder, remaining := validate(validator, structural, object, old)
		for _, err := range errs {
			outcome.Errors = append(outcome.Errors, ruleErrorText(err))
		}
		for _, text := range recorder.texts {
			outcome.Warnings = append(outcome.Warnings, selfType.ReplaceAllString(text, "selfType"))
		}
		slices.Sort(outcome.Errors)
		slices.Sort(outcome.Warnings)
		if remaining >= 0 {
			cost := celconfig.RuntimeCELCostBudget - remaining
			outcome.Cost = &cost
		}
	})
	return outcome
}
