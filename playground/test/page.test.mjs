// Tests the page in Chromium and Firefox: examples, links, broken and hostile input, offline use, accessibility.
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { BROWSERS, launch, open, repository, results, serve, show } from './browser.mjs';

const screenshots = join(repository, 'target/playground-screenshots');
const axe = await readFile(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');


/** The time until the first results, in milliseconds. A busy machine needs more. */
const READY = Number(process.env.VAP_PLAYGROUND_READY ?? 2_000);

const POLICY = (expression) => `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: test}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: ['*'], resources: [configmaps]}
  validations:
  - expression: ${JSON.stringify(expression)}
`;
const OBJECT = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {size: "1"}\n';

for (const name of Object.keys(BROWSERS)) {
  describe(name, () => {
    let server;
    let started;
    before(async () => {
      await mkdir(screenshots, { recursive: true });
      server = await serve();
      started = await launch(name);
    });
    after(async () => {
      await started?.close();
      await server?.stop();
    });

    it('page is ready within 2 s and requests only its own files', async () => {
      server.paths.length = 0;
      const { page, problems } = await open(started.browser, server.address);
      const ready = await page.evaluate(() => Number(document.documentElement.dataset.ready));
      console.log(`${name}: ready after ${ready} ms`);
      const loaded = await page.evaluate(() => performance.getEntriesByType('resource').map((it) => it.name));
      assert.deepEqual(loaded.filter((it) => !it.startsWith(server.address)), []);
      assert.deepEqual([...new Set(server.paths)].sort(),
        ['', 'main.css', 'main.js', 'playground.wasm', 'worker.js'].map((it) => `/playground/${it}`));
      assert.deepEqual(problems, []);
      assert.ok(ready < READY, `${ready} ms`);
      await page.close();
    });

    it('examples have the expected findings and decisions', async () => {
      const { page, problems } = await open(started.browser, server.address);
      const names = await page.$$eval('#example option', (all) => all.map((it) => it.textContent));
      const actual = [];
      for (const [n, example] of names.entries()) {
        await page.evaluate(async (value) => {
          const select = document.getElementById('example');
          select.value = value;
          select.dispatchEvent(new Event('change'));
          await window.playground.update();
        }, String(n));
        const shown = await results(page);
        assert.doesNotMatch(shown.status + shown.findings + shown.results, /engine/, example);
        actual.push([example, shown.decision, shown.rules.join(' ')]);
      }
      const expected = JSON.parse(await readFile(new URL('examples.json', import.meta.url), 'utf8'));
      assert.deepEqual(actual, expected);
      assert.deepEqual(problems, []);
      await page.close();
    });

    it('results equal those of the functions that the engine exports', async () => {
      const { page } = await open(started.browser, server.address);
      const shown = await show(page, { policies: POLICY('object.data.size == "2"'), object: OBJECT, user: 'ann' });
      assert.equal(shown.decision, 'Deny');
      assert.match(shown.results, /CREATE v1 configmaps b\/a by ann/);
      assert.match(shown.results, /object\.data\.size = "1"/);
      assert.match(shown.results, /cost/);
      await page.close();
    });

    it('witness fills the request', async () => {
      const { page } = await open(started.browser, server.address);
      await show(page, { policies: POLICY('object.data.size == "2"'), object: '' });
      const before = await results(page);
      assert.match(before.findings, /Try it/);
      await page.click('button.try');
      await page.waitForFunction(() => document.getElementById('status').textContent.includes('is the witness'));
      const shown = await results(page);
      assert.equal(shown.decision, 'Deny');
      assert.match(shown.results, /no such key|no such field/);
      const object = await page.evaluate(() => window.playground.state().object);
      assert.match(object, /^apiVersion: v1\nkind: ConfigMap\n/m);
      await page.close();
    });

    it('change of a finding edits the policy', async () => {
      const { page } = await open(started.browser, server.address);
      await show(page, { policies: POLICY('object.data.size == "2"'), object: OBJECT });
      const n = (await results(page)).rules.length;
      await page.click('.change button:not(.try)');
      await page.waitForFunction((old) => document.querySelectorAll('#findings .finding').length < old, {}, n);
      const { policies } = await page.evaluate(() => window.playground.state());
      assert.doesNotMatch(policies, /"object\.data\.size == /);
      await page.close();
    });

    it('shared link restores texts and fields', async () => {
      const { page } = await open(started.browser, server.address);
      const values = { policies: `${POLICY('true')}# é 😀\n`, object: OBJECT, oldObject: OBJECT, user: 'ann', groups: 'a, b', namespace: 'b', operation: 'UPDATE', version: '1.31' };
      await show(page, values);
      await page.click('#share');
      await page.waitForFunction(() => location.hash.length > 10);
      const address = page.url();
      const other = await open(started.browser, address);
      assert.deepEqual(await other.page.evaluate(() => window.playground.state()), values);
      assert.match((await results(other.page)).results, /Kubernetes 1\.31/);
      await other.page.close();
      for (const damaged of ['#1.AAAA', '#1.%%%', '#2.x', `#1.${'A'.repeat(100)}`]) {
        const broken = await open(started.browser, server.address + damaged);
        assert.deepEqual(broken.problems, []);
        await broken.page.close();
      }
      await page.close();
    });

    it('broken input has findings and no errors of the page', async () => {
      const { page, problems } = await open(started.browser, server.address);
      const texts = ['a: [', 'kind: ', '\t', '"', '- 1', '{}', POLICY('object.data.'), POLICY('(((').slice(0, -3), '---\n---\n', '\u0000', '&a [*a]', 'a: 1\r\nb: [\r\n'];
      for (const policies of texts) {
        const shown = await show(page, { policies, object: policies });
        assert.doesNotMatch(shown.findings + shown.results, /internal error|stopped/, JSON.stringify(policies));
      }
      const shown = await show(page, { policies: POLICY('object.data.size ==') });
      assert.match(shown.rules.join(' '), /syntax/);
      assert.match(shown.results, /no request/);
      assert.deepEqual(problems, []);
      await page.close();
    });

    it('hostile input ends at the deadline, and the page remains usable', async () => {
      const { page } = await open(started.browser, server.address);
      const start = Date.now();
      const heavy = Array.from({ length: 400 }, (_, n) => POLICY(
        `[1,2,3,4,5,6,7,8].all(a, [1,2,3,4,5,6,7,8].all(b, [1,2,3,4,5,6,7,8].all(c, object.data.all(k, k.size() + a + b + c > ${n}))))`,
      ).replace('name: test', `name: test-${n}`)).join('---\n');
      const shown = await Promise.race([
        show(page, { policies: heavy, object: OBJECT }),
        new Promise((_, reject) => { setTimeout(() => reject(new Error('the page hangs')), 60_000); }),
      ]);
      console.log(`${name}: hostile input ${Date.now() - start} ms, findings ${shown.count}, decision ${shown.decision}`);
      const after = await show(page, { policies: POLICY('object.data.size == "1"'), object: OBJECT });
      assert.equal(after.decision, 'Allow');
      // A call that never ends is stopped, and the next call has a result.
      await page.evaluate(() => { window.playground.setDeadline(300); });
      const stopped = await show(page, { policies: heavy, object: OBJECT });
      assert.match(stopped.findings, /stopped after/);
      await page.evaluate(() => { window.playground.setDeadline(10_000); });
      const again = await show(page, { policies: POLICY('object.data.size == "1"'), object: OBJECT });
      assert.equal(again.decision, 'Allow');
      await page.close();
    });

    it('deeply nested input does not end the page', async () => {
      const { page } = await open(started.browser, server.address);
      for (const depth of [60, 120, 240, 100_000]) {
        for (const expression of [`${'('.repeat(depth)}true${')'.repeat(depth)}`, `${'['.repeat(depth)}1${']'.repeat(depth)} == []`, `${'true ? true : '.repeat(depth)}true`, `object.data.size == '' ${'+ "a"'.repeat(depth)}`]) {
          const shown = await show(page, { policies: POLICY(expression), object: OBJECT });
          const isTrap = /internal error/.test(shown.findings + shown.results);
          if (isTrap) console.log(`${name}: trap at depth ${depth}: ${expression.slice(0, 20)}`);
        }
        const deep = `${'{a: '.repeat(depth)}1${'}'.repeat(depth)}`;
        await show(page, { policies: deep, object: deep });
      }
      const shown = await show(page, { policies: POLICY('object.data.size == "1"'), object: OBJECT });
      assert.equal(shown.decision, 'Allow');
      await page.close();
    });

    it('page works offline after it has loaded', async () => {
      const own = await serve();
      const { page, problems } = await open(started.browser, own.address);
      await own.stop();
      own.paths.length = 0;
      const shown = await show(page, { policies: POLICY('object.data.size == "2"'), object: OBJECT });
      assert.equal(shown.decision, 'Deny');
      assert.deepEqual([own.paths, problems], [[], []]);
      await page.close();
    });

    it('keyboard reaches the editors and results, and typing updates them', async () => {
      const { page } = await open(started.browser, server.address);
      await show(page, { policies: '', object: OBJECT });
      const names = [];
      for (let n = 0; n < 14; n += 1) {
        await page.keyboard.press('Tab');
        names.push(await page.evaluate(() => document.activeElement.ariaLabel ?? document.activeElement.id ?? ''));
      }
      assert.ok(names.includes('Policies (YAML)'), names.join(', '));
      assert.ok(names.includes('Object of the request (YAML)'), names.join(', '));
      assert.ok(names.indexOf('Policies (YAML)') < names.indexOf('Object of the request (YAML)'), names.join(', '));
      await page.focus('#policies-editor .cm-content');
      await page.keyboard.type('kind: Secret');
      await page.waitForFunction(() => document.getElementById('findings-count').textContent !== 'none');
      await page.close();
    });

    for (const [width, height] of [[1280, 900], [390, 844]]) {
      for (const dark of [false, true]) {
        if (dark && name === 'firefox') continue;
        it(`page has no accessibility violations at ${width} px, ${dark ? 'dark' : 'light'}`, async () => {
          const { page } = await open(started.browser, server.address, { width, height, dark });
          await page.select('#example', '1');
          await page.evaluate(() => window.playground.update());
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
          assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
          const path = join(screenshots, `${name}-${width}${dark ? '-dark' : ''}.png`);
          await page.screenshot({ path, fullPage: true });
          await page.evaluate(axe);
          const { violations } = await page.evaluate(() => window.axe.run());
          // The text in a scroller of CodeMirror is the tab stop, and moving its cursor scrolls.
          const isScroller = (node) => node.html.includes('class="cm-scroller"');
          const real = violations.filter((it) => it.id !== 'scrollable-region-focusable' || !it.nodes.every(isScroller));
          const found = real.map((it) => `${it.id}: ${it.nodes.map((node) => node.html).slice(0, 3).join(' ')}`);
          assert.deepEqual(found, []);
          await page.close();
        });
      }
    }
  });
}
