//! Tests of the features on a workspace in memory, whose documents mark the cursor with `⟨⟩`.

use gen_lsp_types::{CodeActionParams, Uri};
use serde_json::{Value, json};

use super::checker::Reports;
use super::context::Context;
use super::outbox::Outbox;
use super::positions::{self, Encoding};
use super::requests;
use super::workspace::Workspace;

const CURSOR: &str = "⟨⟩";

/// The beginning of a policy for deployments, up to its variables.
const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limit.example.com}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  variables:
  - {name: max, expression: '50'}
  - {name: containers, expression: object.spec.template.spec.containers}
  validations:
";

/// A workspace with a document and its cursor.
struct Session {
    workspace: Workspace,
    uri: Uri,
    byte: usize,
}

impl Session {
    /// Opens a document. Other files have the names `1.yaml` and so on.
    fn new(marked: &str, others: &[&str]) -> Self {
        let byte = marked.find(CURSOR).unwrap_or_default();
        let (mut workspace, error) = Workspace::open(Vec::new());
        assert!(error.is_none());
        for (n, text) in others.iter().enumerate() {
            let uri = Uri(format!("file:///{}.yaml", n + 1));
            workspace.set_document(uri, (*text).to_owned(), 1);
        }
        let uri = Uri("file:///0.yaml".to_owned());
        workspace.set_document(uri.clone(), marked.replacen(CURSOR, "", 1), 1);
        Self {
            workspace,
            uri,
            byte,
        }
    }

    /// Sends a request for the position of the cursor.
    #[expect(clippy::needless_pass_by_value, reason = "the callers write literals")]
    fn request(&self, method: &str, more: Value) -> Result<Value, String> {
        let file = self.workspace.file(&super::uri::path(&self.uri.0)).unwrap();
        let position = positions::position(&file.source, self.byte, Encoding::Utf16);
        let mut params = json!({"textDocument": {"uri": self.uri}, "position": position});
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        let (outbox, _messages) = Outbox::in_memory();
        let context = Context {
            workspace: &self.workspace,
            encoding: Encoding::Utf16,
            reports: &Reports::default(),
            has_snippets: true,
            outbox: &outbox,
        };
        let outcome = requests::process(&context, method, params).unwrap();
        outcome.map_err(|failure| failure.message)
    }

    fn text(&self) -> &str {
        let file = self.workspace.file(&super::uri::path(&self.uri.0)).unwrap();
        file.source.text()
    }

    /// Applies edits of the document.
    fn edited(&self, edits: &Value) -> String {
        let changes = edits.as_array().unwrap().iter().rev();
        let changes: Vec<Value> = changes
            .map(|edit| json!({"range": edit["range"], "text": edit["newText"]}))
            .collect();
        let changes: Vec<_> = serde_json::from_value(json!(changes)).unwrap();
        super::document::changed(self.text().to_owned(), &changes, Encoding::Utf16)
    }
}

fn policy(validations: &str) -> String {
    format!("{POLICY}{validations}")
}

/// Returns the labels of the completions, each with its detail.
fn completions(marked: &str, others: &[&str]) -> Vec<(String, String)> {
    let session = Session::new(marked, others);
    let list = session.request("textDocument/completion", Value::Null);
    let list = list.unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    items
        .map(|item| (text(&item["label"]), text(&item["detail"])))
        .collect()
}

/// Checks that the completions include `expected`, each with its detail, and none of `absent`.
#[track_caller]
fn check_completion(marked: &str, expected: &[(&str, &str)], absent: &[&str]) {
    let results = completions(marked, &[]);
    for (label, detail) in expected {
        let pair = ((*label).to_owned(), (*detail).to_owned());
        assert!(
            results.contains(&pair),
            "{label} in {results:?} for {marked}"
        );
    }
    for label in absent {
        assert!(
            results.iter().all(|(results, _)| results != label),
            "{label} for {marked}"
        );
    }
}

