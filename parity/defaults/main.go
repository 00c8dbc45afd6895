// Command prepare determines how the API server changes an object before it evaluates a policy.
//
// `prepare table` prints the changes as rules in JSON. `prepare cases` prints random objects and the results of the
// changes. `prepare replay` reads such objects with the results of a different Kubernetes version, and prints how the
// results of this version differ.
package main

import (
	"compress/zlib"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
)

// depth is the maximum depth of sites.
const depth = 12

// kindTable describes a kind: its struct, and the rules for decoding and creating an object. Unknown and CreateUnknown
// are the fields that rules cannot describe.
type kindTable struct {
	Group         string `json:"group"`
	Version       string `json:"version"`
	Kind          string `json:"kind"`
	Root          int    `json:"root"`
	Namespaced    bool   `json:"namespaced"`
	Rules         []rule `json:"rules"`
	Unknown       []open `json:"unknown"`
	Create        []rule `json:"create"`
	CreateUnknown []open `json:"createUnknown"`
}

// typeTable names the struct of a kind without rules.
type typeTable struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Root    int    `json:"root"`
}

type table struct {
	Kubernetes string      `json:"kubernetes"`
	Structs    [][][]any   `json:"structs"`
	Kinds      []kindTable `json:"kinds"`
	Types      []typeTable `json:"types"`
}

// extra returns dependencies on fields of distant structs, by site. The fields are the labels of the template.
func extra(s subject) map[string][]dep {
	labels := samples(field{name: "labels", typ: "{s"})
	template := dep{Path: []string{"spec", "template", "metadata"}, Field: "labels", typ: "{s", vals: labels}
	switch s.gvk.Kind {
	case "ReplicationController":
		return map[string][]dep{"metadata": {template}, "spec": {template}}
	case "Job":
		return map[string][]dep{"metadata": {template}}
	}
	return nil
}

// beyond contains the fields without rules, by kind. Their defaults depend on sums over lists, or on labels whose keys
// are in other fields.
var beyond = map[string][]open{
	"PersistentVolumeClaim":   {{At: "spec", Field: "dataSource"}, {At: "spec", Field: "dataSourceRef"}},
	"HorizontalPodAutoscaler": {{At: "status", Field: "currentCPUUtilizationPercentage"}, {At: "status", Field: "currentMetrics"}},
	"Node":                    {{At: "status", Field: "allocatable", Empty: true}},
	"Pod": {
		{At: "spec", Field: "resources"},
		{At: "spec", Field: "schedulingGates"},
		{At: "spec.topologySpreadConstraints[]", Field: "matchLabelKeys"},
		{At: "spec.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution[]", Field: "matchLabelKeys"},
		{At: "spec.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution[]", Field: "mismatchLabelKeys"},
		{At: "spec.affinity?.podAffinity?.preferredDuringSchedulingIgnoredDuringExecution[]", Field: "podAffinityTerm"},
		{At: "spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution[]", Field: "matchLabelKeys"},
		{At: "spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution[]", Field: "mismatchLabelKeys"},
		{At: "spec.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution[]", Field: "podAffinityTerm"},
	},
}

// byHand contains the fields that our hand-written code sets. The selector and the template labels of a Job depend on
// its uid. If the Job and its template share a Go map of labels, the labels of the Job change too.
var byHand = map[string]bool{
	"Job metadata.labels":               true,
	"Job spec.selector":                 true,
	"Job spec.selector?.matchLabels":    true,
	"Job spec.template.metadata.labels": true,
}

// named returns the unknown fields except metadata.name. The API server sets the name before it evaluates a policy.
func named(unknown []open) []open {
	kept := []open{}
	for _, u := range unknown {
		if u.At != "metadata" || u.Field != "name" {
			kept = append(kept, u)
		}
	}
	return kept
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubernetes" {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return ""
}

func learn(only string) table {
	s := &structs{index: map[reflect.Type]int{}}
	result := table{Kubernetes: version()}
	for _, subject := range subjects() {
		object, err := scheme.New(subject.gvk)
		if err != nil {
			panic(err)
		}
		root := s.structOf(reflect.TypeOf(object).Elem())
		if !strings.Contains(subject.String(), only) {
			continue
		}
		read := &learner{structs: s, extra: extra(subject), stage: func(in tree) (tree, tree, error) {
			before, err := subject.plain(in)
			if err != nil {
				return nil, nil, err
			}
			after, err := subject.defaulted(in)
			return before, after, err
		}}
		create := &learner{structs: s, extra: extra(subject), stage: func(in tree) (tree, tree, error) {
			before, err := subject.defaulted(in)
			if err != nil {
				return nil, nil, err
			}
			after, err := subject.created(in)
			return before, after, err
		}}
		kind := kindTable{
			Group: subject.gvk.Group, Version: subject.gvk.Version, Kind: subject.gvk.Kind, Root: root,
			Namespaced: subject.strategy.NamespaceScoped(),
		}
		for _, at := range s.sites(root, depth) {
			if strings.HasSuffix(at.String(), ".lifecycle?") {
				// If the API server drops this field, it may also drop the struct that contains the field.
				kind.Unknown = append(kind.Unknown, open{At: at.String(), Field: "stopSignal"})
			}
			kind.Rules = append(kind.Rules, read.rules(at)...)
			for _, r := range create.rules(at) {
				if !byHand[subject.gvk.Kind+" "+strings.TrimPrefix(r.At+"."+r.Field, ".")] {
					kind.Create = append(kind.Create, r)
				}
			}
		}
		kind.Unknown = append(kind.Unknown, named(read.unknown)...)
		kind.CreateUnknown = named(create.unknown)
		for _, at := range beyond[kind.Kind] {
			kind.Unknown = append(kind.Unknown, at)
		}
		result.Kinds = append(result.Kinds, kind)
		fmt.Fprintln(os.Stderr, subject, len(kind.Rules), "rules,", len(kind.Create), "on create, unknown", kind.Unknown, kind.CreateUnknown)
	}
	for _, kind := range otherKinds() {
		result.Types = append(result.Types, typeTable{kind.gvk.Group, kind.gvk.Version, kind.gvk.Kind, s.structOf(kind.typ)})
	}
	for _, fields := range s.fields {
		row := [][]any{}
		for _, f := range fields {
			row = append(row, []any{f.name, f.typ, f.omit, f.text})
		}
		result.Structs = append(result.Structs, row)
	}
	return result
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "prepare table|cases|replay")
		os.Exit(2)
	}
	flags := flag.NewFlagSet("prepare", flag.ExitOnError)
	only := flags.String("only", "", "part of the name of the kinds")
	seed := flags.Uint64("seed", 42, "seed of the random objects")
	count := flags.Int("count", 100, "how many objects of each kind")
	_ = flags.Parse(os.Args[2:])
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	switch os.Args[1] {
	case "table":
		packed := zlib.NewWriter(os.Stdout)
		if err := json.NewEncoder(packed).Encode(learn(*only)); err != nil {
			panic(err)
		}
		if err := packed.Close(); err != nil {
			panic(err)
		}
	case "cases":
		cases(out, *only, *seed, *count)
	case "replay":
		replay(json.NewDecoder(os.Stdin), os.Stdout)
	}
}
