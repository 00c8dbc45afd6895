package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"time"
)

// The table of defaults is learned by experiments. A site is a path in the objects of a kind at which a Go struct
// occurs. For each site, the API server's functions run on an object that contains only this site, and then on the same
// object with one more field. The effects on each field of the site are recorded, with the fields on which they depend.

// step leads from a struct to a struct within it, through a field. The kind of the field is "" for a struct, "?" for a
// pointer, "[]" for a list, and "{}" for a map.
type step struct {
	field string
	kind  string
}

type site struct {
	steps []step
	// levels are the indices of the structs on the path, from the object to the site.
	levels []int
}

func (s site) String() string {
	var parts []string
	for _, step := range s.steps {
		parts = append(parts, step.field+step.kind)
	}
	return strings.Join(parts, ".")
}

// sites returns the sites of a kind up to a depth. A path contains each struct at most once.
func (s *structs) sites(root, depth int) []site {
	all := []site{{levels: []int{root}}}
	for n := 0; n < len(all); n++ {
		at := all[n]
		if len(at.steps) >= depth {
			continue
		}
		for _, f := range s.fields[at.levels[len(at.levels)-1]] {
			kind, inner := "", f.typ
			for _, form := range []struct{ sigil, kind string }{{"*", "?"}, {"[", "[]"}, {"{", "{}"}} {
				if strings.HasPrefix(f.typ, form.sigil) {
					kind, inner = form.kind, f.typ[1:]
				}
			}
			if !strings.HasPrefix(inner, "#") {
				continue
			}
			var next int
			fmt.Sscanf(inner, "#%d", &next)
			repeated := false
			for _, level := range at.levels {
				repeated = repeated || level == next
			}
			if repeated || f.name == "managedFields" {
				continue
			}
			all = append(all, site{
				steps:  append(append([]step(nil), at.steps...), step{f.name, kind}),
				levels: append(append([]int(nil), at.levels...), next),
			})
		}
	}
	return all
}

// assignment sets a field to a value. The field is in the struct at a level of the site. If path is set, the field is
// in the struct at that path in the object.
type assignment struct {
	level int
	path  []string
	field string
	value any
}

// build returns an object that contains only the site and the assigned fields.
func (s site) build(assigned []assignment) tree {
	nodes := make([]tree, len(s.levels))
	for n := range nodes {
		nodes[n] = tree{}
	}
	for n, step := range s.steps {
		var value any = nodes[n+1]
		switch step.kind {
		case "[]":
			value = []any{nodes[n+1]}
		case "{}":
			value = tree{"k": nodes[n+1]}
		}
		nodes[n][step.field] = value
	}
	for _, a := range assigned {
		node := nodes[a.level]
		if a.path != nil {
			node = nodes[0]
			for _, name := range a.path {
				next, ok := node[name].(tree)
				if !ok {
					next = tree{}
					node[name] = next
				}
				node = next
			}
		}
		node[a.field] = a.value
	}
	return nodes[0]
}

// node returns the struct at a level of the site in an object.
func (s site) node(object tree, level int) (tree, bool) {
	node := object
	for _, step := range s.steps[:level] {
		value := node[step.field]
		switch step.kind {
		case "[]":
			list, ok := value.([]any)
			if !ok || len(list) == 0 {
				return nil, false
			}
			value = list[0]
		case "{}":
			entries, ok := value.(tree)
			if !ok {
				return nil, false
			}
			value = entries["k"]
		}
		next, ok := value.(tree)
		if !ok {
			return nil, false
		}
		node = next
	}
	return node, true
}

// dep is a field on which an effect depends. The field is in the struct that is `Up` levels above the site. If Path is
// set, the field is in the struct at that path in the object.
type dep struct {
	Up    int      `json:"up,omitempty"`
	Path  []string `json:"path,omitempty"`
	Field string   `json:"field"`
	By    string   `json:"by,omitempty"`
	typ   string
	vals  []any
}

func (d dep) key() string { return fmt.Sprint(d.Up, d.Path, d.Field) }

type action struct {
	Set      any             `json:"set,omitempty"`
	Remove   bool            `json:"remove,omitempty"`
	Copy     *int            `json:"copy,omitempty"`
	Union    []int           `json:"union,omitempty"`
	Merge    map[string]any  `json:"merge,omitempty"`
	Entry    map[string]*int `json:"entry,omitempty"`
	Template any             `json:"template,omitempty"`
	Append   []any           `json:"append,omitempty"`
	Op       string          `json:"op,omitempty"`
}

