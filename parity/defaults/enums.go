package main

import (
	"fmt"
	"reflect"

	openapiutil "k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

var definitions = openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef(path) })

// more contains additional values for the fields with these names. The values affect defaults, but upstream does not
// declare them as constants of a type.
var more = map[string][]string{
	"kind": {"ServiceAccount", "User", "Group"},
	"type": {"Container", "Pod", "Exempt", "Limited", "Recreate", "RollingUpdate", "OnDelete"},
}

// enumsOf returns the valid strings for a field of a type. They come from upstream's OpenAPI definitions and from more.
func enumsOf(t reflect.Type, name string) []string {
	values := append([]string(nil), more[name]...)
	for _, key := range []string{t.PkgPath() + "." + t.Name(), modelName(t)} {
		definition, ok := definitions[key]
		if !ok {
			continue
		}
		for _, value := range definition.Schema.Properties[name].Enum {
			values = append(values, fmt.Sprint(value))
		}
	}
	return values
}

func modelName(t reflect.Type) string {
	if named, ok := reflect.New(t).Interface().(openapiutil.OpenAPIModelNamer); ok {
		return named.OpenAPIModelName()
	}
	return ""
}
