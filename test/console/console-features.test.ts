import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';
import { establish } from '../custom-kinds/custom-kinds.ts';
import { configMap, eventually, freshNamespace, startTestServer } from '../support/harness.ts';
import { deploymentOf } from './console.ts';
import {
  accessibilityFaults,
  chromium,
  consoleInBrowser,
  openSignedIn,
  type Screen,
} from './screen.ts';

/** Features of the console in a browser. CONSOLE_SCREENSHOTS=1 saves a screenshot of each screen. */

const on = consoleInBrowser((console) => startTestServer({ console }));
let screen: Screen;

/** Time limit of a test, for a browser on a busy machine. */
const timeout = 120_000;

beforeAll(async () => {
  if (chromium === undefined) return;
  screen = await openSignedIn(on.browser, { url: on.server.url });
}, timeout);
afterEach(() => {
  // All tests share a page, so new errors belong to the test that just ran.
  if (chromium === undefined) return;
  const isRefusedRequest = /status of 4\d\d/;
  expect(screen.errors.filter((error) => !isRefusedRequest.test(error))).toEqual([]);
});

const quoted = (text: string): string => JSON.stringify(text);
const inBrowser = describe.skipIf(chromium === undefined);
const count = (selector: string) => `document.querySelectorAll(${quoted(selector)}).length`;

/** Checks a screen for WCAG 2.2 AA; saves a screenshot if screenshots are kept. */
async function expectAccessible(name: string): Promise<void> {
  await screen.screenshot(name);
  // A changing page may have transient faults; only lasting ones count.
  const options = { message: name };
  await expect.poll(() => accessibilityFaults(screen), options).toEqual([]);
}

/** A Deployment that owns a ReplicaSet that owns Pods. */
async function createOwnershipTree(namespace: string): Promise<string> {
  const apps = `/apis/apps/v1/namespaces/${namespace}`;
  const owner = (kind: string, name: string, uid: string) => ({
    ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid, controller: true }],
  });
  const web = (await on.server.post(`${apps}/deployments`, deploymentOf('web', { replicas: 2 })))
    .body;
  const set = await on.server.post(`${apps}/replicasets`, {
    ...deploymentOf('web-1'),
    kind: 'ReplicaSet',
    metadata: { name: 'web-1', ...owner('Deployment', 'web', web.metadata.uid) },
  });
  for (const name of ['web-1-a', 'web-1-b']) {
    await mustCreate(on.server, `/api/v1/namespaces/${namespace}/pods`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, ...owner('ReplicaSet', 'web-1', set.body.metadata.uid) },
      spec: { containers: [{ name: 'web', image: 'example.com/web:1' }] },
    });
  }
  return web.metadata.uid;
}

inBrowser('the overview', { timeout }, () => {
  test('CLIENT-4: the overview counts objects, charts requests, and shows changes', async () => {
    const namespace = await freshNamespace(on.server);
    await mustCreate(on.server, `/api/v1/namespaces/${namespace}/configmaps`, configMap('counted'));
    await screen.go('#/a/ask');
    await screen.expectText('Check access');
    await screen.go('#/');
    await screen.until(
      `document.querySelector('a.tile[href="#/t/core/v1/configmaps"] .tile-count')`,
    );
    await screen.until(`${count('.chart canvas')} === 2`, 'the charts');
    await screen.until(
      `/\\d/.test([...document.querySelectorAll('.figure-value')][1].textContent)`,
      'a rate',
    );
    let number = 0;
    await eventually(async () => {
      number += 1;
      const path = `/api/v1/namespaces/${namespace}/configmaps/counted?fieldManager=painter`;
      await on.server.patch(path, { data: { number: String(number) } }, 'merge');
      const text = `document.querySelector('.feed').textContent`;
      return screen.run(`${text}.includes(${quoted(`${namespace}/counted`)})`);
    }, 'the change to be shown');
    await screen.expectText('by painter');
    await expectAccessible('overview');
  });
});

