import { describe, expect, test } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';
import { establish } from '../custom-kinds/custom-kinds.ts';
import {
  adminToken,
  configMap,
  eventually,
  freshNamespace,
  startTestServer,
} from '../support/harness.ts';
import { deploymentOf } from './console.ts';
import { chromium, consoleInBrowser, type Screen } from './screen.ts';

/** What happens to the console while something else happens: typing, signing out, live changes. */

const on = consoleInBrowser((console) => startTestServer({ console }));

const opened = (hash: string): Promise<Screen> => on.open({ hash });

async function withConfigMaps(...names: readonly string[]): Promise<string> {
  const namespace = await freshNamespace(on.server);
  for (const name of names) {
    await mustCreate(on.server, `/api/v1/namespaces/${namespace}/configmaps`, configMap(name));
  }
  return namespace;
}

const table = (namespace: string): string => `#/t/core/v1/configmaps?ns=${namespace}`;
const at = (namespace: string, name: string, tab = ''): string =>
  `#/o/core/v1/configmaps/${namespace}/${name}${tab === '' ? '' : `?tab=${tab}`}`;
const requestsOf = (method: string) =>
  `window.requests.filter((request) => request.startsWith(${JSON.stringify(method)})).length`;
const focusedText = 'document.activeElement?.textContent';

/** Time limit of a test, for a browser on a busy machine. */
const timeout = 120_000;

