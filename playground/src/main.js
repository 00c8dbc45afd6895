// The page: reads the editors and fields, calls the engine after each change, and shows the results.
import { applyEdits, createEditor, goTo, setText, showDiagnostics, text } from './editor.js';
import { Engine } from './engine.js';
import { examples } from './examples.js';
import { changes, costTable, element, plural, renderDecision, renderFindings } from './results.js';
import { decode, encode } from './share.js';

/** The file name of the policies in the engine's locations. */
const POLICIES = 'policies.yaml';

/** Time between the last change and the call of the engine, in milliseconds. */
const DELAY = 250;

const byId = (id) => document.getElementById(id);
const status = byId('status');
const fields = { operation: byId('operation'), namespace: byId('namespace'), user: byId('user'), groups: byId('groups') };

let timer;
const changed = () => {
  clearTimeout(timer);
  timer = setTimeout(update, DELAY);
};

const editors = {
  policies: createEditor(byId('policies-editor'), 'Policies (YAML)', changed),
  object: createEditor(byId('object-editor'), 'Object of the request (YAML)', changed),
  oldObject: createEditor(byId('old-object-editor'), 'Old object of the request (YAML)', changed),
  more: createEditor(byId('more-editor'), 'More fields of the request (YAML)', changed),
  params: createEditor(byId('params-editor'), 'Params (YAML)', changed),
};
const sections = { oldObject: byId('old-object-details'), more: byId('more-details'), params: byId('params-details') };

function state() {
  const all = { version: byId('version').value };
  for (const [name, editor] of Object.entries(editors)) all[name] = text(editor);
  for (const [name, field] of Object.entries(fields)) all[name] = field.value;
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
}

function setState(values) {
  const of = (name) => (typeof values[name] === 'string' ? values[name] : '');
  for (const [name, editor] of Object.entries(editors)) setText(editor, of(name));
  for (const [name, field] of Object.entries(fields)) field.value = of(name);
  for (const [name, section] of Object.entries(sections)) section.open = of(name) !== '';
  const version = byId('version');
  if ([...version.options].some((option) => option.value === of('version'))) version.value = of('version');
}

let engine;
let round = 0;

async function update() {
  clearTimeout(timer);
  if (!engine) return;
  round += 1;
  const [own, current] = [round, state()];
  status.textContent = 'Checking…';
  const { version = '', policies = '' } = current;
  const texts = [{ name: POLICIES, text: policies }];
  const request = {
    object: current.object, oldObject: current.oldObject, request: current.more,
    operation: current.operation, namespace: current.namespace, user: current.user,
    groups: (current.groups ?? '').split(',').map((it) => it.trim()).filter(Boolean),
  };
  const evaluated = current.params ? [...texts, { name: 'params.yaml', text: current.params }] : texts;
  const settle = async (call, show) => {
    try {
      const report = await call;
      if (own === round) show(report, undefined);
    } catch (error) {
      if (own === round && error.reason !== 'superseded') show(undefined, error);
    }
  };
  await Promise.all([
    settle(engine.call('check', { texts, version }), showCheck),
    settle(engine.call('decide', { texts: evaluated, version, request }), showDecision),
  ]);
  if (own === round) {
    status.textContent = `Findings: ${byId('findings-count').textContent}. Decision: ${byId('decision').textContent}.`;
    document.documentElement.dataset.round = String(own);
  }
}

const explain = (error) => error.reason === 'trap'
  ? `The engine stopped with an internal error and was restarted: ${error.message}`
  : `The engine has no result: ${error.message}`;

function showCheck(report, error) {
  const count = byId('findings-count');
  const details = byId('costs-details');
  if (error) {
    count.textContent = 'unknown';
    showDiagnostics(editors.policies, []);
    byId('findings').replaceChildren(element('li', { class: 'finding error' }, explain(error)));
    details.hidden = true;
    return;
  }
  const { findings, summary } = report;
  const counts = [[summary.errors, 'error'], [summary.warnings, 'warning'], [summary.notes, 'note']];
  count.textContent = counts.filter(([n]) => n > 0).map(([n, noun]) => plural(n, noun)).join(', ') || 'none';
  renderFindings(byId('findings'), findings, { goTo: goToPlace, apply, tryWitness });
  const places = findings.flatMap((finding) => [finding, ...(finding.also ?? []).map((other) => ({
    ...finding, line: other.line, column: other.column, endColumn: other.column + finding.endColumn - finding.column,
  }))]);
  showDiagnostics(editors.policies, places.filter((it) => it.line).map((finding) => ({
    line: finding.line, column: finding.column, endColumn: finding.endColumn,
    severity: finding.severity === 'note' ? 'info' : finding.severity,
    source: finding.rule,
    message: [finding.message, finding.help].filter(Boolean).join('\n'),
    actions: changes(finding).map((change) => ({ name: change.title, apply: () => apply(change) })),
  })));
  const table = costTable(report);
  details.hidden = !table;
  byId('costs').replaceChildren(...(table ? [table] : []));
}

