package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"
)

// random generates objects of a kind. Few fields of an object are set.
type random struct {
	*rand.Rand
	structs *structs
}

func pick[T any](r *random, values ...T) T { return values[r.IntN(len(values))] }

func (r *random) object(n, depth int) tree {
	fields := r.structs.fields[n]
	result := tree{}
	share := 2.5 / float64(len(fields)+1)
	if len(fields) <= 6 || depth <= 1 {
		share = 0.5
	}
	for _, f := range fields {
		needed := f.name == "spec" || f.name == "template" || f.name == "containers" || f.name == "metadata"
		if f.name == "apiVersion" && depth == 0 || f.name == "kind" && depth == 0 || f.name == "managedFields" {
			continue
		}
		if r.Float64() > share && !(needed && r.IntN(10) > 0) {
			continue
		}
		if value, ok := r.value(f, f.typ, depth+1); ok {
			result[f.name] = value
		}
	}
	if r.IntN(40) == 0 {
		result["unknownField"] = pick[any](r, "x", tree{"a": "b"}, nil)
	}
	return result
}

func (r *random) value(f field, typ string, depth int) (any, bool) {
	if r.IntN(40) == 0 {
		return nil, true
	}
	switch typ[0] {
	case '*':
		return r.value(f, typ[1:], depth)
	case '[':
		list := []any{}
		for range pick(r, 0, 1, 1, 1, 2, 2, 3) {
			if value, ok := r.value(f, typ[1:], depth); ok && (value != nil || typ[1] != '#') {
				list = append(list, value)
			}
		}
		return list, true
	case '{':
		entries := tree{}
		for range pick(r, 0, 1, 1, 2) {
			if value, ok := r.value(f, typ[1:], depth); ok && value != nil {
				entries[pick(r, "cpu", "memory", "example.com/a", "b", "ephemeral-storage")] = value
			}
		}
		return entries, true
	case '#':
		if depth > 14 {
			return nil, false
		}
		var n int
		fmt.Sscanf(typ, "#%d", &n)
		return r.object(n, depth), true
	case 's':
		if f.name == "image" || f.name == "reference" {
			return pick(r, "a", "a:latest", "a:1", "r.example.com/a/b:2", "r.example.com:5000/a", "a@sha256:"+strings.Repeat("0", 64),
				"a:latest@sha256:"+strings.Repeat("0", 64), "", "A B", "r.example.com:5000/a:latest", "library/a:"), true
		}
		if len(f.enum) > 0 && r.IntN(5) > 0 {
			return f.enum[r.IntN(len(f.enum))], true
		}
		return pick(r, "a", "b", "web", "", "x y"), true
	case 'b':
		return r.IntN(2) == 0, true
	case 'i':
		return pick[int64](r, 0, 1, 2, 80, 443, 7), true
	case 'f':
		return pick(r, 0.5, 1, 0), true
	case 'o':
		return pick[any](r, int64(0), int64(3), "a", "25%", "80"), true
	case 'q':
		return pick[any](r, "1", "1000m", "0.5", "1Gi", "1024Mi", "1500m", "100u", "1e3", "0", "1.5Gi", int64(2), "2k", "12345678n"), true
	case 't':
		return pick(r, "2024-05-06T07:08:09Z", "2024-05-06T07:08:09+02:00"), true
	case 'u':
		return pick(r, "2024-05-06T07:08:09.123456Z", "2024-05-06T07:08:09.000000+02:00"), true
	case 'd':
		return pick(r, "1h0m0s", "90s"), true
	case 'y':
		return pick(r, "eGE=", "YQ==", ""), true
	case 'r':
		return tree{"a": "b", "c": []any{int64(1), nil}}, true
	}
	return nil, false
}

type example struct {
	ApiVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Object     tree   `json:"object"`
	Defaulted  tree   `json:"defaulted"`
	Created    tree   `json:"created"`
	// Converted is the created object in the other versions of the kind.
	Converted map[string]tree `json:"converted,omitempty"`
	// Old is the object before an update to Object. Updated is the result of the update.
	Old     tree `json:"old"`
	Updated tree `json:"updated"`
}