#[test]
fn completion_offers_fields_by_type() {
    let fields = [("replicas", "int"), ("template", "object")];
    for expression in [
        "object.spec.⟨⟩",
        "object.spec.re⟨⟩ <= 5",
        "'object.spec.⟨⟩",
        "\"object.spec.⟨⟩\"",
        ">-\n      true &&\n      object.spec.⟨⟩\n",
        "|\n      has(object.spec.⟨⟩\n    message: x\n",
        "object.spec.⟨⟩\r\n",
    ] {
        let text = policy(&format!("  - expression: {expression}"));
        check_completion(&text, &fields, &["startsWith", "object", "all"]);
    }
    let of_container = [("image", "string"), ("ports", "list(object)")];
    for expression in [
        "variables.containers.all(c, c.⟨⟩",
        "variables.containers[0].⟨⟩",
        "object.spec.template.spec.containers.exists(c, c.name == 'a' && c.⟨⟩)",
    ] {
        let text = policy(&format!("  - expression: {expression}"));
        check_completion(&text, &of_container, &[]);
    }
    let text = policy("  - expression: variables.⟨⟩");
    check_completion(
        &text,
        &[("max", "int"), ("containers", "list(object)")],
        &[],
    );
    let text = policy("  - expression: request.userInfo.⟨⟩");
    check_completion(&text, &[("username", "string")], &[]);
}

#[test]
fn completion_offers_functions_of_receiver() {
    let of_string = [("startsWith", "string.startsWith(string) -> bool")];
    let text = policy("  - expression: object.metadata.name.⟨⟩");
    check_completion(&text, &of_string, &["all", "getHours"]);
    let of_list = [("all", "collection.all(x, condition) -> bool")];
    let text = policy("  - expression: variables.containers.⟨⟩");
    check_completion(&text, &of_list, &["startsWith", "optMap"]);
    let text = policy("  - expression: optional.⟨⟩");
    check_completion(&text, &[("of", "optional.of(V) -> optional_type(V)")], &[]);
}

#[test]
fn completion_offers_names_in_scope() {
    let names = [("object", "object"), ("variables", "kubernetes.variables")];
    for expression in ["⟨⟩", "''⟨⟩", "true && ⟨⟩", "ob⟨⟩"] {
        let expression = if expression == "''⟨⟩" {
            "'⟨⟩'"
        } else {
            expression
        };
        let text = policy(&format!("  - expression: {expression}\n"));
        check_completion(&text, &names, &["params"]);
    }
    let text = policy("  - expression: variables.containers.all(c, ⟨⟩)");
    check_completion(&text, &[("c", "object")], &[]);
    let text = policy("  - expression: object.metadata.name == 'a⟨⟩'");
    assert_eq!(completions(&text, &[]), []);
    // A variable can read only the variables before it.
    let text = POLICY.replace("'50'", "variables.⟨⟩");
    check_completion(&text, &[], &["max", "containers"]);
}

#[test]
fn completion_in_rules_offers_served_resources() {
    let rule = |rule: &str| {
        POLICY.replace("    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}\n", rule)
    };
    let text = rule("    - apiGroups: [apps]\n      resources: [⟨⟩]\n");
    check_completion(&text, &[("deployments", "apps/v1 Deployment")], &["pods"]);
    let text = rule("    - apiGroups:\n      - ⟨⟩\n      resources: [pods]\n");
    check_completion(&text, &[("\"\"", "the core group")], &["apps"]);
    let text = rule("    - apiGroups: [batch]\n      apiVersions: [⟨⟩\n");
    check_completion(&text, &[("v1", "version")], &["v1beta3"]);
    let text = rule("    - operations: [CREATE, U⟨⟩]\n");
    check_completion(&text, &[("UPDATE", "")], &[]);
    let text = rule("    - apiGroups: [apps]\n      ⟨⟩\n");
    check_completion(
        &text,
        &[("operations", "list"), ("scope", "string")],
        &["apiGroups"],
    );
}

#[test]
fn completion_offers_keys_values_and_policy_names() {
    let text = policy("  - expression: 'true'\n    me⟨⟩\n");
    check_completion(
        &text,
        &[("message", "string")],
        &["expression", "paramKind"],
    );
    let text = policy("  - expression: 'true'\n  ⟨⟩\n");
    check_completion(
        &text,
        &[("paramKind", "object")],
        &["message", "validations"],
    );
    let text = policy("  - ⟨⟩\n");
    check_completion(&text, &[("expression", "string")], &["paramKind"]);
    let text = policy("  - expression: 'true'\n    reason: ⟨⟩\n");
    check_completion(&text, &[("Forbidden", "")], &[]);
    let binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
                   metadata: {name: b}\nspec:\n  policyName: ⟨⟩\n";
    let results = completions(binding, &[POLICY]);
    assert_eq!(
        results,
        [("limit.example.com".to_owned(), "policy".to_owned())]
    );
}