function showDecision(report, error) {
  const decision = byId('decision');
  if (error) {
    decision.textContent = 'unknown';
    decision.className = 'count decision-Unknown';
    const shown = error.reason === 'input' ? error.message : explain(error);
    byId('results').replaceChildren(element('p', {}, shown));
    return;
  }
  decision.textContent = report.decision;
  decision.className = `count decision-${report.decision}`;
  renderDecision(byId('results'), report, goToPlace);
}

const goToPlace = ({ line, column }) => goTo(editors.policies, line, column);

function apply(change) {
  applyEdits(editors.policies, change.edits);
  const [first] = change.edits;
  goTo(editors.policies, first.line, first.column);
}

/** Fills in the request of a witness. */
async function tryWitness({ witness }) {
  const yaml = async (value) => value ? (await engine.call('yaml', JSON.stringify(value))).yaml : '';
  const { request, params, namespaceObject } = witness;
  const user = request.userInfo ?? {};
  const more = { resource: request.resource, subResource: request.subResource || undefined, namespaceObject };
  const moreUser = { uid: user.uid, extra: user.extra };
  if (Object.values(moreUser).some(Boolean)) more.userInfo = moreUser;
  if (!request.namespace) delete more.namespaceObject;
  setState({
    ...state(),
    operation: request.operation, namespace: request.namespace ?? '',
    user: user.username ?? '', groups: (user.groups ?? []).join(', '),
    object: await yaml(request.object), oldObject: await yaml(request.oldObject),
    more: await yaml(JSON.parse(JSON.stringify(more))), params: await yaml(params),
  });
  await update();
  byId('decision-section').scrollIntoView({ block: 'nearest' });
  status.textContent = `The request is the witness. Decision: ${byId('decision').textContent}.`;
}

async function share() {
  const address = new URL(location.href);
  address.hash = await encode(state());
  history.replaceState(null, '', address);
  try {
    await navigator.clipboard.writeText(address.href);
    status.textContent = 'The link is copied. It contains all texts; nothing is sent to a server.';
  } catch {
    status.textContent = 'Copying is not possible: use the address of the page as the link. It contains all texts.';
  }
}

function fillSelects({ versions }) {
  byId('version').replaceChildren(...versions.map((it) => element('option', {}, it)));
  const select = byId('example');
  select.replaceChildren(...examples.map((it, n) => element('option', { value: n }, it.name)));
  select.addEventListener('change', () => {
    setState({ ...examples[Number(select.value)].state, version: byId('version').value });
    history.replaceState(null, '', location.pathname + location.search);
    update();
  });
}

async function open() {
  try {
    const shared = await decode(location.hash);
    if (shared) byId('example').selectedIndex = -1;
    setState(shared ?? examples[0].state);
    return '';
  } catch (error) {
    setState(examples[0].state);
    return `The link cannot be read: ${error.message}`;
  }
}

async function start() {
  const loaded = new Engine(await Engine.load('playground.wasm'));
  fillSelects(await loaded.call('versions', ''));
  const problem = await open();
  engine = loaded;
  await update();
  if (problem) status.textContent = problem;
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

byId('share').addEventListener('click', share);
byId('version').addEventListener('change', update);
for (const field of Object.values(fields)) field.addEventListener('input', changed);
window.addEventListener('hashchange', async () => {
  const problem = await open();
  await update();
  if (problem) status.textContent = problem;
});
start().catch((error) => { status.textContent = `The engine cannot be loaded: ${error.message}`; });

// For tests.
window.playground = {
  state, setState, update, call: (name, input) => engine.call(name, input),
  setDeadline(milliseconds) { engine.deadline = milliseconds; },
};
