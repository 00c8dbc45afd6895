// Command readme prints the README of the chart: README.md.in of the chart, with the comments of values.yaml as a table.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: %s CHART\n", os.Args[0])
		os.Exit(2)
	}
	text, err := readme(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(text)
}

// schema is the part of a JSON schema that decides which values have a row of their own.
type schema struct {
	Ref         string            `json:"$ref"`
	Properties  map[string]schema `json:"properties"`
	Definitions map[string]schema `json:"definitions"`
}

func readme(folder string) (string, error) {
	var chart struct {
		Description string `yaml:"description"`
		Version     string `yaml:"version"`
		KubeVersion string `yaml:"kubeVersion"`
	}
	var values yaml.Node
	var root schema
	files := map[string]func([]byte) error{
		"Chart.yaml":         func(text []byte) error { return yaml.Unmarshal(text, &chart) },
		"values.yaml":        func(text []byte) error { return yaml.Unmarshal(text, &values) },
		"values.schema.json": func(text []byte) error { return json.Unmarshal(text, &root) },
	}
	for name, parse := range files {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return "", err
		}
		if err := parse(text); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	template, err := os.ReadFile(filepath.Join(folder, "README.md.in"))
	if err != nil {
		return "", err
	}
	table := table{definitions: root.Definitions}
	if err := table.addRows("", values.Content[0], root); err != nil {
		return "", err
	}
	kubernetes := strings.TrimSuffix(strings.TrimPrefix(chart.KubeVersion, ">="), ".0-0")
	return strings.NewReplacer(
		"{description}", chart.Description,
		"{version}", chart.Version,
		"{kubernetes}", "Kubernetes "+kubernetes+" or newer",
		"{values}", "| value | default | meaning |\n|---|---|---|\n"+strings.Join(table.rows, "\n"),
	).Replace(string(template)), nil
}

type table struct {
	definitions map[string]schema
	rows        []string
}

// addRows adds a row for each value of the mapping, and for each value in a mapping whose keys the schema lists.
func (t *table) addRows(prefix string, mapping *yaml.Node, schema schema) error {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		path := prefix + key.Value
		property, ok := schema.Properties[key.Value]
		if !ok {
			return fmt.Errorf("values.schema.json does not list %s", path)
		}
		if name, ok := strings.CutPrefix(property.Ref, "#/definitions/"); ok {
			property = t.definitions[name]
		}
		if len(property.Properties) > 0 {
			if err := t.addRows(path+".", value, property); err != nil {
				return err
			}
			continue
		}
		meaning := comment(key.HeadComment)
		if meaning == "" {
			return fmt.Errorf("values.yaml: %s has no comment", path)
		}
		standard, err := inline(value)
		if err != nil {
			return fmt.Errorf("values.yaml: %s: %w", path, err)
		}
		t.rows = append(t.rows, fmt.Sprintf("| `%s` | %s | %s |", path, standard, meaning))
	}
	return nil
}

// comment returns the last paragraph of a comment as one line.
func comment(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	lines := strings.Split(paragraphs[len(paragraphs)-1], "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	}
	return strings.ReplaceAll(strings.Join(lines, " "), "|", `\|`)
}

// inline returns a value as JSON. It is empty for an empty string and for a value that values.yaml explains in words.
func inline(node *yaml.Node) (string, error) {
	var value any
	if err := node.Decode(&value); err != nil {
		return "", err
	}
	if value == "" {
		return "", nil
	}
	if text, ok := value.(string); ok {
		return "`" + text + "`", nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	const longest = 60
	if len(text) > longest {
		return "see values.yaml", nil
	}
	return "`" + string(text) + "`", nil
}