#[test]
fn completion_in_crd_rules_offers_fields_and_functions() {
    let crd = |rule: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: w.example.com}}\nspec:\n  \
             versions:\n  - name: v1\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
             spec:\n            type: object\n            properties:\n              size: {{type: integer}}\n            \
             x-kubernetes-validations:\n            - rule: {rule}\n"
        )
    };
    check_completion(&crd("self.⟨⟩"), &[("size", "int")], &["metadata"]);
    check_completion(&crd("oldSelf.size < self.s⟨⟩ize"), &[("size", "int")], &[]);
    check_completion(
        &crd("⟨⟩"),
        &[("self", "object"), ("oldSelf", "object")],
        &["request"],
    );
    let optional = crd("oldSelf.⟨⟩\n              optionalOldSelf: true");
    check_completion(
        &optional,
        &[("hasValue", "optional_type(V).hasValue() -> bool")],
        &[],
    );
}

/// Returns the hover at the cursor.
fn hover(marked: &str) -> String {
    let session = Session::new(marked, &[]);
    let hover = session.request("textDocument/hover", Value::Null).unwrap();
    hover["contents"]["value"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[track_caller]
fn check_hover(expression: &str, expected: &[&str]) {
    let text = hover(&policy(&format!("  - expression: {expression}\n")));
    for part in expected {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn hover_shows_type_and_kinds_and_cost() {
    check_hover(
        "object.spec.rep⟨⟩licas <= variables.max",
        &[
            "object.spec.replicas: int",
            "for apps/v1 Deployment",
            "% of the limit of 1000000",
        ],
    );
    check_hover("variables.m⟨⟩ax == 50", &["variables.max: int"]);
    check_hover(
        "variables.containers.all(c, c.im⟨⟩age != '')",
        &["variables.containers[].image: string"],
    );
    check_hover(
        "object.metadata.name.starts⟨⟩With('a')",
        &["string.startsWith(string) -> bool"],
    );
    check_hover(
        "variables.containers.al⟨⟩l(c, true)",
        &["collection.all(x, condition)"],
    );
    // Incomplete code after the name does not affect the hover.
    check_hover(
        "object.spec.rep⟨⟩licas <= && (",
        &["object.spec.replicas: int"],
    );
}

#[test]
fn hover_shows_description_of_custom_resource() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n\
               spec:\n  group: example.com\n  names: {kind: Widget, plural: widgets}\n  scope: Namespaced\n  versions:\n  \
               - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
               properties:\n          spec:\n            type: object\n            required: [size]\n            properties:\n              \
               size: {type: string, description: The size of the widget., enum: [S, L]}\n";
    let text = policy("  - expression: object.spec.si⟨⟩ze == 'S'\n")
        .replace("apps]", "example.com]")
        .replace("deployments]", "widgets]");
    let session = Session::new(&text, &[crd]);
    let hover = session.request("textDocument/hover", Value::Null).unwrap();
    let text = hover["contents"]["value"].as_str().unwrap();
    for part in [
        "object.spec.size: string",
        "The size of the widget.",
        "required",
        "\"S\", \"L\"",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// Returns the titles of the code actions of the whole document, each with the text after its edit.
fn actions(text: &str, only: Option<&str>) -> Vec<(String, String)> {
    let session = Session::new(text, &[]);
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 999, "character": 0}});
    let mut params = json!({"range": range, "context": {"diagnostics": []}});
    if let Some(only) = only {
        params["context"]["only"] = json!([only]);
    }
    let actions = session.request("textDocument/codeAction", params).unwrap();
    let actions = actions.as_array().unwrap().iter();
    actions
        .map(|action| {
            let edits = &action["edit"]["changes"]["file:///0.yaml"];
            (
                action["title"].as_str().unwrap().to_owned(),
                session.edited(edits),
            )
        })
        .collect()
}

#[test]
fn code_actions_offer_fixes_suggestions_and_allow_comments() {
    let text = policy("  - expression: object.spec.replcas <= variables.max\n").replace(
        "  - {name: containers, expression: object.spec.template.spec.containers}\n",
        "",
    );
    let results = actions(&text, None);
    let fix = (
        "replace `replcas` with `replicas`".to_owned(),
        text.replace("replcas", "replicas"),
    );
    assert!(results.contains(&fix), "{results:?}");
    let comment = "  # vap: allow undefined-field, reason\n  - expression: object.spec.replcas";
    let allowed = text.replace("  - expression: object.spec.replcas", comment);
    let allow = (
        "allow `undefined-field` here with a comment".to_owned(),
        allowed,
    );
    assert!(results.contains(&allow), "{results:?}");
    let all = actions(&text, Some("source.fixAll"));
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].1, text.replace("replcas", "replicas"));

    let text = policy("  - expression: object.metadata.labels['a'] == 'b'\n");
    let suggestions: Vec<String> = actions(&text, None)
        .into_iter()
        .map(|(title, _)| title)
        .filter(|title| title.contains("the validation"))
        .collect();
    assert!(suggestions.len() > 1, "{suggestions:?}");
}

