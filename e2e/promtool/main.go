// Command promtool converts the queries of a dashboard to recording rules, so that Prometheus' promtool can check them.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type dashboard struct {
	Panels []struct {
		ID      int `json:"id"`
		Targets []struct {
			RefID string `json:"refId"`
			Expr  string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

type rule struct {
	Record string `json:"record"`
	Expr   string `json:"expr"`
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: %s DASHBOARD.json", os.Args[0])
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	var rules []rule
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			rules = append(rules, rule{
				Record: fmt.Sprintf("panel:%d:%s", panel.ID, target.RefID),
				// Grafana sets this variable when it renders the dashboard.
				Expr: strings.ReplaceAll(target.Expr, "$__rate_interval", "2m"),
			})
		}
	}
	if len(rules) == 0 {
		return fmt.Errorf("%s has no query", os.Args[1])
	}
	// promtool reads YAML, of which JSON is a subset.
	return json.NewEncoder(os.Stdout).Encode(map[string][]group{"groups": {{Name: "dashboard", Rules: rules}}})
}