inBrowser('lists', { timeout }, () => {
  test('CLIENT-4: only the visible rows of 10,000 are rendered, and keys reach all', async () => {
    const namespace = await freshNamespace(on.server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const names = Array.from(
      { length: 10_000 },
      (_, index) => `row-${String(index).padStart(5, '0')}`,
    );
    for (let at = 0; at < names.length; at += 200) {
      await Promise.all(
        names.slice(at, at + 200).map((name) => mustCreate(on.server, path, configMap(name))),
      );
    }
    await screen.go(`#/t/core/v1/configmaps?ns=${namespace}`);
    await screen.expectText('500 objects, 9500 more');
    const expectFewRows = async (): Promise<void> =>
      expect(await screen.run(count('tbody tr'))).toBeLessThan(80);
    await expectFewRows();
    const box = `document.querySelector('.grid-box')`;
    const lastDrawn = `[...document.querySelectorAll('tbody a')].at(-1)?.textContent`;
    await eventually(async () => {
      await screen.run(`void (${box}.scrollTop = ${box}.scrollHeight)`);
      return screen.run(`${lastDrawn} === 'row-09999'`);
    }, 'the last row');
    await screen.expectText('10000 objects');
    await expectFewRows();
    // The scroll height covers all rows.
    expect(await screen.run(`${box}.scrollHeight`)).toBeGreaterThan(10_000 * 34);
    expect(await screen.run(`document.querySelector('table').ariaRowCount`)).toBe('10001');
    await screen.run(`void (${box}.scrollTop = 5000 * 34)`);
    await screen.expectText('row-05000');
    await expectFewRows();

    // The page has the focus, as when it opens.
    await screen.run(`document.querySelector('main').focus()`);
    const focused = (name: string) =>
      screen.until(`document.activeElement?.textContent === '${name}'`, `the row ${name}`);
    for (const [key, name] of [
      ['End', 'row-09999'],
      ['ArrowUp', 'row-09998'],
      ['Home', 'row-00000'],
      ['j', 'row-00001'],
    ] as const) {
      await screen.press(key);
      await focused(name);
    }
    await expectFewRows();

    await on.server.patch(
      `${path}/row-00001`,
      { data: { a: '1', b: '2', c: '3', d: '4' } },
      'merge',
    );
    const cells = `[...document.querySelectorAll('tr[data-row="1"] td')]
      .map((cell) => cell.textContent)`;
    await screen.until(
      `${cells}.includes('row-00001') && Number(${cells}[2]) >= 4`,
      'the changed cell',
    );
    await mustCreate(on.server, path, configMap('row-00000-next'));
    await screen.expectText('10001 objects');
    await screen.until(`${cells}.includes('row-00000-next')`, 'the new row in its place');
    await on.server.remove(`${path}/row-00000-next`);
    await screen.expectText('10000 objects');
    await expectFewRows();
    await expectAccessible('list');
  });

  test('CLIENT-4: columns are filtered, rows selected by keys, and several deleted', async () => {
    const namespace = await freshNamespace(on.server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    for (const name of ['apple', 'apricot', 'banana']) {
      await mustCreate(on.server, path, configMap(name));
    }
    await screen.go(`#/t/core/v1/configmaps?ns=${namespace}`);
    await screen.expectText('3 objects');
    await screen.page.focus('.grid-box');
    await screen.press('f');
    await screen.fill('Name contains', 'AP');
    await screen.expectText('2 of 3 objects');
    await screen.page.focus('.grid-box');
    const focused = (name: string) =>
      screen.until(`document.activeElement?.textContent === '${name}'`, `the row ${name}`);
    await screen.press('j');
    await focused('apple');
    await screen.press('x');
    await screen.press('ArrowDown');
    await focused('apricot');
    await screen.press('x');
    await screen.expectText('2 selected');
    await expectAccessible('selection');
    await screen.click('Delete…');
    await screen.expectText('Delete 2 configmaps?');
    await expectAccessible('bulk-delete');
    await screen.click('Delete 2');
    await screen.expectText('2 of 2 deleted.');
    await screen.expectText('0 of 1 object');
    const left = (await on.server.get(path)).body.items;
    expect(left.map(({ metadata }: { metadata: { name: string } }) => metadata.name)).toEqual([
      'banana',
    ]);
    await screen.page.focus('.grid-box');
    await screen.press('f');
    await screen.fill('Labels', 'none=such');
    await screen.click('Show');
    await screen.expectText('No objects.');
  });

  test('CLIENT-4: several namespaces are listed together', async () => {
    const [first, second] = [await freshNamespace(on.server), await freshNamespace(on.server)];
    for (const namespace of [first, second]) {
      await mustCreate(on.server, `/api/v1/namespaces/${namespace}/configmaps`, configMap('both'));
    }
    await screen.go('#/t/core/v1/configmaps');
    await screen.fill('Namespaces', `${first},${second}`);
    await screen.until(`${count('tbody a')} === 2`, 'a row of each');
    await screen.until(
      `[...document.querySelectorAll('tbody td:nth-child(2)')].map((cell) => cell.textContent)
        .join() === ${quoted([first, second].sort().join())}`,
      'their namespaces',
    );
    await screen.press('Escape');
  });
});

inBrowser('one object', { timeout }, () => {
  test('CLIENT-4: an object shows its tree, timeline, history, and field owners', async () => {
    const namespace = await freshNamespace(on.server);
    const uid = await createOwnershipTree(namespace);
    const place = `#/o/apps/v1/deployments/${namespace}/web`;
    await screen.go(place);
    await screen.expectText('kind: Deployment');
    await expectAccessible('object');
    await screen.click('Tree');
    await screen.until(`${count('.node')} === 4 && ${count('.graph path')} === 3`, 'the tree');
    expect(await screen.texts('.node-name')).toEqual(
      expect.arrayContaining(['web', 'web-1', 'web-1-a', 'web-1-b']),
    );
    await expectAccessible('tree');

    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/web`;
    const condition = { type: 'Available', status: 'False', reason: 'Waiting', message: 'not yet' };
    await on.server.patch(`${path}/status`, { status: { conditions: [condition] } }, 'merge');
    await mustCreate(on.server, `/api/v1/namespaces/${namespace}/events`, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'web.1' },
      involvedObject: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', namespace, uid },
      reason: 'ScalingReplicaSet',
      message: 'Scaled up to 2',
      type: 'Normal',
    });
    await screen.click('Timeline');
    await screen.expectText('Available is False');
    await screen.expectText('Scaled up to 2');
    await screen.expectText('Created');
    await expectAccessible('timeline');

    await on.server.patch(`${path}?fieldManager=scaler`, { spec: { replicas: 7 } }, 'merge');
    await screen.click('History');
    await screen.expectText('The last write by each manager before this page was opened');
    await screen.until(
      `[...document.querySelectorAll('.by-manager')].some((section) =>
        /^by scaler.*spec\\.replicas27$/.test(section.textContent))`,
      'the change by its manager',
    );
    await expectAccessible('history');
    await screen.click('Fields');
    await screen.expectText('scaler (update)');
    await expectAccessible('fields');
  });

  test('CLIENT-4: a tree with any UIDs of owners leaves the console as it is', async () => {
    const namespace = await freshNamespace(on.server);
    const ownerReferences = ['__proto__', 'constructor', 'toString'].map((uid) => ({
      // The garbage collector cannot look for owners of an unknown kind.
      ...{ apiVersion: 'unknown.example.com/v1', kind: 'Unknown', name: `of-${uid}`, uid },
    }));
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const metadata = { name: 'owned', ownerReferences };
    await mustCreate(on.server, path, configMap('owned', { metadata }));
    const shared = 'Object.getOwnPropertyNames(Object.prototype).length';
    const before = await screen.run(shared);
    await screen.go(`#/o/core/v1/configmaps/${namespace}/owned?tab=tree`);
    await screen.until(`${count('.node')} === 4 && ${count('.graph path')} === 3`, 'the tree');
    expect(await screen.run(shared)).toBe(before);
  });
});

inBrowser('writing', { timeout }, () => {
  test('CLIENT-4: the editor completes, explains, and marks errors while typing', async () => {
    const namespace = await freshNamespace(on.server);
    await createOwnershipTree(namespace);
    await screen.go(`#/o/apps/v1/deployments/${namespace}/web?tab=edit`);
    await screen.until(`document.querySelector('.explain dl')`, 'the schema');
    await screen.editor.setCursorAfter('spec:');
    await screen.press('Enter');
    await screen.page.keyboard.type('min');
    await screen.until(`document.querySelector('.cm-tooltip-autocomplete li')`, 'completions');
    expect(await screen.texts('.cm-completionLabel')).toContain('minReadySeconds');
    await screen.expectText('Seconds that a new Pod must stay ready');
    await screen.screenshot('completion');
    // Keys are ignored for a moment after each change of the list, but clicks are not.
    const choose = `document.querySelector('.cm-tooltip-autocomplete li')?.dispatchEvent(
      new MouseEvent('mousedown', { bubbles: true, cancelable: true }))`;
    await eventually(async () => {
      await screen.run(choose);
      return (await screen.editor.text()).includes('minReadySeconds');
    }, 'the chosen completion');
    await screen.page.keyboard.type('soon');
    await eventually(
      async () => (await screen.editor.text()).includes('\n  minReadySeconds: soon\n'),
      'the completed text',
    );
    await screen.until(`${count('.cm-lintRange-error')} > 0`, 'the mark by the schema');
    // A text that matches the schema may still violate the rules of the server.
    await screen.editor.replace('minReadySeconds: soon', 'minReadySeconds: -1');
    await screen.until(`${count('.cm-lintRange-error')} === 0`, 'the mark to go');
    await screen.until(`${count('.cm-lintRange-error')} > 0`, 'the mark by the server');
    const word = await screen.page.$('.cm-lintRange-error');
    await word?.hover();
    await screen.expectText('must be greater than or equal to 0');
    await screen.expectText('spec.minReadySeconds: integer');
    await expectAccessible('editor');
    await screen.editor.replace('  minReadySeconds: -1\n', '');
    await screen.editor.replace('replicas: 2', 'replicas: 3');
    await screen.click('Validate');
    await screen.expectText('Nothing has been saved.');
    await expectAccessible('dry-run');
    await screen.click('Save');
    await screen.expectText('Saved.');
  });

  test('CLIENT-4: a form made from the schema writes the same text', async () => {
    const crew = { type: 'array', items: { type: 'string' } };
    const spec = {
      type: 'object',
      required: ['color'],
      properties: {
        color: { type: 'string', enum: ['red', 'blue'] },
        seats: { type: 'integer' },
        crew,
      },
    };
    await establish(on.server, {
      group: 'forms.example.com',
      plural: 'boats',
      kind: 'Boat',
      versions: [
        {
          name: 'v1',
          ...{ served: true, storage: true },
          schema: { openAPIV3Schema: { type: 'object', required: ['spec'], properties: { spec } } },
        },
      ],
    });
    const namespace = await freshNamespace(on.server);
    await screen.go(`#/c/forms.example.com/v1/boats?ns=${namespace}`);
    await screen.expectText('New Boat');
    await screen.click('Edit as form');
    await screen.fill('name', 'ark');
    await screen.fill('color', 'blue');
    const addTo = async (field: string) => {
      await screen.run(`(() => {
        const list = [...document.querySelectorAll('.schema-form select.add')]
          .find((select) => [...select.options].some(({ value }) => value === ${quoted(field)}));
        list.value = ${quoted(field)};
        list.dispatchEvent(new Event('change', { bubbles: true }));
      })()`);
    };
    await addTo('seats');
    await screen.fill('seats', '12');
    await addTo('crew');
    await screen.click('Add to crew');
    await screen.fill('crew 1', 'noah');
    await expectAccessible('form');
    await screen.click('Edit as YAML');
    expect(await screen.editor.text()).toContain('seats: 12');
    await screen.click('Save');
    await screen.until(`location.hash.endsWith('/${namespace}/ark')`, 'its page');
    const path = `/apis/forms.example.com/v1/namespaces/${namespace}/boats/ark`;
    expect((await on.server.get(path)).body.spec).toEqual({
      color: 'blue',
      crew: ['noah'],
      seats: 12,
    });
  });

  test('CLIENT-4: files dropped anywhere are applied after a dry run', async () => {
    const namespace = await freshNamespace(on.server);
    await screen.go('#/');
    await screen.expectText('kinds of objects');
    const metadata = `metadata: {name: dropped, namespace: ${namespace}}`;
    const text = `apiVersion: v1\nkind: ConfigMap\n${metadata}\ndata: {a: b}\n`;
    await screen.run(`(() => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([${quoted(text)}], 'dropped.yaml'));
      dataTransfer.items.add(new File(['a: ['], 'broken.yaml'));
      for (const type of ['dragover', 'drop']) {
        const options = { bubbles: true, cancelable: true, dataTransfer };
        document.body.dispatchEvent(new DragEvent(type, options));
      }
    })()`);
    await screen.expectText('would be created');
    await screen.expectText('would be rejected');
    const path = `/api/v1/namespaces/${namespace}/configmaps/dropped`;
    expect((await on.server.get(path)).status).toBe(404);
    await screen.run(
      `for (const details of document.querySelectorAll('.applied details')) details.open = true;`,
    );
    await screen.expectText('+data: {"a":"b"}');
    await expectAccessible('apply');
    await screen.click('Apply');
    await screen.until(
      `[...document.querySelectorAll('.chip')].some((chip) => chip.textContent === 'created')`,
    );
    expect((await on.server.get(path)).body.data).toEqual({ a: 'b' });
  });

  test('CLIENT-4: another dry run previews a conflict with forced ownership', async () => {
    const namespace = await freshNamespace(on.server);
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    await mustCreate(
      on.server,
      `${path}?fieldManager=deployer`,
      deploymentOf('web', { replicas: 2 }),
    );
    await on.server.patch(`${path}/web?fieldManager=scaler`, { spec: { replicas: 4 } }, 'merge');
    await screen.go('#/apply');
    const metadata = `{name: web, namespace: ${namespace}}`;
    const text = `apiVersion: apps/v1\nkind: Deployment\nmetadata: ${metadata}\nspec: {replicas: 9}\n`;
    await screen.fill('Manifests', text);
    await screen.click('Preview');
    await screen.expectText(/conflict with "scaler".*[.]spec[.]replicas/);
    await screen.expectText('Another manager owns these fields.');
    await expectAccessible('apply-conflict');
    await screen.click('Preview taking ownership');
    await screen.expectText('would change');
    await screen.expectText('spec.replicas49');
    expect((await on.server.get(`${path}/web`)).body.spec.replicas).toBe(4);
    await screen.click('Apply');
    await screen.until(
      `[...document.querySelectorAll('.chip')].some((chip) => chip.textContent === 'changed')`,
    );
    expect((await on.server.get(`${path}/web`)).body.spec.replicas).toBe(9);
  });
});

inBrowser('getting about', { timeout }, () => {
  test('CLIENT-4: the palette finds views and actions, and help lists the shortcuts', async () => {
    await screen.go('#/a/ask');
    await screen.until(`document.querySelector('main form')`);
    const openPalette = async (): Promise<void> => {
      await screen.page.keyboard.down('Control');
      await screen.press('k');
      await screen.page.keyboard.up('Control');
      await screen.until(`document.activeElement?.ariaLabel === 'Search or jump to'`);
    };
    await openPalette();
    await screen.page.keyboard.type('create deploy');
    await screen.until(
      `document.querySelector('[role=option]')?.textContent.startsWith('Create Deployment')`,
    );
    await expectAccessible('palette');
    await screen.press('Enter');
    await screen.expectText('New Deployment');
    await openPalette();
    await screen.page.keyboard.type('netpol');
    const first = `document.querySelector('[role=option]')?.textContent`;
    await screen.until(`/network *polic/i.test(${first})`, 'the kind by its short name');
    await screen.press('Enter');
    await screen.until(`location.hash.startsWith('#/t/networking.')`);
    await openPalette();
    await screen.page.keyboard.type('zzz nothing');
    await screen.expectText('No matches.');
    await screen.press('Escape');
    await screen.until(`document.querySelector('dialog') === null`);
    await screen.press('?');
    await screen.expectText('Open the command palette');
    await expectAccessible('help');
    await screen.press('Escape');
    await screen.until(`document.querySelector('dialog') === null`);
  });

  test('CLIENT-4: light and dark follow the system or the tab’s choice', async () => {
    await screen.go('#/a/mine');
    await screen.until(`${count('.matrix tbody tr')} > 10`, 'the matrix');
    const ground = () => screen.run('getComputedStyle(document.body).backgroundColor');
    const feature = (value: string) => [{ name: 'prefers-color-scheme', value }];
    await screen.page.emulateMediaFeatures(feature('dark'));
    await eventually(async () => (await ground()) === 'rgb(16, 21, 27)', 'the dark');
    await expectAccessible('dark-access');
    await screen.run('document.activeElement?.blur()');
    await screen.press('t');
    await screen.until(`document.documentElement.dataset.theme === 'light'`);
    await eventually(async () => (await ground()) === 'rgb(255, 255, 255)', 'the light');
    await expectAccessible('light-access');
    await screen.page.reload();
    await screen.until(`document.documentElement.dataset.theme === 'light'`);
    // The page handles keys only after it shows the view.
    await screen.until(`${count('.matrix tbody tr')} > 10`, 'the matrix');
    expect(await screen.run('localStorage.length')).toBe(0);
    await screen.press('t');
    await screen.until(`document.documentElement.dataset.theme === 'dark'`);
    await screen.press('t');
    await screen.until(`document.documentElement.dataset.theme === 'auto'`);
    for (const [name, hash] of Object.entries({
      'dark-overview': '#/',
      'dark-list': '#/t/rbac.authorization.svc.io/v1/clusterroles',
      'dark-edit': '#/o/core/v1/namespaces/default?tab=edit',
    })) {
      await screen.go(hash);
      await screen.until(`document.querySelector('.tile, tbody a, .explain dl')`, hash);
      await expectAccessible(name);
    }
    await screen.page.emulateMediaFeatures(feature('light'));
  });

  test('CLIENT-4: pages fit a phone, and every field has a label', async () => {
    await screen.page.setViewport({ width: 390, height: 800, isMobile: true });
    for (const [name, hash] of Object.entries({
      overview: '#/',
      list: '#/t/rbac.authorization.svc.io/v1/clusterroles',
      object: '#/o/core/v1/namespaces/default',
      edit: '#/o/core/v1/namespaces/default?tab=edit',
      ask: '#/a/ask',
      mine: '#/a/mine',
      apply: '#/apply',
    })) {
      await screen.go(hash);
      await screen.until(`document.querySelector('main h1')`);
      const wide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
      expect(await screen.run(wide), hash).toBe(0);
      const nameless = `[...document.querySelectorAll('input, select, textarea')]
        .filter((field) => field.labels.length === 0 && !field.ariaLabel).length`;
      expect(await screen.run(nameless), hash).toBe(0);
      await expectAccessible(`phone-${name}`);
    }
    await screen.run(`document.querySelector('.menu').click()`);
    await screen.until(`document.querySelector('.navigation').getClientRects().length > 0`);
    await expectAccessible('phone-navigation');
  });
});
