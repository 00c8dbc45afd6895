// Renders the reports of the engine. Texts are never parsed as HTML.

/** Maximum number of findings in the list. */
const MAX_FINDINGS = 200;

/** Creates an element. Strings among the children become text. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== ''));
  return node;
}

export const plural = (n, noun) => `${n} ${noun}${n === 1 ? '' : 's'}`;

const edits = (finding) => finding.fix ? [finding.fix, ...(finding.also ?? []).flatMap((it) => it.fix ?? [])] : [];

/** Returns the changes that a finding offers: each has a title, details and edits. */
export function changes(finding) {
  const fix = edits(finding);
  const suggestions = (finding.suggestions ?? []).filter((it) => it.edits.length > 0);
  const isShown = fix.length > 0 && suggestions.length === 0;
  const fixes = isShown ? [{ title: 'Apply fix', details: '', edits: fix }] : [];
  return [
    ...fixes,
    ...suggestions.map((it) => ({ title: `Use ${it.text}`, details: it.effect.message, edits: it.edits })),
  ];
}

/** Renders the findings into a list. `actions` has the functions goTo, apply and tryWitness. */
export function renderFindings(list, findings, actions) {
  const items = findings.slice(0, MAX_FINDINGS).map((finding) => {
    const { severity, rule, message, help, kinds = [], line, column, witness } = finding;
    const place = line
      ? element('button', { type: 'button', class: 'link', onclick: () => actions.goTo(finding) }, `line ${line}:${column}`)
      : '';
    const buttons = changes(finding).map((change) => element('span', { class: 'change' },
      element('button', { type: 'button', onclick: () => actions.apply(change) }, change.title),
      change.details && ` ${change.details}`));
    if (witness) {
      buttons.unshift(element('span', { class: 'change' },
        element('button', { type: 'button', class: 'try', onclick: () => actions.tryWitness(finding) }, 'Try it'),
        witness.error ? ` a request that fails: ${witness.error}` : ' an example request'));
    }
    return element('li', { class: `finding ${severity}` },
      element('div', { class: 'head' },
        element('strong', { class: 'severity' }, severity), ' ', place, ' ',
        element('a', { href: `../rules.html#${rule}`, target: '_blank', rel: 'noopener' }, rule)),
      element('p', {}, message, kinds.length > 0 ? ` on ${kinds.join(', ')}` : ''),
      help ? element('p', { class: 'help' }, help) : '',
      ...buttons);
  });
  if (findings.length > MAX_FINDINGS) {
    items.push(element('li', {}, `${findings.length - MAX_FINDINGS} more findings`));
  }
  list.replaceChildren(...items);
}

const number = new Intl.NumberFormat('en');

/** Returns the table of estimated costs, or undefined if there are none. */
export function costTable(report) {
  const rows = report.policies.flatMap((policy) => (policy.costs ?? []).map((cost) => ({ policy, cost })));
  if (rows.length === 0) return undefined;
  const head = ['policy', 'field', 'maximum', 'limit', 'share'];
  const bound = (n) => n === null || n === undefined ? 'unbounded' : number.format(n);
  return element('table', {},
    element('thead', {}, element('tr', {}, ...head.map((it) => element('th', { scope: 'col' }, it)))),
    element('tbody', {}, ...rows.map(({ policy, cost }) => element('tr', {},
      element('td', {}, policy.name ?? policy.policy ?? ''),
      element('td', {}, element('code', {}, cost.fieldRef)),
      element('td', {}, bound(cost.max)),
      element('td', {}, number.format(cost.limit)),
      element('td', {}, cost.share === null || cost.share === undefined ? '' : `${(cost.share * 100).toPrecision(2)}%`)))));
}

/** Returns the subexpressions as nested lists. `parts` is in depth-first order, with the depth of each part. */
function tree(parts) {
  const root = element('ul', { class: 'tree' });
  const stack = [{ depth: -1, list: root }];
  for (const part of parts) {
    while (stack.length > 1 && stack.at(-1).depth >= part.depth) stack.pop();
    const values = part.values.join(', ') + (part.evaluations > part.values.length ? ', …' : '');
    const item = element('li', {},
      element('code', {}, part.text), ' = ', element('code', { class: values.startsWith('error: ') ? 'value failed' : 'value' }, values),
      element('span', { class: 'cost' }, ` cost ${number.format(part.cost)}`),
      part.element ? element('span', { class: 'dim' }, ` decided by ${part.element}`) : '');
    stack.at(-1).list.append(item);
    const list = element('ul', {});
    stack.push({ depth: part.depth, list });
    item.append(list);
  }
  for (const list of root.querySelectorAll('ul:empty')) list.remove();
  return root;
}