type row struct {
	If []string `json:"if"`
	Do action   `json:"do"`
}

type rule struct {
	At    string `json:"at"`
	Field string `json:"field"`
	Deps  []dep  `json:"deps,omitempty"`
	// Known contains the constants that the rows distinguish: first those of the field, then those of each dependency.
	Known [][]string `json:"known,omitempty"`
	Rows  []row      `json:"rows"`
}

// open is a field without rules, because a table cannot express its dependency on other fields.
type open struct {
	At     string `json:"at"`
	Field  string `json:"field"`
	Fields []dep  `json:"deps,omitempty"`
	// Empty is true if the field has rules for all values except empty lists and maps.
	Empty bool `json:"empty,omitempty"`
}

// stage is an operation of the API server. It returns the objects before and after the operation.
type stage func(input tree) (before, after tree, err error)

// isContainer returns true for structs. A struct has no rules, because its fields have rules at the struct's site.
func isContainer(typ string) bool {
	return strings.HasPrefix(typ, "#")
}

func isStructs(typ string) bool {
	return strings.HasPrefix(typ, "*#") || strings.HasPrefix(typ, "[#") || strings.HasPrefix(typ, "{#")
}

// isAbsent returns true if a value is the zero value of Go, which also is the value of an unset field.
func isAbsent(value any, typ string) bool {
	if value == nil {
		return true
	}
	if strings.HasPrefix(typ, "*") {
		return false
	}
	switch v := value.(type) {
	case string:
		return v == ""
	case int64:
		return v == 0 && typ != "o"
	case bool:
		return !v
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case tree:
		return len(v) == 0
	}
	return false
}

func token(name string) int64 {
	n := int64(0)
	for _, c := range name {
		n = (n*31 + int64(c)) % 89
	}
	return n + 10
}

// samples returns the values of a field in the experiments.
func samples(f field) []any {
	typ := strings.TrimPrefix(f.typ, "*")
	pointer := typ != f.typ
	switch {
	case typ == "s":
		var values []any
		seen := map[string]bool{}
		for _, value := range f.enum {
			if value != "" && !seen[value] {
				values = append(values, value)
				seen[value] = true
			}
		}
		if f.name == "image" || f.name == "reference" {
			return append(values, "i:latest", "i", "i:1.0", "r.example:5000/i")
		}
		values = append(values, "xa", "xb")
		if pointer {
			values = append(values, "")
		}
		return values
	case typ == "i":
		if pointer {
			return []any{int64(7), int64(9), int64(0)}
		}
		return []any{int64(7), int64(9)}
	case typ == "b":
		if pointer {
			return []any{true, false}
		}
		return []any{true}
	case typ == "o":
		return []any{int64(7), "xa"}
	case typ == "q":
		return []any{"7", "9"}
	case typ == "t":
		return []any{"2020-01-01T00:00:00Z"}
	case typ == "u":
		return []any{"2020-01-01T00:00:00.000000Z"}
	case typ == "y":
		return []any{"eGE="}
	case typ == "{s":
		return []any{tree{"shared": "s" + f.name, "own-" + f.name: "v" + f.name}}
	case typ == "{q":
		return []any{tree{"shared": fmt.Sprint(token(f.name)), "own-" + f.name: fmt.Sprint(token(f.name) + 100)}}
	case typ == "{y":
		return []any{tree{"shared": "eGE=", "own-" + f.name: "eGI="}}
	case typ == "[s":
		values := []any{[]any{"xa"}, []any{"xb", "xa"}}
		return values
	case strings.HasPrefix(typ, "[#"):
		return []any{[]any{tree{}}}
	case strings.HasPrefix(typ, "{#"):
		return []any{tree{"k": tree{}}}
	case pointer && strings.HasPrefix(typ, "#"):
		return []any{tree{}}
	case strings.HasPrefix(typ, "[") || strings.HasPrefix(typ, "{"):
		inner := samples(field{typ: typ[1:]})
		if len(inner) == 0 {
			return nil
		}
		if typ[0] == '[' {
			return []any{[]any{inner[0]}}
		}
		return []any{tree{"k": inner[0]}}
	}
	return nil
}

func equal(a, b any) bool { return reflect.DeepEqual(normal(a), normal(b)) }