func cases(out *json.Encoder, only string, seed uint64, count int) {
	s := &structs{index: map[reflect.Type]int{}}
	for k, subject := range subjects() {
		object, _ := scheme.New(subject.gvk)
		root := s.structOf(reflect.TypeOf(object).Elem())
		if !strings.Contains(subject.String(), only) {
			continue
		}
		r := &random{rand.New(rand.NewPCG(seed, uint64(k))), s}
		one := func() tree {
			input := r.object(root, 0)
			input["apiVersion"], input["kind"] = subject.gvk.GroupVersion().String(), subject.gvk.Kind
			// The API server generates the name earlier, so the object has one.
			metadata, ok := input["metadata"].(tree)
			if !ok {
				metadata = tree{}
				input["metadata"] = metadata
			}
			metadata["name"] = pick(r, "a", "web")
			return input
		}
		for made, tried := 0, 0; made < count && tried < 20*count; tried++ {
			input, old := one(), one()
			e := example{ApiVersion: subject.gvk.GroupVersion().String(), Kind: subject.gvk.Kind, Object: input}
			var err error
			if e.Defaulted, err = subject.defaulted(input); err != nil {
				continue
			}
			if e.Created, err = subject.created(input); err != nil {
				continue
			}
			for _, other := range subject.others() {
				if converted, err := subject.convert(input, other); err == nil {
					if e.Converted == nil {
						e.Converted = map[string]tree{}
					}
					e.Converted[other.gvk.GroupVersion().String()] = converted
				}
			}
			if r.IntN(3) == 0 {
				// Old is mostly equal to the input, because the API server compares fields of both.
				data, _ := json.Marshal(input)
				old = nil
				_ = json.Unmarshal(data, &old)
				if r.IntN(2) == 0 {
					old["metadata"] = tree{"name": "a", "generation": int64(3)}
				}
			}
			if e.Old, err = subject.defaulted(old); err == nil {
				if e.Updated, err = subject.updated(input, old); err != nil {
					e.Old = nil
				}
			}
			made++
			if err := out.Encode(e); err != nil {
				panic(err)
			}
		}
	}
}

// replay reads objects with the results of another version of Kubernetes, and counts the differences of this version by
// kind, stage and path. Before the comparison, it drops the fields that this version does not have.
func replay(in *json.Decoder, out io.Writer) {
	all := map[string]subject{}
	for _, subject := range subjects() {
		all[subject.String()] = subject
	}
	counts, compared := map[string]int{}, 0
	for {
		var e example
		if err := in.Decode(&e); err != nil {
			break
		}
		subject, ok := all[e.ApiVersion+"/"+e.Kind]
		if !ok {
			continue
		}
		for stage, theirs := range map[string]tree{"defaulted": e.Defaulted, "created": e.Created} {
			run := subject.defaulted
			if stage == "created" {
				run = subject.created
			}
			ours, err := run(e.Object)
			if err != nil {
				counts[fmt.Sprintf("%s %s error", subject, stage)]++
				continue
			}
			if theirs, err = subject.plain(theirs); err != nil {
				panic(err)
			}
			compared++
			paths := map[string]bool{}
			differences(normal(theirs), normal(ours), "", paths)
			for path := range paths {
				counts[fmt.Sprintf("%s %s %s", subject, stage, path)]++
			}
		}
	}
	var lines []string
	for what, n := range counts {
		lines = append(lines, fmt.Sprintf("%s: %d", what, n))
	}
	sort.Strings(lines)
	fmt.Fprintf(out, "%d results compared with Kubernetes %s\n%s\n", compared, version(), strings.Join(lines, "\n"))
}

// differences adds the paths at which two values differ. The items of a list share a path.
func differences(a, b any, path string, paths map[string]bool) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			for name := range a {
				differences(a[name], b[name], path+"."+name, paths)
			}
			for name := range b {
				if _, ok := a[name]; !ok {
					paths[path+"."+name] = true
				}
			}
			return
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			for i := range a {
				differences(a[i], b[i], path+"[]", paths)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		paths[path] = true
	}
}
