package main

import (
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/openapi"
)

// DeclLine is the result of `oracle decl` for a type within a kind.
type DeclLine struct {
	TypeRef
	// Path is the path of the type, relative to the object. An example is .spec.tolerations[0].
	Path string `json:"path"`
	// Type is upstream's name for the category of the type, such as object, list, map or string.
	Type string `json:"type"`
	// MaxElements and MinSerializedSize are limits for cost estimates.
	MaxElements       int64 `json:"maxElements"`
	MinSerializedSize int64 `json:"minSerializedSize"`
	Required          bool  `json:"required,omitempty"`
}

// DeclSummary is the result of `oracle decl --summary` for a kind.
type DeclSummary struct {
	TypeRef
	// Types is the number of lines without --summary.
	Types int `json:"types"`
	// Digest is the 64-bit FNV-1a hash of these lines. A hashed line contains path, type, maxElements,
	// minSerializedSize and required, separated by tabs. It ends with a newline.
	Digest string `json:"digest,omitempty"`
	Error  string `json:"error,omitempty"`
}

func cmdDecl(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("decl", flag.ContinueOnError)
	summary := fs.Bool("summary", false, "print one line for each kind")
	schemas := schemaFlags(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	s, err := schemas()
	if err != nil {
		return err
	}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, doc := range s.docs {
		for gvk := range doc.refs {
			kinds[gvk] = true
		}
	}
	for _, gvk := range slices.SortedFunc(maps.Keys(kinds), compareGVK) {
		lines, err := declLines(s, gvk)
		if *summary {
			err = writeLine(out, summarize(gvk, lines, err))
		} else {
			for _, line := range lines {
				if err = writeLine(out, line); err != nil {
					break
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func compareGVK(a, b schema.GroupVersionKind) int {
	return slices.Compare([]string{a.Group, a.Version, a.Kind}, []string{b.Group, b.Version, b.Kind})
}

// declLines returns the declared types of a kind, sorted by field name. The names of types are omitted, because they
// follow from the paths.
func declLines(s *Schemas, gvk schema.GroupVersionKind) ([]DeclLine, error) {
	resolved, err := s.ResolveSchema(gvk)
	if err != nil {
		return nil, err
	}
	var lines []DeclLine
	var walk func(path string, t *apiservercel.DeclType, required bool)
	walk = func(path string, t *apiservercel.DeclType, required bool) {
		lines = append(lines, DeclLine{refOf(gvk), path, t.TypeName(), t.MaxElements, t.MinSerializedSize, required})
		for _, name := range slices.Sorted(maps.Keys(t.Fields)) {
			walk(path+"."+name, t.Fields[name].Type, t.Fields[name].Required)
		}
		if t.IsMap() {
			walk(path+"['']", t.ElemType, false)
		}
		if t.IsList() {
			walk(path+"[0]", t.ElemType, false)
		}
	}
	if t := common.SchemaDeclType(&openapi.Schema{Schema: resolved}, true); t != nil {
		walk("", t, false)
	}
	return lines, nil
}

func summarize(gvk schema.GroupVersionKind, lines []DeclLine, err error) DeclSummary {
	if err != nil {
		return DeclSummary{TypeRef: refOf(gvk), Error: err.Error()}
	}
	hash := fnv.New64a()
	for _, l := range lines {
		fmt.Fprintf(hash, "%s\t%s\t%d\t%d\t%t\n", l.Path, l.Type, l.MaxElements, l.MinSerializedSize, l.Required)
	}
	return DeclSummary{TypeRef: refOf(gvk), Types: len(lines), Digest: fmt.Sprintf("%016x", hash.Sum64())}
}
