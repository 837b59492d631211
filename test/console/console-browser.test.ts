import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mustCreate, rbacPath, roleOf } from '../authentication/token-users.ts';
import {
  adminToken,
  configMap,
  freshNamespace,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { type BrowserPage, chromium, openBrowser } from './chromium.ts';
import { type BuiltConsole, buildConsole } from './console.ts';

/** The console as it is built, in a browser where there is one. */
describe.skipIf(chromium === undefined)('in a browser', () => {
  let built: BuiltConsole;
  let server: TestServer;
  let page: BrowserPage;
  beforeAll(async () => {
    built = await buildConsole();
    server = await startTestServer({ console: { directory: built.directory } });
    page = await openBrowser(`${server.url}/console/`);
    await page.until(`document.querySelector('.sign-in form input')`);
  }, 90_000);
  afterAll(async () => {
    await page?.close();
    await server?.stop();
    built?.remove();
  });

  const text = JSON.stringify;
  const clickOn = (label: string) =>
    page.run(`[...document.querySelectorAll('button, a')]
      .find((one) => one.textContent === ${text(label)}).click()`);
  const sees = (wanted: string) => page.until(`document.body.innerText.includes(${text(wanted)})`);

  test('CLIENT-4: one signs in by typing; the token is in the tab alone', async () => {
    await page.run(`document.querySelector('.sign-in input').focus()`);
    await page.send('Input.insertText', { text: adminToken });
    await clickOn('Sign in');
    await sees('It serves');
    expect(await page.run('Object.values(sessionStorage)')).toEqual([adminToken]);
    expect(await page.run('localStorage.length')).toBe(0);
    expect(await page.run('document.cookie')).toBe('');
    expect(await page.run('location.href')).not.toContain(adminToken);
    expect(await page.run('document.documentElement.outerHTML')).not.toContain(adminToken);
    // A reload goes on with it.
    await page.send('Page.reload');
    await sees('It serves');
  }, 60_000);

  test('CLIENT-4: a table changes before one’s eyes, names being text', async () => {
    const hostile = '<img src=x onerror=document.title="hit">';
    await page.run(`location.hash = '#/t/rbac.authorization.svc.io/v1/clusterroles'`);
    await page.until(`document.querySelector('.state.live')`);
    await mustCreate(
      server,
      `${rbacPath}/clusterroles`,
      roleOf('ClusterRole', hostile, { rules: [] }),
    );
    await sees(hostile);
    expect(await page.run(`document.querySelectorAll('img').length`)).toBe(0);
    expect(await page.run('document.title')).toBe('ClusterRole objects – Wheelhouse');
    await clickOn(hostile);
    await page.until(`document.querySelector('h1').textContent === ${text(hostile)}`);
    await sees(`name: ${hostile}`);
  }, 60_000);

  test('CLIENT-4: the browser itself refuses markup, scripts and other servers', async () => {
    const refused = (expression: string) =>
      page.run(
        `(async () => { try { ${expression}; return 'done'; } catch (error) { return error.name; } })()`,
      );
    expect(await refused(`document.body.innerHTML = '<b>x</b>'`)).toBe('TypeError');
    expect(await refused(`document.body.insertAdjacentHTML('beforeend', '<b>x</b>')`)).toBe(
      'TypeError',
    );
    expect(await refused(`setTimeout('document.title = 1')`)).toBe('TypeError');
    expect(await refused(`await fetch('https://127.0.0.1:9/')`)).toBe('TypeError');
    const inline = `(() => {
      const made = document.createElement('a');
      made.href = 'javascript:document.title="hit"';
      document.body.append(made);
      made.click();
      made.remove();
    })()`;
    await page.run(inline).catch(() => {});
    expect(await page.run('document.title')).not.toBe('hit');
  }, 60_000);

  test('CLIENT-4: one edits with the causes at hand, and saves', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    await mustCreate(server, path, configMap('edited'));
    await page.run(`location.hash = '#/o/core/v1/configmaps/${namespace}/edited?tab=edit'`);
    await page.until(`document.querySelector('textarea')?.value.includes('a: "1"')`);
    const replace = (before: string, after: string) =>
      page.run(`(() => {
        const area = document.querySelector('textarea');
        const at = area.value.indexOf(${text(before)});
        area.focus();
        area.setRangeText(${text(after)}, at, at + ${before.length}, 'end');
        area.dispatchEvent(new Event('click'));
      })()`);
    await replace('a: "1"', 'a b: "1"');
    await clickOn('Validate');
    await sees('data[a b]');
    await page.until(`document.querySelector('.faults button')`);
    await page.run(`document.querySelector('.faults button').click()`);
    const chosen = `(({ value, selectionStart: from, selectionEnd: to }) => value.slice(from, to))`;
    expect(await page.run(`${chosen}(document.querySelector('textarea'))`)).toBe('  a b: "1"');
    await replace('a b: "1"', 'a: "2"');
    // What the field is about stands beside it.
    await page.until(`document.querySelector('.explain nav').textContent === 'ConfigMapdataa' ||
      document.querySelector('.explain nav').textContent === 'ConfigMapdata'`);
    await clickOn('Save');
    await sees('Saved.');
    expect((await server.get(`${path}/edited`)).body.data).toEqual({ a: '2' });
  }, 60_000);

  test('CLIENT-4: it fits a phone, and every field has a name', async () => {
    const metrics = { width: 390, height: 800, deviceScaleFactor: 1, mobile: true };
    await page.send('Emulation.setDeviceMetricsOverride', metrics);
    for (const hash of ['#/', '#/t/apps/v1/deployments', '#/a/ask', '#/a/mine']) {
      await page.run(`location.hash = ${text(hash)}`);
      await page.until(`document.querySelector('main h1')`);
      const wide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
      expect(await page.run(wide), hash).toBe(0);
      const nameless = `[...document.querySelectorAll('input, select, textarea')]
        .filter((one) => one.labels.length === 0 && !one.ariaLabel).length`;
      expect(await page.run(nameless), hash).toBe(0);
    }
    await page.send('Emulation.clearDeviceMetricsOverride');
  }, 60_000);

  test('CLIENT-4: nothing on the way was against the page’s own policy', () => {
    // A browser also tells of answers, and of a field that it did not focus since another was sooner.
    const isNoRefusal = /status of 4\d\d|^Autofocus processing was blocked/;
    const refusals = page.complaints.filter((one) => !isNoRefusal.test(one));
    // Those that the test above asked for, and no other.
    const asked = /Trusted|javascript:|127\.0\.0\.1:9|trusted-types|require-trusted/;
    expect(refusals.filter((one) => !asked.test(one))).toEqual([]);
  });
});