// normal returns a value in the form of decoded JSON. Numbers of different types then are equal.
func normal(value any) any {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var back any
	if err := json.Unmarshal(data, &back); err != nil {
		panic(err)
	}
	return back
}

// outcome is the effect of a stage on a field.
type outcome struct {
	kept          bool
	before, after any
	gone          bool
}

func (o outcome) String() string {
	if o.kept {
		return "keep"
	}
	data, _ := json.Marshal([]any{o.gone, o.after})
	return string(data)
}

func look(before, after any, f field) outcome {
	result := outcome{before: before, after: after}
	was, is := isAbsent(before, f.typ), isAbsent(after, f.typ)
	switch {
	case was && is:
		result.kept = true
	case !was && is:
		result.gone = true
	case !was && isStructs(f.typ):
		// A change within a nested struct is an effect at the site of that struct. A changed number of items is an
		// effect here.
		list, isList := before.([]any)
		other, _ := after.([]any)
		result.kept = !isList || len(list) == len(other)
	default:
		result.kept = equal(before, after)
	}
	return result
}

type learner struct {
	structs *structs
	stage   stage
	extra   map[string][]dep
	unknown []open
}

type trial struct {
	before, after tree
}

func (l *learner) try(at site, assigned []assignment) (trial, bool) {
	before, after, err := l.stage(at.build(assigned))
	return trial{before, after}, err == nil
}

func (l *learner) outcome(at site, t trial, f field) (outcome, bool) {
	n := len(at.levels) - 1
	before, ok := at.node(t.before, n)
	if !ok {
		before = tree{}
	}
	after, there := at.node(t.after, n)
	if !there {
		// The site was removed, which is an effect at the enclosing site.
		return outcome{kept: true}, false
	}
	return look(before[f.name], after[f.name], f), true
}

func (l *learner) candidates(at site) []dep {
	n := len(at.levels) - 1
	var deps []dep
	for up := 0; up <= 2 && up <= n; up++ {
		for _, f := range l.structs.fields[at.levels[n-up]] {
			if isContainer(f.typ) || (up > 0 && at.steps[n-up].field == f.name) {
				continue
			}
			scalar := len(strings.TrimPrefix(f.typ, "*")) == 1
			if up > 0 && !scalar {
				continue
			}
			if values := samples(f); len(values) > 0 {
				deps = append(deps, dep{Up: up, Field: f.name, typ: f.typ, vals: values})
			}
		}
	}
	return append(deps, l.extra[at.String()]...)
}

func (d dep) assign(at site, value any) assignment {
	if d.Path != nil {
		return assignment{path: d.Path, field: d.Field, value: value}
	}
	return assignment{level: len(at.levels) - 1 - d.Up, field: d.Field, value: value}
}