describe.skipIf(chromium === undefined)('writing', { timeout }, () => {
  test('CLIENT-4: text that is typed during a save stays, and is saved once', async () => {
    const namespace = await withConfigMaps('typed');
    const screen = await opened(at(namespace, 'typed', 'edit'));
    await screen.editor.replace('a: "1"', 'a: "2"');
    await screen.run(`window.holds = ({ method }, url) =>
      method === 'PUT' && !url.includes('dryRun') && !window.release`);
    await screen.editor.setCursorAfter('kind: ConfigMap');
    await screen.page.keyboard.down('Control');
    await screen.press('s');
    await screen.press('s');
    await screen.page.keyboard.up('Control');
    await screen.until('window.release !== undefined', 'the answer that will be late');
    await screen.editor.replace('a: "2"', 'a: "3"');
    await screen.run('window.release()');
    await screen.expectText('Saved.');
    expect(await screen.editor.text()).toContain('a: "3"');
    expect(await screen.run(requestsOf('PUT'))).toBe(1);
    const path = `/api/v1/namespaces/${namespace}/configmaps/typed`;
    expect((await on.server.get(path)).body.data).toEqual({ a: '2' });
    await screen.click('Save');
    await eventually(
      async () => (await on.server.get(path)).body.data.a === '3',
      'the text that was typed',
    );
  });

  test('CLIENT-4: creating an object does not return to a page that the user has left', async () => {
    const namespace = await freshNamespace(on.server);
    const screen = await opened(`#/c/core/v1/configmaps?ns=${namespace}`);
    await screen.editor.replace('name: ""', 'name: late');
    await screen.run(`window.holds = ({ method }) => method === 'POST' && !window.release`);
    await screen.click('Save');
    await screen.until('window.release !== undefined', 'the answer that will be late');
    await screen.go('#/apply');
    await screen.expectText('Drop files anywhere');
    await screen.run('window.release()');
    await screen.expectText('Saved.');
    expect(await screen.hash()).toBe('#/apply');
  });

  test('CLIENT-4: text that is typed while an object is created changes the new object', async () => {
    const namespace = await freshNamespace(on.server);
    const screen = await opened(`#/c/core/v1/configmaps?ns=${namespace}`);
    await screen.editor.setText(
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: early\ndata:\n  a: "1"\n',
    );
    await screen.run(`window.holds = ({ method }) => method === 'POST' && !window.release`);
    await screen.click('Save');
    await screen.until('window.release !== undefined', 'the answer that will be late');
    await screen.editor.replace('a: "1"', 'a: "2"');
    await screen.run('window.release()');
    await screen.expectText('Saved.');
    expect(await screen.editor.text()).toContain('a: "2"');
    expect(screen.confirmations).toEqual([]);
    await screen.click('Save');
    const path = `/api/v1/namespaces/${namespace}/configmaps/early`;
    await eventually(
      async () => (await on.server.get(path)).body.data.a === '2',
      'the text that was typed',
    );
    await screen.until(`location.hash.endsWith('/early')`, 'the page of the object');
    expect(await screen.run(requestsOf('POST /api/v1/'))).toBe(1);
  });

  test('CLIENT-4: signing out discards unsaved text only after a confirmation', async () => {
    const namespace = await withConfigMaps('unsaved');
    const screen = await opened(at(namespace, 'unsaved', 'edit'));
    await screen.editor.replace('a: "1"', 'a: "2"');
    screen.acceptsConfirmations = false;
    await screen.click('Sign out');
    await eventually(async () => screen.confirmations.length === 1, 'the question');
    expect(await screen.editor.text()).toContain('a: "2"');
    screen.acceptsConfirmations = true;
    await screen.click('Sign out');
    await screen.until(`document.querySelector('.sign-in form')`);
    expect(await screen.run('sessionStorage.length')).toBe(0);
  });

  test('CLIENT-4: forms accept decimals, and removing an item keeps the others', async () => {
    const spec = {
      type: 'object',
      properties: {
        ratio: { type: 'number' },
        notes: {
          type: 'array',
          items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    };
    await establish(on.server, {
      group: 'forms.example.com',
      plural: 'notes',
      kind: 'Note',
      schema: { type: 'object', properties: { spec } },
    });
    const namespace = await freshNamespace(on.server);
    const screen = await opened(`#/c/forms.example.com/v1/notes?ns=${namespace}`);
    await screen.editor.setText(
      `${await screen.editor.text()}spec:\n  ratio: 1\n  notes:\n  - first: 1\n  - second: 2\n`,
    );
    await screen.click('Edit as form');
    const input = `document.querySelector('input[aria-label=ratio]')`;
    await screen.until(input, 'the form');
    await screen.run(`(${input}.focus(), ${input}.select())`);
    await screen.page.keyboard.type('2.5');
    expect(await screen.valueOf('ratio')).toBe('2.5');
    await screen.run(`document.querySelector('[aria-label="Remove notes 1"]').click()`);
    await screen.until(
      `document.querySelector('[aria-label="notes 1"]').value === 'second: 2\\n'`,
      'the remaining item',
    );
    await screen.click('Edit as YAML');
    const text = await screen.editor.text();
    expect(text).toContain('ratio: 2.5');
    expect(text).toContain('- second: 2');
    expect(text).not.toContain('first');
    await screen.click('Edit as form');
    await screen.fill('name', 'typed');
    // The keys of the editor work in the form, too.
    await screen.page.keyboard.down('Control');
    await screen.press('s');
    await screen.page.keyboard.up('Control');
    const path = `/apis/forms.example.com/v1/namespaces/${namespace}/notes/typed`;
    await eventually(async () => (await on.server.get(path)).status === 200, 'the object');
    expect((await on.server.get(path)).body.spec).toEqual({ ratio: 2.5, notes: [{ second: 2 }] });
  });

  test('CLIENT-4: after a conflict, the number of replicas can be confirmed', async () => {
    const namespace = await freshNamespace(on.server);
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    await mustCreate(on.server, path, deploymentOf('web', { replicas: 1 }));
    const screen = await opened(`#/o/apps/v1/deployments/${namespace}/web`);
    await screen.click('Scale');
    await screen.expectText('Current replicas: 0');
    await on.server.patch(`${path}/web`, { spec: { replicas: 4 } }, 'merge');
    await screen.fill('Replicas', '2');
    await screen.click('Scale', 'dialog');
    await screen.expectText('the object has been modified');
    await screen.click('Scale', 'dialog');
    await screen.expectText('web scaled to 2 replicas.');
  });
});

describe.skipIf(chromium === undefined)('live changes', { timeout }, () => {
  test('CLIENT-4: a list follows a kind that is removed and defined again', async () => {
    const definition = { group: 'again.example.com', plural: 'guests', kind: 'Guest' };
    const path = '/apis/apiextensions.svc.io/v1/customresourcedefinitions/guests.again.example.com';
    const remove = async (): Promise<void> => {
      await on.server.remove(path);
      await eventually(async () => (await on.server.get(path)).status === 404, 'the removal');
    };
    await establish(on.server, definition);
    const tile = `[...document.querySelectorAll('.tile-name')]
      .some(({ textContent }) => textContent === 'guests')`;
    const object = {
      ...{ apiVersion: 'again.example.com/v1', kind: 'Guest', metadata: { name: 'one' } },
    };
    const objects = '/apis/again.example.com/v1/namespaces/default/guests';
    await mustCreate(on.server, objects, object);
    const screen = await opened('#/');
    await screen.until(tile, 'the kind in the overview');
    await remove();
    await screen.until(`!${tile}`, 'the kind to leave the overview');
    await establish(on.server, definition);
    await screen.go('#/t/again.example.com/v1/guests');
    await screen.expectText('Live');
    await remove();
    await screen.expectText('Refused');
    await establish(on.server, definition);
    await screen.expectText('Live');
    await mustCreate(on.server, objects, object);
    await screen.until(`document.querySelector('tbody a')?.textContent === 'one'`, 'the object');
  });

  test('CLIENT-4: a changing row keeps the focus, and keys act on what has it', async () => {
    const namespace = await withConfigMaps('apple', 'banana');
    const screen = await opened(table(namespace));
    await screen.expectText('2 objects');
    await screen.page.focus('.grid-box');
    await screen.press('j');
    await screen.until(`${focusedText} === 'apple'`, 'the focus');
    const path = `/api/v1/namespaces/${namespace}/configmaps/apple`;
    await on.server.patch(path, { data: { b: '2' } }, 'merge');
    await screen.until(
      `document.querySelector('tr[data-fresh] td:nth-child(3)')?.textContent === '2'`,
      'the change',
    );
    expect(await screen.run(focusedText)).toBe('apple');
    // Enter and Space act on a focused header instead of the row.
    await screen.run(`document.querySelector('th .sort').focus()`);
    await screen.press('Enter');
    await screen.until(`document.querySelector('th .sort').textContent === 'Name ↑'`, 'the order');
    await screen.press('Space');
    await screen.until(`document.querySelector('th .sort').textContent === 'Name ↓'`, 'the order');
    expect(await screen.hash()).toBe(table(namespace));
    await screen.run(`document.querySelector('[aria-label="Select all"]').focus()`);
    await screen.press('Space');
    await screen.expectText('2 selected');
  });

  test('CLIENT-4: a closed dialog returns the focus', async () => {
    const namespace = await withConfigMaps('kept');
    const screen = await opened(at(namespace, 'kept'));
    await screen.expectText('kind: ConfigMap');
    const button = `[...document.querySelectorAll('main button')]
      .find(({ textContent }) => textContent === 'Delete')`;
    await screen.run(`${button}.focus()`);
    await screen.press('Enter');
    await screen.expectText('Delete ConfigMap kept?');
    await screen.click('Cancel', 'dialog');
    await screen.until(`document.querySelector('dialog') === null`, 'the dialog to close');
    await screen.until(`document.activeElement === ${button}`, 'the focus');
    await screen.press('?');
    await screen.expectText('Keyboard shortcuts');
    await screen.page.keyboard.down('Control');
    await screen.press('k');
    await screen.page.keyboard.up('Control');
    await screen.fill('Search or jump to', 'keyboard shortcuts');
    await screen.press('Enter');
    await screen.until(`document.querySelector('dialog.help')?.open`, 'the help');
    await screen.page.evaluate('new Promise((resolve) => setTimeout(resolve))');
    expect(await screen.run(`document.querySelector('dialog.help')?.open`)).toBe(true);
  });

  test('CLIENT-4: all Events of an object are in its timeline', async () => {
    const namespace = await withConfigMaps('busy');
    const { uid } = (await on.server.get(`/api/v1/namespaces/${namespace}/configmaps/busy`)).body
      .metadata;
    const event = (index: number) => ({
      ...{ apiVersion: 'v1', kind: 'Event', reason: 'Tick', message: `tick ${index}` },
      metadata: { name: `busy.${String(index).padStart(4, '0')}` },
      involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', name: 'busy', namespace, uid },
    });
    const path = `/api/v1/namespaces/${namespace}/events`;
    for (let index = 0; index < 205; index += 1) await mustCreate(on.server, path, event(index));
    const screen = await opened(at(namespace, 'busy', 'events'));
    await screen.expectText(/tick 204(?!\d)/);
  });

  test('CLIENT-4: changes in the overview go on after the next sign-in', async () => {
    const namespace = await freshNamespace(on.server);
    const screen = await opened('#/');
    await screen.expectText('kinds of objects');
    await screen.run('window.expired = true');
    await screen.expectText('Your session has expired. Sign in again.');
    await screen.run('window.expired = false');
    // Nothing is sent while nobody is signed in.
    await screen.run('window.requests = []');
    await screen.run(`(async () => {
      for (const _ of [1, 2, 3]) await new Promise(requestAnimationFrame);
    })()`);
    expect(await screen.run('window.requests')).toEqual([]);
    await screen.signIn(adminToken);
    await screen.expectText('kinds of objects');
    let created = 0;
    await eventually(async () => {
      created += 1;
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      await mustCreate(on.server, path, configMap(`seen-${created}`));
      return screen.run(`document.querySelector('.feed')?.textContent.includes('seen-')`);
    }, 'the change');
  });

  test('CLIENT-4: an object that cannot be read for a moment is read again', async () => {
    const namespace = await withConfigMaps('flaky');
    const screen = await opened('#/');
    await screen.expectText('kinds of objects');
    await screen.run(`window.cuts = (path) => path.endsWith('/configmaps/flaky')`);
    await screen.go(at(namespace, 'flaky'));
    await screen.expectText('the server cannot be reached');
    await screen.run('window.cuts = undefined');
    await screen.expectText('kind: ConfigMap');
  });

  test('CLIENT-4: a view that cannot be loaded says so', async () => {
    const namespace = await withConfigMaps('plain');
    const screen = await opened('#/');
    await screen.expectText('kinds of objects');
    await screen.page.setRequestInterception(true);
    screen.page.on('request', (request) => {
      void (request.resourceType() === 'script' ? request.abort() : request.continue());
    });
    await screen.go(at(namespace, 'plain'));
    await screen.expectText('A part of the console cannot be loaded');
    await screen.expectText('Reload the page');
  });

  test('CLIENT-4: the kubectl command of several namespaces is one per namespace', async () => {
    const screen = await opened(`${table('one')},two`);
    await screen.click('Copy as kubectl');
    await screen.until('window.copiedTexts.length === 1', 'the command');
    expect(await screen.copied()).toEqual([
      'kubectl get configmaps -n one\nkubectl get configmaps -n two',
    ]);
  });
});