function traceOf(trace, goTo) {
  const details = element('details', { open: trace.decides },
    element('summary', {}, element('code', {}, trace.fieldRef), trace.decides ? ' decides' : ''),
    trace.file === 'policies.yaml'
      ? element('button', { type: 'button', class: 'link', onclick: () => goTo(trace) }, `line ${trace.line}:${trace.column}`)
      : '',
    tree(trace.subexpressions));
  if (trace.moreSubexpressions) details.append(element('p', { class: 'dim' }, `${trace.moreSubexpressions} more subexpressions`));
  if (trace.changes) {
    const alternatives = trace.changes.alternatives.map((terms) => element('li', {}, element('code', {}, terms.join(' and '))));
    details.append(element('p', {}, `Would be ${trace.changes.value} with:`), element('ul', {}, ...alternatives));
  }
  return details;
}

const expressionRow = (it, noun) => element('li', {},
  element('code', {}, it.fieldRef), it.name ? ` ${it.name}` : '', ': ',
  element('strong', { class: `result-${it.result}` }, it.result), it.message ? `: ${it.message}` : '', noun);

function policyResult(policy, goTo) {
  const lines = [];
  const add = (label, value) => { if (value) lines.push(element('li', {}, `${label}: ${value}`)); };
  add('message', policy.message && policy.message !== policy.why ? policy.message : '');
  add('reason', policy.reason && `${policy.reason} (${policy.code})`);
  for (const binding of policy.bindings) {
    const actions = policy.kind ? '' : binding.validationActions.join(', ');
    const result = binding.error ?? (binding.matches ? actions || 'matches' : 'does not match');
    if (!policy.isBindingImplied) add(`binding ${binding.name}`, result);
  }
  if (policy.isBindingImplied && policy.verdict !== 'Refused') lines.push(element('li', {}, 'no binding: evaluated as if bound with Deny to everything'));
  for (const evaluation of policy.evaluations) {
    const params = evaluation.params ? ` (params ${evaluation.params})` : '';
    for (const it of [...evaluation.matchConditions, ...evaluation.validations]) lines.push(expressionRow(it, params));
  }
  for (const it of policy.mutations ?? []) lines.push(expressionRow(it, ''));
  for (const warning of policy.warnings) add('warning', warning);
  const messages = policy.evaluations.flatMap((it) => [...it.matchConditions, ...it.validations]).map((it) => it.message);
  for (const error of policy.errors.filter((it) => !messages.includes(it))) add('error', error);
  for (const [key, value] of Object.entries(policy.auditAnnotations)) add(`audit annotation ${key}`, value);
  if (policy.trace.length > 0) add('cost', number.format(policy.costUsed));
  return element('article', { class: `policy verdict-${policy.verdict}` },
    element('h3', {}, element('strong', {}, policy.verdict), ` ${policy.name}`),
    element('p', {}, policy.why),
    element('ul', { class: 'lines' }, ...lines),
    ...policy.trace.map((trace) => traceOf(trace, goTo)),
    policy.mutated ? element('pre', { tabindex: '0', 'aria-label': 'Change of the object' }, policy.mutated.change) : '');
}

/** Renders the decisions. */
export function renderDecision(parent, report, goTo) {
  const nodes = [];
  const { request } = report;
  if (request) {
    const name = [request.namespace, request.name].filter(Boolean).join('/');
    nodes.push(element('p', { class: 'dim' },
      `${request.operation} ${request.apiVersion} ${request.resource} ${name} by ${request.user}, Kubernetes ${report.kubernetes}`));
  }
  for (const finding of report.findings.filter((it) => it.severity !== 'note')) {
    nodes.push(element('p', { class: `finding ${finding.severity}` }, `${finding.severity}: ${finding.message}`));
  }
  nodes.push(...report.policies.map((policy) => policyResult(policy, goTo)));
  if (report.policies.length === 0) nodes.push(element('p', {}, 'There are no policies to evaluate.'));
  if (report.notMutated) nodes.push(element('p', {}, `The mutated object is unknown: ${report.notMutated}`));
  parent.replaceChildren(...nodes);
}