func (l *learner) rules(at site) []rule {
	n := len(at.levels) - 1
	fields := l.structs.fields[at.levels[n]]
	candidates := l.candidates(at)
	base, ok := l.try(at, nil)
	if !ok {
		return nil
	}
	found := map[string]map[string]dep{}
	note := func(f field, d dep) {
		if found[f.name] == nil {
			found[f.name] = map[string]dep{}
		}
		found[f.name][d.key()] = d
	}
	active := map[string]bool{}
	for _, f := range fields {
		if o, there := l.outcome(at, base, f); there && !o.kept {
			active[f.name] = true
		}
	}
	// Experiments with one field set: observes the unset fields.
	for _, d := range candidates {
		for _, value := range d.vals {
			t, ok := l.try(at, []assignment{d.assign(at, value)})
			if !ok {
				continue
			}
			for _, f := range fields {
				if isContainer(f.typ) || (d.Up == 0 && d.Path == nil && d.Field == f.name) {
					continue
				}
				o, there := l.outcome(at, t, f)
				// If base does not have the site, outcome reports the fields as kept.
				was, _ := l.outcome(at, base, f)
				if there && o.String() != was.String() {
					note(f, d)
					active[f.name] = true
				}
			}
		}
	}
	// Repeats the experiments with one more field set to a constant or to true.
	for _, c := range candidates {
		isSwitch := c.typ == "b" && c.Up > 0 || c.Up == 0 && c.typ == "b"
		for _, chosen := range c.vals {
			if text, ok := chosen.(string); (!ok || c.class(text) == "*" || !strings.HasSuffix(c.typ, "s") || c.Up > 0) && !isSwitch {
				continue
			}
			with, ok := l.try(at, []assignment{c.assign(at, chosen)})
			if !ok {
				continue
			}
			for _, d := range candidates {
				if d.Up > 0 || d.key() == c.key() {
					continue
				}
				for _, value := range d.vals {
					t, ok := l.try(at, []assignment{c.assign(at, chosen), d.assign(at, value)})
					if !ok {
						continue
					}
					for _, f := range fields {
						if isContainer(f.typ) || (d.Path == nil && d.Field == f.name) || (c.Up == 0 && c.Path == nil && c.Field == f.name) {
							continue
						}
						o, there := l.outcome(at, t, f)
						was, _ := l.outcome(at, with, f)
						if there && o.String() != was.String() {
							note(f, d)
							if _, known := found[f.name][c.key()]; !known {
								alone, _ := l.outcome(at, base, f)
								without, ok := l.try(at, []assignment{d.assign(at, value)})
								if !ok {
									continue
								}
								plain, _ := l.outcome(at, without, f)
								if plain.String() != o.String() || alone.String() != was.String() {
									note(f, c)
								}
							}
							active[f.name] = true
						}
					}
				}
			}
		}
	}
	// Experiments with set fields: observes each field alone, and with each other field of the same struct.
	for _, f := range fields {
		if isContainer(f.typ) {
			continue
		}
		own := samples(f)
		for i, value := range own {
			alone, ok := l.try(at, []assignment{{level: n, field: f.name, value: value}})
			if !ok {
				continue
			}
			was, wasThere := l.outcome(at, alone, f)
			if wasThere && !was.kept {
				active[f.name] = true
			}
			if i > 0 && !active[f.name] {
				continue
			}
			for _, d := range candidates {
				if d.Up != 0 || (d.Path == nil && d.Field == f.name) {
					continue
				}
				for _, other := range d.vals {
					t, ok := l.try(at, []assignment{{level: n, field: f.name, value: value}, d.assign(at, other)})
					if !ok {
						continue
					}
					o, there := l.outcome(at, t, f)
					if there && (o.kept != was.kept || (!o.kept && o.String() != was.String())) {
						note(f, d)
						active[f.name] = true
					}
				}
			}
		}
	}
	var rules []rule
	for _, f := range fields {
		// The API server may round up the quantities in a map to thousandths.
		if f.typ != "{q" {
			continue
		}
		t, ok := l.try(at, []assignment{{level: n, field: f.name, value: tree{"cpu": "1500u"}}})
		if node, there := at.node(t.after, n); ok && there && equal(node[f.name], tree{"cpu": "2m"}) {
			rules = append(rules, rule{At: at.String(), Field: f.name, Known: [][]string{nil}, Rows: []row{{[]string{"*"}, action{Op: "round"}}}})
		}
	}
	for _, f := range fields {
		if !active[f.name] || isContainer(f.typ) {
			continue
		}
		deps := []dep{{Field: f.name, typ: f.typ, vals: samples(f)}}
		var keys []string
		for key := range found[f.name] {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			deps = append(deps, found[f.name][key])
		}
		if learnt, ok := l.table(at, f, deps); ok {
			if len(learnt.Rows) > 0 {
				rules = append(rules, learnt)
			}
		} else {
			l.unknown = append(l.unknown, open{At: at.String(), Field: f.name, Fields: deps[1:]})
		}
	}
	return rules
}

// table learns the rule of a field from all combinations of values of deps. The first item of deps is the field.
func (l *learner) table(at site, f field, deps []dep) (rule, bool) {
	result := rule{At: at.String(), Field: f.name, Deps: deps[1:]}
	if len(deps) > 5 {
		return l.ifNone(at, f, deps)
	}
	type sample struct {
		values []any
		out    outcome
	}
	groups := map[string][]sample{}
	var order []string
	var walk func(n int, assigned []assignment)
	walk = func(n int, assigned []assignment) {
		if n < len(deps) {
			walk(n+1, assigned)
			for _, value := range deps[n].vals {
				walk(n+1, append(append([]assignment(nil), assigned...), deps[n].assign(at, value)))
			}
			return
		}
		t, ok := l.try(at, assigned)
		if !ok {
			return
		}
		out, there := l.outcome(at, t, f)
		if !there {
			return
		}
		var classes []string
		var values []any
		for _, d := range deps {
			value := l.value(at, t.before, d)
			values = append(values, value)
			classes = append(classes, d.class(value))
		}
		key := strings.Join(classes, "\x00")
		if _, ok := groups[key]; !ok {
			order = append(order, key)
		}
		groups[key] = append(groups[key], sample{values, out})
	}
	walk(0, nil)
	table := map[string]action{}
	for _, key := range order {
		var outs []outcome
		var values [][]any
		for _, s := range groups[key] {
			outs = append(outs, s.out)
			values = append(values, s.values)
		}
		do, keep, ok := explain(f, deps, values, outs)
		if !ok {
			return rule{}, false
		}
		table[key] = do
		if keep {
			table[key] = action{Op: "keep"}
		}
	}
	result.Known, result.Rows = compact(len(deps), order, table)
	return result, true
}

