package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// field is a field of a Go struct in JSON. The values of omit are 0 for a field that is always encoded, 1 for omitempty,
// and 2 for omitzero. text is the type in Go's errors. For a field of an embedded struct, the name of the struct precedes
// the type.
type field struct {
	name string
	typ  string
	omit int
	text string
	// enum contains the valid constants for a string.
	enum []string
}

// structs contains the Go types of objects. The type of a scalar is a letter. The type of a container is a sigil and
// the type of the content. The sigil is * for a pointer, [ for a list, { for a map, and # for a struct.
type structs struct {
	index  map[reflect.Type]int
	fields [][]field
	names  []string
}

var scalars = map[reflect.Type]string{
	reflect.TypeOf(resource.Quantity{}):    "q",
	reflect.TypeOf(metav1.Time{}):          "t",
	reflect.TypeOf(metav1.MicroTime{}):     "u",
	reflect.TypeOf(metav1.Duration{}):      "d",
	reflect.TypeOf(intstr.IntOrString{}):   "o",
	reflect.TypeOf(runtime.RawExtension{}): "r",
	reflect.TypeOf(metav1.FieldsV1{}):      "r",
}

var marshaler = reflect.TypeFor[json.Marshaler]()

func (s *structs) typeOf(t reflect.Type) string {
	if code, ok := scalars[t]; ok {
		return code
	}
	// Policies read the JSON of these types, such as JSONSchemaPropsOrBool.
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(marshaler) {
		return "r"
	}
	switch t.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint8:
		return "i"
	case reflect.Float32, reflect.Float64:
		return "f"
	case reflect.Pointer:
		return "*" + s.typeOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		return "[" + s.typeOf(t.Elem())
	case reflect.Map:
		return "{" + s.typeOf(t.Elem())
	case reflect.Struct:
		return fmt.Sprintf("#%d", s.structOf(t))
	default:
		panic(fmt.Sprintf("no code for %v", t))
	}
}

func (s *structs) structOf(t reflect.Type) int {
	if n, ok := s.index[t]; ok {
		return n
	}
	n := len(s.fields)
	s.index[t] = n
	s.fields = append(s.fields, nil)
	s.names = append(s.names, t.PkgPath()+"."+t.Name())
	s.fields[n] = s.fieldsOf(t)
	return n
}

func (s *structs) fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		member := t.Field(i)
		tag := strings.Split(member.Tag.Get("json"), ",")
		if tag[0] == "-" {
			continue
		}
		if tag[0] == "" && member.Anonymous {
			inner := member.Type
			if inner.Kind() == reflect.Pointer {
				panic("an embedded pointer is not supported")
			}
			for _, f := range s.fieldsOf(inner) {
				f.text = member.Name + "|" + f.text
				fields = append(fields, f)
			}
			continue
		}
		name := tag[0]
		if name == "" {
			name = member.Name
		}
		omit := 0
		for _, word := range tag[1:] {
			switch word {
			case "omitempty":
				omit = max(omit, 1)
			case "omitzero":
				omit = 2
			}
		}
		fields = append(fields, field{name, s.typeOf(member.Type), omit, member.Type.String(), enumsOf(t, name)})
	}
	return fields
}

// kindType is a kind and its struct.
type kindType struct {
	gvk schema.GroupVersionKind
	typ reflect.Type
}

// otherKinds returns the kinds of the API server's objects without a strategy in covered, sorted.
func otherKinds() []kindType {
	covered := map[schema.GroupVersionKind]bool{}
	for _, subject := range subjects() {
		covered[subject.gvk] = true
	}
	all := []kindType{
		{apiextensions.SchemeGroupVersion.WithKind("CustomResourceDefinition"), reflect.TypeFor[apiextensions.CustomResourceDefinition]()},
		{apiregistration.SchemeGroupVersion.WithKind("APIService"), reflect.TypeFor[apiregistration.APIService]()},
	}
	for gvk, typ := range scheme.AllKnownTypes() {
		isObject := strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") && !strings.HasSuffix(gvk.Kind, "List")
		if isObject && gvk.Version != runtime.APIVersionInternal && !covered[gvk] {
			all = append(all, kindType{gvk, typ})
		}
	}
	slices.SortFunc(all, func(a, b kindType) int { return cmp.Compare(a.gvk.String(), b.gvk.String()) })
	return all
}