#[test]
fn kinds_of_code_actions_are_decoded_from_parameters() {
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}});
    let params = json!({"textDocument": {"uri": "x"}, "range": range, "context": {"diagnostics": [], "only": ["quickfix", "x.y"]}});
    assert!(serde_json::from_value::<CodeActionParams>(params).is_ok());
}

/// Returns the text at each location of a result, with its file and line.
fn texts(session: &Session, locations: &Value) -> Vec<String> {
    let locations = locations.as_array().unwrap().iter();
    locations
        .map(|location| {
            let path = super::uri::path(location["uri"].as_str().unwrap());
            let file = session.workspace.file(&path).unwrap();
            let at = |place: &Value| {
                let position = serde_json::from_value(place.clone()).unwrap();
                positions::byte(&file.source, position, Encoding::Utf16)
            };
            let range = &location["range"];
            let text = file
                .source
                .text()
                .get(at(&range["start"])..at(&range["end"]))
                .unwrap();
            let (file, line) = (path.display(), range["start"]["line"].as_u64().unwrap() + 1);
            format!("{file}:{line} {text}")
        })
        .collect()
}

#[test]
fn variable_is_found_and_renamed_in_each_style() {
    let text = policy(
        "  - expression: 'variables.m⟨⟩ax > 1 && variables.?max.hasValue()'\n  - expression: |\n      object.spec.replicas\n        < variables.max\n",
    );
    let session = Session::new(&text, &[POLICY]);
    let results = session
        .request("textDocument/definition", Value::Null)
        .unwrap();
    assert_eq!(texts(&session, &results), ["/0.yaml:9 max"]);
    let context = json!({"context": {"includeDeclaration": false}});
    let results = session.request("textDocument/references", context).unwrap();
    assert_eq!(
        texts(&session, &results),
        ["/0.yaml:12 max", "/0.yaml:12 max", "/0.yaml:15 max"]
    );
    let edit = session
        .request("textDocument/rename", json!({"newName": "most"}))
        .unwrap();
    let renamed = session.edited(&edit["changes"]["file:///0.yaml"]);
    let expected = session.text().replace("variables.max", "variables.most");
    let expected = expected.replace("variables.?max", "variables.?most");
    assert_eq!(renamed, expected.replace("name: max", "name: most"));
    for (name, error) in [
        (
            "1x",
            "`1x` is not an identifier, so it cannot name a variable",
        ),
        (
            "containers",
            "the policy already has a variable `containers`",
        ),
    ] {
        let failure = session.request("textDocument/rename", json!({"newName": name}));
        assert_eq!(failure.unwrap_err(), error);
    }
}

#[test]
fn policy_of_binding_is_found_and_renamed() {
    let binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
                   metadata: {name: b}\nspec:\n  policyName: \"limit⟨⟩.example.com\"\n";
    let session = Session::new(binding, &[POLICY]);
    let results = session
        .request("textDocument/definition", Value::Null)
        .unwrap();
    assert_eq!(texts(&session, &results), ["/1.yaml:3 limit.example.com"]);
    let edit = session
        .request("textDocument/rename", json!({"newName": "x.io"}))
        .unwrap();
    assert_eq!(edit["changes"].as_object().unwrap().len(), 2);
}

#[test]
fn symbols_list_objects_and_their_parts() {
    let text = policy(
        "  - expression: >-\n      a\n      && b\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\n",
    );
    let session = Session::new(&text, &[]);
    let symbols = session
        .request("textDocument/documentSymbol", Value::Null)
        .unwrap();
    let names: Vec<&str> = symbols
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["limit.example.com", "c"]);
    let children = symbols[0]["children"].as_array().unwrap();
    let names: Vec<&str> = children
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["max", "containers", "a && b"]);
}