// compact removes constants without effect, and rows that keep the value.
func compact(n int, order []string, table map[string]action) (known [][]string, rows []row) {
	known = make([][]string, n)
	dropped := map[string]bool{}
	for position := range n {
		seen := map[string]bool{}
		for _, key := range order {
			if class := strings.Split(key, "\x00")[position]; strings.HasPrefix(class, "=") {
				seen[class] = true
			}
		}
		var classes []string
		for class := range seen {
			classes = append(classes, class)
		}
		sort.Strings(classes)
		for _, class := range classes {
			same := true
			for _, key := range order {
				parts := strings.Split(key, "\x00")
				if parts[position] != class || dropped[key] {
					continue
				}
				parts[position] = "*"
				other, there := table[strings.Join(parts, "\x00")]
				same = same && there && equal(other, table[key])
			}
			if !same {
				known[position] = append(known[position], class)
				continue
			}
			for _, key := range order {
				if strings.Split(key, "\x00")[position] == class {
					dropped[key] = true
				}
			}
		}
	}
	for _, key := range order {
		if do := table[key]; !dropped[key] && do.Op != "keep" {
			rows = append(rows, row{strings.Split(key, "\x00"), do})
		}
	}
	return known, rows
}

// ifNone returns a rule for a field with many dependencies. The rule sets the field if no dependency is set.
func (l *learner) ifNone(at site, f field, deps []dep) (rule, bool) {
	base, ok := l.try(at, nil)
	if !ok {
		return rule{}, false
	}
	out, _ := l.outcome(at, base, f)
	if out.kept {
		return rule{}, false
	}
	classes := []string{"-"}
	for _, d := range deps[1:] {
		classes = append(classes, "-")
		for _, value := range d.vals {
			t, ok := l.try(at, []assignment{d.assign(at, value)})
			if !ok {
				continue
			}
			if o, _ := l.outcome(at, t, f); !o.kept {
				return rule{}, false
			}
		}
	}
	return rule{At: at.String(), Field: f.name, Deps: deps[1:], Rows: []row{{classes, action{Set: out.after}}}}, true
}

func (l *learner) value(at site, object tree, d dep) any {
	if d.Path != nil {
		node := object
		for _, name := range d.Path {
			next, ok := node[name].(tree)
			if !ok {
				return nil
			}
			node = next
		}
		return node[d.Field]
	}
	node, ok := at.node(object, len(at.levels)-1-d.Up)
	if !ok {
		return nil
	}
	return node[d.Field]
}

// class returns the class of a value: "-" if it is absent, "=x" for the constant x of its type, and "*" for other
// values.
func (d dep) class(value any) string {
	if isAbsent(value, d.typ) {
		return "-"
	}
	switch v := value.(type) {
	case string:
		if d.Field == "image" || d.Field == "reference" {
			if v == "i" || v == "i:latest" || v == "r.example:5000/i" {
				return "=latest"
			}
			return "*"
		}
		if v == "xa" || v == "xb" || strings.TrimPrefix(d.typ, "*") != "s" {
			return "*"
		}
		return "=" + v
	case bool:
		return fmt.Sprintf("=%v", v)
	case int64:
		if v == 0 && d.typ == "o" {
			return "=0"
		}
	}
	return "*"
}

