package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// YAMLLine is the result of `oracle yaml` for a stream: the documents that kubectl reads.
type YAMLLine struct {
	Line      int            `json:"line"`
	Documents []YAMLDocument `json:"documents"`
	// Stopped is true if kubectl reads no documents after the last error.
	Stopped bool   `json:"stopped,omitempty"`
	Error   string `json:"error,omitempty"`
}

// YAMLDocument is a document in the form that kubectl sends, or kubectl's error.
type YAMLDocument struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
	// Separator is true if the error is in a line that starts with ---. The content before this line is then lost.
	Separator bool   `json:"separator,omitempty"`
	Panic     *Panic `json:"panic,omitempty"`
}

func cmdYAML(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("yaml", flag.ContinueOnError)
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	for _, path := range fs.Args() {
		err := readCases(path, func(n int, data []byte) error {
			var text struct {
				Text string `json:"text"`
			}
			line := YAMLLine{Line: n, Documents: []YAMLDocument{}}
			if err := json.Unmarshal(data, &text); err != nil {
				line.Error = err.Error()
			} else {
				readYAML(text.Text, &line)
			}
			return writeLine(out, line)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readYAML reads a stream like kubectl (k8s.io/cli-runtime pkg/resource, StreamVisitor), but continues after an error.
func readYAML(text string, line *YAMLLine) {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var raw runtime.RawExtension
		var err error
		if p := guard(func() { err = decoder.Decode(&raw) }); p != nil {
			line.Documents = append(line.Documents, YAMLDocument{Error: "panic", Panic: p})
			line.Stopped = true
			return
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			line.Documents = append(line.Documents, YAMLDocument{
				Error:     err.Error(),
				Separator: strings.HasPrefix(err.Error(), "invalid Yaml document separator"),
			})
			// After an error in JSON, the start of the next document is unknown.
			if _, ok := err.(yaml.YAMLSyntaxError); !ok {
				line.Stopped = true
				return
			}
			continue
		}
		sent := bytes.TrimSpace(raw.Raw)
		if len(sent) == 0 || bytes.Equal(sent, []byte("null")) {
			continue
		}
		line.Documents = append(line.Documents, asSent(sent))
	}
}

// asSent converts a document to the object that kubectl sends. Its numbers are 64-bit integers and floats.
func asSent(raw []byte) YAMLDocument {
	var value any
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		return YAMLDocument{Error: err.Error()}
	}
	sent, err := json.Marshal(value)
	if err != nil {
		return YAMLDocument{Error: err.Error()}
	}
	return YAMLDocument{Value: sent}
}