#[test]
fn semantic_tokens_cover_each_style() {
    let text = policy("  - expression: 'a == ''é'' &&\n      x.f(1)'\n");
    let text = text
        .replace("'50'", "1")
        .replace("object.spec.template.spec.containers", "b");
    let session = Session::new(&text, &[]);
    let results = session
        .request("textDocument/semanticTokens/full", Value::Null)
        .unwrap();
    let data: Vec<u64> = results["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_u64().unwrap())
        .collect();
    let (mut line, mut start) = (0, 0);
    let mut shown = Vec::new();
    for token in data.chunks(5) {
        start = if token[0] == 0 {
            start + token[1]
        } else {
            token[1]
        };
        line += token[0];
        let of_line = session
            .text()
            .lines()
            .nth(usize::try_from(line).unwrap())
            .unwrap();
        let text: String = of_line
            .chars()
            .skip(usize::try_from(start).unwrap())
            .take(usize::try_from(token[2]).unwrap())
            .collect();
        shown.push(format!(
            "{text}:{}",
            super::tokens::TYPES[usize::try_from(token[3]).unwrap()]
        ));
    }
    let expected = [
        "b:variable",
        "a:variable",
        "==:operator",
        "''é'':string",
        "&&:operator",
        "x:variable",
        "f:method",
        "1:number",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn signature_help_marks_the_argument() {
    let text = policy("  - expression: object.metadata.name.replace('a', ⟨⟩\n");
    let session = Session::new(&text, &[]);
    let help = session
        .request("textDocument/signatureHelp", Value::Null)
        .unwrap();
    assert_eq!(help["activeParameter"], 1);
    assert_eq!(
        help["signatures"][0]["label"],
        "string.replace(string, string) -> string"
    );
    let text = policy("  - expression: variables.containers.all(⟨⟩\n");
    let help = Session::new(&text, &[])
        .request("textDocument/signatureHelp", Value::Null)
        .unwrap();
    assert_eq!(
        help["signatures"][0]["label"],
        "collection.all(x, condition) -> bool"
    );
}

#[test]
fn code_lens_shows_result_of_case() {
    let probe = "apiVersion: vap-status.dev/v1alpha1\nkind: PolicyProbe\nmetadata: {name: p}\nspec:\n  policyName: limit.example.com\n  \
                 bindings: Implied\n  cases:\n  - name: large\n    request:\n      object:\n        apiVersion: apps/v1\n        kind: Deployment\n        \
                 metadata: {name: web, namespace: default}\n        spec:\n          replicas: 51\n          selector: {matchLabels: {app: web}}\n          \
                 template:\n            metadata: {labels: {app: web}}\n            spec: {containers: [{name: web, image: web}]}\n    \
                 expect: {decision: Deny}\n";
    let policy =
        policy("  - expression: object.spec.replicas <= variables.max\n    message: too many\n");
    let session = Session::new(probe, &[&policy]);
    let lenses = session
        .request("textDocument/codeLens", Value::Null)
        .unwrap();
    assert_eq!(lenses[0]["command"]["title"], "passed: Deny, too many");
    assert_eq!(lenses[0]["range"]["start"]["line"], 7);
    let command =
        json!({"command": "vap.showCase", "arguments": lenses[0]["command"]["arguments"]});
    let shown = session
        .request("workspace/executeCommand", command)
        .unwrap();
    assert!(
        shown
            .as_str()
            .unwrap()
            .contains("object.spec.replicas = 51"),
        "{shown}"
    );
}

#[test]
fn requests_at_each_position_succeed() {
    let text = policy(
        "  - expression: \"a.b('é\\u0041😀', [x]) ? {y: 1} : z.?w\"\n    message: 'x\n\n      y'\n",
    );
    let broken = text.replace(']', "");
    for text in [
        text.as_str(),
        broken.as_str(),
        "",
        "a: [",
        "{\"a\": \"b\"}",
        "--- x\n",
        "- \n-",
    ] {
        for (byte, _) in text.char_indices().step_by(3) {
            let (before, after) = text.split_at(byte);
            let session = Session::new(&format!("{before}{CURSOR}{after}"), &[]);
            for method in [
                "textDocument/completion",
                "textDocument/hover",
                "textDocument/signatureHelp",
                "textDocument/definition",
            ] {
                assert!(session.request(method, Value::Null).is_ok());
            }
        }
    }
}