// explain finds an action that produces all outcomes.
func explain(f field, deps []dep, values [][]any, outs []outcome) (do action, keep, ok bool) {
	all := func(is func(n int, o outcome) bool) bool {
		for n, o := range outs {
			if !is(n, o) {
				return false
			}
		}
		return true
	}
	if all(func(_ int, o outcome) bool { return o.kept }) {
		return action{}, true, true
	}
	if all(func(_ int, o outcome) bool { return o.gone }) {
		return action{Remove: true}, false, true
	}
	first := outs[0].after
	distinct := false
	for _, o := range outs {
		distinct = distinct || !equal(o.after, first)
	}
	for i := range deps {
		if i > 0 && all(func(n int, o outcome) bool { return !o.gone && equal(o.after, values[n][i]) }) {
			at := i
			return action{Copy: &at}, false, true
		}
	}
	_, isMap := first.(tree)
	if isMap && strings.HasPrefix(f.typ, "{") && !strings.HasPrefix(f.typ, "{#") {
		var maps []int
		for i, d := range deps {
			if i > 0 && d.typ == f.typ {
				maps = append(maps, i)
			}
		}
		for _, order := range permutations(maps) {
			if len(order) > 0 && all(func(n int, o outcome) bool { return equal(o.after, union(values[n], order)) }) {
				return action{Union: order}, false, true
			}
		}
		if do, ok := entries(deps, values, outs); ok {
			return do, false, true
		}
	}
	if do, ok := appended(values, outs); ok {
		return do, false, true
	}
	if !distinct && first != nil {
		if when, ok := first.(string); ok && isNow(when) {
			return action{Op: "now"}, false, true
		}
		return action{Set: first}, false, true
	}
	template := fill(first, values[0])
	if all(func(n int, o outcome) bool { return equal(fill(o.after, values[n]), template) }) {
		return action{Template: template}, false, true
	}
	return action{}, false, false
}

// appended finds the action for lists. The action always appends the same items.
func appended(values [][]any, outs []outcome) (action, bool) {
	var more []any
	for n, o := range outs {
		before, _ := values[n][0].([]any)
		after, ok := o.after.([]any)
		if !ok || len(before) == 0 || len(after) <= len(before) || !equal(after[:len(before)], before) {
			return action{}, false
		}
		if more != nil && !equal(more, after[len(before):]) {
			return action{}, false
		}
		more = after[len(before):]
	}
	return action{Append: more}, len(outs) > 0
}

// fill replaces strings and numbers that equal the value of a dependency. The replacement is a placeholder for the
// dependency.
func fill(value any, values []any) any {
	switch v := value.(type) {
	case tree:
		result := tree{}
		for key, inner := range v {
			result[key] = fill(inner, values)
		}
		return result
	case []any:
		result := []any{}
		for _, inner := range v {
			result = append(result, fill(inner, values))
		}
		return result
	case string, int64:
		for i := 1; i < len(values); i++ {
			if equal(v, values[i]) && v != "" {
				return tree{"$": int64(i)}
			}
		}
	}
	return value
}

func isNow(text string) bool {
	when, err := time.Parse(time.RFC3339, text)
	return err == nil && time.Since(when).Abs() < time.Hour
}

func union(values []any, order []int) tree {
	result := tree{}
	for _, i := range append([]int{0}, order...) {
		more, _ := values[i].(tree)
		for key, value := range more {
			if _, there := result[key]; !there {
				result[key] = value
			}
		}
	}
	return result
}

// entries finds the action for maps. The action adds keys, with a constant value or the value of another field.
func entries(deps []dep, values [][]any, outs []outcome) (action, bool) {
	do := action{}
	for n, o := range outs {
		after, ok := o.after.(tree)
		if !ok {
			return do, false
		}
		before, _ := values[n][0].(tree)
		for key, value := range before {
			if _, there := after[key]; !there {
				return do, false
			}
			_ = value
		}
		for key, value := range after {
			if old, there := before[key]; there && equal(old, value) {
				continue
			}
			from := -1
			for i := 1; i < len(deps); i++ {
				if equal(values[n][i], value) || (values[n][i] == nil && value == "") {
					from = i
				}
			}
			if from >= 0 {
				if old, there := do.Entry[key]; there && *old != from {
					return do, false
				}
				if do.Entry == nil {
					do.Entry = map[string]*int{}
				}
				do.Entry[key] = &from
				continue
			}
			if old, there := do.Merge[key]; there && !equal(old, value) {
				return do, false
			}
			if do.Merge == nil {
				do.Merge = map[string]any{}
			}
			do.Merge[key] = value
		}
	}
	return do, true
}

func permutations(items []int) [][]int {
	result := [][]int{nil}
	for i, item := range items {
		rest := append(append([]int(nil), items[:i]...), items[i+1:]...)
		for _, tail := range permutations(rest) {
			result = append(result, append([]int{item}, tail...))
		}
	}
	sort.SliceStable(result, func(a, b int) bool { return len(result[a]) < len(result[b]) })
	return result
}
