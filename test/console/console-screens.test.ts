import type { Fetch } from '@wheelhouse/console/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  bindingOf,
  mustCreate,
  rbacPath,
  roleOf,
  startWithUsers,
} from '../authentication/token-users.ts';
import { establish } from '../custom-kinds/custom-kinds.ts';
import {
  adminToken,
  configMap,
  eventually,
  freshNamespace,
  type TestServer,
} from '../support/harness.ts';
import { deploymentOf, trustingFetch } from './console.ts';
import { openScreen, type Screen } from './console-screen.ts';

/** The console as a user sees it, its documents ours, its server a real one. */

let server: TestServer;
beforeAll(async () => {
  server = await startWithUsers([{ name: 'reader' }]);
});
afterAll(() => server.stop());

const screens: Screen[] = [];
afterEach(() => {
  for (const screen of screens.splice(0)) screen.close();
});

async function opened(
  hash = '',
  options: { readonly token?: string; readonly fetch?: Fetch } = {},
): Promise<Screen> {
  const { token = adminToken, ...rest } = options;
  const screen = await openScreen({ url: server.url, hash, ...rest });
  screens.push(screen);
  await screen.signIn(token);
  return screen;
}

async function withConfigMap(name: string, more: object = {}): Promise<string> {
  const namespace = await freshNamespace(server);
  const body = configMap(name, { ...more });
  await mustCreate(server, `/api/v1/namespaces/${namespace}/configmaps`, body);
  return namespace;
}

const table = (namespace: string): string => `#/t/core/v1/configmaps?ns=${namespace}`;
const at = (namespace: string, name: string, tab = ''): string =>
  `#/o/core/v1/configmaps/${namespace}/${name}${tab === '' ? '' : `?tab=${tab}`}`;

describe('signing in and out', () => {
  test('CLIENT-4: it asks who one is, says why it refuses, and forgets at the end', async () => {
    const screen = await openScreen({ url: server.url });
    screens.push(screen);
    await screen.signIn('wrong');
    await screen.sees('The server does not accept this token.');
    expect(screen.field('Token').attributes.get('type')).toBe('password');
    expect(screen.field('Token').value).toBe('');
    await screen.signIn(adminToken);
    await screen.sees('system:admin');
    await screen.sees(/It serves \d+ kinds of objects/);
    expect(screen.title()).toBe('Wheelhouse');
    await screen.click('Sign out');
    await screen.until(() => screen.find('button', 'Sign in'), 'the sign-in');
    expect(screen.body.textContent).not.toContain('system:admin');
  });

  test('CLIENT-4: after a token’s expiry one finds the text one wrote', async () => {
    const namespace = await withConfigMap('kept');
    let isExpired = false;
    const expiring: Fetch = (url, request) => {
      const headers = isExpired
        ? { ...request.headers, authorization: 'Bearer old' }
        : request.headers;
      return trustingFetch(url, { ...request, headers });
    };
    const screen = await opened(at(namespace, 'kept', 'edit'), { fetch: expiring });
    await screen.until(() => screen.body.all('textarea')[0], 'the editor');
    const text = screen.body.all('textarea')[0];
    if (text === undefined) throw new Error('no editor');
    text.value = text.value.replace('a: "1"', 'a: "2"');
    isExpired = true;
    await screen.click('Validate');
    await screen.sees('The server no longer accepts this sign-in.');
    expect(screen.body.all('textarea')).toEqual([]);
    isExpired = false;
    await screen.signIn(adminToken);
    await screen.until(() => screen.body.all('textarea')[0] === text, 'the editor again');
    expect(text.value).toContain('a: "2"');
    await screen.click('Save');
    await screen.sees('Saved.');
  });

  test('CLIENT-4: a late refusal of the sign-in of before does not end the next', async () => {
    const namespace = await withConfigMap('late');
    let isExpired = false;
    const held: (() => void)[] = [];
    const holding: Fetch = async (url, request) => {
      if (!isExpired || request.method !== 'PUT') return trustingFetch(url, request);
      const headers = { ...request.headers, authorization: 'Bearer old' };
      const answer = await trustingFetch(url, { ...request, headers });
      if (held.length === 0) await new Promise<void>((resolve) => held.push(resolve));
      return answer;
    };
    const screen = await opened(at(namespace, 'late', 'edit'), { fetch: holding });
    await screen.until(() => screen.body.all('textarea')[0], 'the editor');
    const text = screen.body.all('textarea')[0];
    if (text === undefined) throw new Error('no editor');
    text.value = text.value.replace('a: "1"', 'a: "2"');
    isExpired = true;
    await screen.click('Validate');
    await screen.until(() => held.length === 1, 'the refusal that will be late');
    await screen.click('Save');
    await screen.sees('The server no longer accepts this sign-in.');
    isExpired = false;
    await screen.signIn(adminToken);
    await screen.until(() => screen.body.all('textarea')[0] === text, 'the editor again');
    await screen.click('Save');
    await screen.sees('Saved.');
    for (const release of held) release();
    await new Promise(setImmediate);
    expect(screen.body.textContent).toContain('Saved.');
    expect(screen.body.textContent).not.toContain('Sign in');
  });
});

describe('browsing', () => {
  test('CLIENT-4: kinds are found by any name, and lead to their objects', async () => {
    const screen = await opened();
    await screen.sees('storageclasses');
    const find = screen.field('Find a kind');
    const shown = () =>
      screen.body
        .all('nav')[0]
        ?.all('li')
        .map(({ textContent }) => textContent);
    find.value = 'deploy';
    find.fire('input');
    expect(shown()).toEqual(['deployments']);
    find.value = 'pvc';
    find.fire('input');
    expect(shown()).toEqual(['persistentvolumeclaims']);
    find.value = 'policy';
    find.fire('input');
    expect(shown()).toContain('poddisruptionbudgets');
    await screen.click('poddisruptionbudgets');
    await screen.sees('Live');
    expect(screen.hash()).toBe('#/t/policy/v1/poddisruptionbudgets');
    expect(screen.title()).toBe('PodDisruptionBudget objects');
  });

  test('CLIENT-4: a table is live, sorted by a click on a head, wide on demand', async () => {
    const namespace = await withConfigMap('b');
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const screen = await opened(table(namespace));
    const names = () =>
      screen.body
        .all('tbody')[0]
        ?.all('a')
        .map(({ textContent }) => textContent);
    await screen.until(() => names()?.join() === 'b', 'the first row');
    const first = screen.body.all('tbody')[0]?.all('tr')[0];
    await mustCreate(server, path, configMap('a', { data: { x: '1', y: '2' } }));
    await screen.until(() => names()?.join() === 'a,b', 'the new row');
    // The row that has not changed is the very same.
    expect(screen.body.all('tbody')[0]?.all('tr')[1]).toBe(first);
    await screen.click('Data');
    await screen.until(() => names()?.join() === 'b,a', 'the order of data');
    await screen.click('Data ↑');
    await screen.until(() => names()?.join() === 'a,b', 'the other order');
    await server.remove(`${path}/a`);
    await screen.until(() => names()?.join() === 'b', 'the row to go');
    await screen.sees('1 object');

    await screen.click('Copy as kubectl');
    expect(screen.copied).toEqual([`kubectl get configmaps -n ${namespace}`]);
    screen.go('#/t/apps/v1/deployments');
    await screen.sees('Up-to-date');
    expect(screen.find('th', 'Images')).toBeUndefined();
    const wide = screen.field('Wide');
    wide.checked = true;
    wide.fire('change');
    await screen.until(() => screen.find('th', 'Images'), 'the wide column');
  });

  test('CLIENT-4: the filter leads to an address, which leads back to it', async () => {
    const namespace = await withConfigMap('one');
    const screen = await opened('#/t/core/v1/configmaps');
    await screen.sees('Live');
    screen.field('Namespace').value = namespace;
    screen.field('Fields').value = 'metadata.name=one';
    await screen.click('Show');
    await screen.until(() => screen.hash().includes('f=metadata.name%3Done'), 'the address');
    await screen.sees('1 object');
    expect(screen.field('Namespace').value).toBe(namespace);
    screen.field('Labels').value = '!!';
    await screen.click('Show');
    await screen.sees(/Refused: .*unable to parse/);
    await screen.until(() => screen.find('button', 'Try again'), 'the way on');
  });

  test('CLIENT-4: one object: its text, its owners of fields, its events, its end', async () => {
    const namespace = await withConfigMap('watched', {
      metadata: { name: 'watched', labels: { tier: 'front' } },
    });
    const path = `/api/v1/namespaces/${namespace}/configmaps/watched`;
    const screen = await opened(at(namespace, 'watched'));
    const text = () => screen.body.all('pre')[0]?.textContent ?? '';
    await screen.until(() => text().includes('kind: ConfigMap'), 'the text');
    expect(text()).not.toContain('managedFields');
    await screen.sees('tier=front');
    const managed = screen.field('With managed fields');
    managed.checked = true;
    managed.fire('change');
    expect(text()).toContain('managedFields');
    managed.checked = false;
    managed.fire('change');
    await server.patch(path, { data: { b: 'seen at once' } }, 'merge');
    await screen.until(() => text().includes('seen at once'), 'the change');
    await screen.click('JSON');
    await screen.until(() => text().startsWith('{\n  "apiVersion": "v1"'), 'JSON');
    await screen.click('Who owns what');
    await screen.sees('data.b');
    const { uid } = (await server.get(path)).body.metadata;
    await mustCreate(server, `/api/v1/namespaces/${namespace}/events`, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'watched.1' },
      involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', name: 'watched', namespace, uid },
      reason: 'Noticed',
      message: 'something happened',
      type: 'Normal',
    });
    await screen.click('Events');
    await screen.sees('something happened');
    await screen.click('YAML');
    await screen.until(() => text().includes('kind: ConfigMap'), 'the text again');
    await server.remove(path);
    await screen.sees('The object has been deleted.');
  });

  test('CLIENT-4: a kind comes while its page is open, and what is not there is told', async () => {
    const screen = await opened('#/t/soon.example.com/v1/things');
    await screen.sees('The server has no things of soon.example.com/v1 now.');
    await establish(server, { group: 'soon.example.com', plural: 'things', kind: 'Thing' });
    await screen.sees('Live');
    screen.go('#/o/core/v1/configmaps/default/missing');
    await screen.sees('configmaps "missing" not found');
  });
});

describe('hostile names and values', () => {
  const script = '<img src=x onerror=alert(1)><script>alert(2)</script>';

  /** Nothing that loads or runs came to be, and every link stays on the page. */
  function expectHarmless({ body }: Screen): void {
    const tags = new Set(body.all().map(({ tag }) => tag));
    for (const tag of [
      'script',
      'img',
      'iframe',
      'object',
      'embed',
      'svg',
      'style',
      'link',
      'base',
    ]) {
      expect(tags.has(tag), tag).toBe(false);
    }
    for (const one of body.all()) {
      for (const [name, value] of one.attributes) {
        expect(name, `${one.tag} ${name}`).not.toMatch(/^on|^src|^style$|^action$|^formaction$/);
        if (name === 'href') expect(value).toMatch(/^#/);
      }
    }
  }

  test('CLIENT-4: names of objects are text wherever they are shown', async () => {
    const name = `${script.replaceAll('/', '')}"'&`;
    await mustCreate(
      server,
      `${rbacPath}/clusterroles`,
      roleOf('ClusterRole', name, { rules: [] }),
    );
    const screen = await opened('#/t/rbac.authorization.svc.io/v1/clusterroles');
    await screen.until(() => screen.find('a', name), 'its row');
    expectHarmless(screen);
    await screen.click(name);
    await screen.sees(`name: ${name}`.slice(0, 20));
    await screen.until(() => screen.find('h1', name), 'its page');
    expectHarmless(screen);
    await screen.click('Delete');
    await screen.sees(`Delete ClusterRole ${name}?`);
    expectHarmless(screen);
    const dialog = screen.body.all('dialog')[0];
    dialog
      ?.all('button')
      .find(({ textContent }) => textContent === 'Delete')
      ?.click();
    await screen.sees('The object has been deleted.');
  });

  test('CLIENT-4: annotations, data, columns, schemas and events are text', async () => {
    await establish(server, {
      group: 'hostile.example.com',
      plural: 'traps',
      kind: 'Trap',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: script,
              properties: {
                spec: {
                  type: 'object',
                  description: script,
                  properties: { bait: { type: 'string', enum: [script, 'x'] } },
                },
              },
            },
          },
          additionalPrinterColumns: [
            { name: script, type: 'string', jsonPath: '.spec.bait', description: script },
          ],
        },
      ],
    });
    const namespace = await freshNamespace(server);
    await mustCreate(server, `/apis/hostile.example.com/v1/namespaces/${namespace}/traps`, {
      apiVersion: 'hostile.example.com/v1',
      kind: 'Trap',
      metadata: {
        name: 'one',
        annotations: { note: script, 'example.com/link': 'javascript:alert(3)' },
        finalizers: ['example.com/keep'],
      },
      spec: { bait: script },
    });
    const screen = await opened(`#/t/hostile.example.com/v1/traps?ns=${namespace}`);
    await screen.until(() => screen.find('td', script), 'the cell');
    expect(screen.find('th', script)).toBeDefined();
    expectHarmless(screen);
    for (const tab of ['', '?tab=json', '?tab=fields', '?tab=edit']) {
      screen.go(`#/o/hostile.example.com/v1/traps/${namespace}/one${tab}`);
      await screen.sees(tab === '?tab=fields' ? 'spec.bait' : 'Waits for finalizers');
      await screen.until(
        () => screen.body.all('pre')[0] ?? screen.body.all('textarea')[0] ?? tab,
        tab,
      );
      expectHarmless(screen);
    }
    await screen.sees(script);
    await screen.click('spec');
    await screen.sees(`One of: ${script}, x`);
    expectHarmless(screen);
    const [text] = screen.body.all('textarea');
    if (text === undefined) throw new Error('no editor');
    text.value += `\n"${script.replaceAll('"', '')}": 1\n`;
    await screen.click('Validate');
    await screen.sees('strict decoding error');
    expectHarmless(screen);
  });

  test('CLIENT-4: an address that somebody else made does nothing but lead somewhere', async () => {
    const hashes = [
      `#/o/core/v1/configmaps/default/${encodeURIComponent(script)}`,
      `#/t/core/v1/configmaps?ns=${encodeURIComponent(script)}&l=${encodeURIComponent(script)}`,
      `#/t/${encodeURIComponent(script)}/v1/${encodeURIComponent(script)}`,
      '#/t/../../api/v1/secrets',
      'javascript:alert(1)',
    ];
    const asked: string[] = [];
    const noting: Fetch = (url, request) => {
      asked.push(`${request.method} ${new URL(url).pathname}`);
      return trustingFetch(url, request);
    };
    const screen = await opened('', { fetch: noting });
    await screen.sees('It serves');
    for (const hash of hashes) {
      screen.go(hash);
      await screen.until(() => screen.body.all('h1')[0], hash);
      expectHarmless(screen);
    }
    // Whatever an address says, opening it only reads.
    const writes = asked.filter(
      (one) => !one.startsWith('GET') && !one.endsWith('selfsubjectreviews'),
    );
    expect(writes).toEqual([]);
  });
});

describe('editing', () => {
  const editor = (screen: Screen) => {
    const [text] = screen.body.all('textarea');
    if (text === undefined) throw new Error('no editor');
    return text;
  };
  async function editing(namespace: string, name: string): Promise<Screen> {
    const screen = await opened(at(namespace, name, 'edit'));
    await screen.until(() => screen.body.all('textarea')[0], 'the editor');
    return screen;
  }

  test('CLIENT-4: causes lead to their lines; what is accepted is shown first', async () => {
    const namespace = await withConfigMap('edited');
    const path = `/api/v1/namespaces/${namespace}/configmaps/edited`;
    const screen = await editing(namespace, 'edited');
    const text = editor(screen);
    const original = text.value;
    text.value = original.replace('a: "1"', 'a b: "1"');
    await screen.click('Validate');
    await screen.sees('a valid config key must consist of');
    await screen.click(/^Line \d+$/);
    expect(text.value.slice(text.selectionStart, text.selectionEnd)).toBe('  a b: "1"');

    text.value = original.replace('a: "1"', 'a: "2"');
    await screen.click('Validate');
    await screen.sees('Nothing has been saved.');
    await screen.until(() => screen.find('td', 'data.a'), 'the change');
    expect((await server.get(path)).body.data).toEqual({ a: '1' });
    await screen.click('Save');
    await screen.sees('Saved.');
    expect((await server.get(path)).body.data).toEqual({ a: '2' });
    const { managedFields } = (await server.get(path)).body.metadata;
    expect(managedFields.map(({ manager }: { manager: string }) => manager)).toContain(
      'wheelhouse-console',
    );
  });

  test('CLIENT-4: 409: both sides are shown, and mine can be made to theirs', async () => {
    const namespace = await withConfigMap('shared', { data: { a: '1', b: '1' } });
    const path = `/api/v1/namespaces/${namespace}/configmaps/shared`;
    const screen = await editing(namespace, 'shared');
    const text = editor(screen);
    text.value = text.value.replace('a: "1"', 'a: mine');
    await server.patch(path, { data: { b: 'theirs' } }, 'merge');
    await screen.sees('Somebody has changed the object');
    expect(text.value).toContain('a: mine');
    await screen.click('Save');
    await screen.sees('the object has been modified');
    const rows = screen.body.all('tbody').at(-1)?.all('tr');
    const told = rows?.map((row) =>
      row
        .all('td')
        .map(({ textContent }) => textContent)
        .join(' '),
    );
    expect(told).toEqual(['others data.b "1" "theirs"', 'you data.a "1" "mine"']);
    await screen.click('Make my changes to theirs');
    await screen.click('Save');
    await screen.sees('Saved.');
    expect((await server.get(path)).body.data).toEqual({ a: 'mine', b: 'theirs' });
  });

  test('CLIENT-4: apply asks before it takes fields from their owner', async () => {
    const namespace = await withConfigMap('applied');
    const path = `/api/v1/namespaces/${namespace}/configmaps/applied`;
    const screen = await editing(namespace, 'applied');
    await screen.click('Owned fields only');
    const text = editor(screen);
    expect(text.value).not.toContain('uid');
    text.value = text.value.replace('a: "1"', 'a: "2"');
    await screen.click('Save');
    await screen.sees('conflict with "unknown" using v1');
    expect((await server.get(path)).body.data).toEqual({ a: '1' });
    await screen.click('Take these fields over');
    await screen.sees('Saved.');
    expect((await server.get(path)).body.data).toEqual({ a: '2' });
  });

  test('CLIENT-4: what is not saved is not left without being asked', async () => {
    const namespace = await withConfigMap('unsaved');
    const screen = await editing(namespace, 'unsaved');
    editor(screen).value += '# more\n';
    screen.answer = false;
    screen.go('#/');
    await screen.until(() => screen.questions.length === 1, 'the question');
    await screen.until(() => screen.hash() === at(namespace, 'unsaved', 'edit'), 'the way back');
    expect(editor(screen).value).toContain('# more');
    screen.answer = true;
    screen.go('#/');
    await screen.sees('It serves');
  });

  test('CLIENT-4: objects are created, scaled and deleted', async () => {
    const namespace = await freshNamespace(server);
    const screen = await opened(`#/c/core/v1/configmaps?ns=${namespace}`);
    await screen.until(() => screen.body.all('textarea')[0], 'the editor');
    const text = editor(screen);
    text.value = text.value.replace('name: ""', 'name: made').concat('data:\n  x: "1"\n');
    await screen.click('Save');
    await screen.until(() => screen.hash() === at(namespace, 'made'), 'its page');
    await screen.sees('kind: ConfigMap');
    await screen.click('Delete');
    await screen.sees('Delete ConfigMap made?');
    const inDialog = (label: string) =>
      screen.body
        .all('dialog')[0]
        ?.all('button')
        .find(({ textContent }) => textContent === label);
    inDialog('Cancel')?.click();
    await screen.until(() => screen.body.all('dialog').length === 0, 'the dialog to go');
    const path = `/api/v1/namespaces/${namespace}/configmaps/made`;
    expect((await server.get(path)).status).toBe(200);
    await screen.click('Delete');
    inDialog('Delete')?.click();
    await eventually(async () => (await server.get(path)).status === 404, 'the deletion');

    await mustCreate(
      server,
      `/apis/apps/v1/namespaces/${namespace}/deployments`,
      deploymentOf('web'),
    );
    screen.go(`#/o/apps/v1/deployments/${namespace}/web`);
    await screen.click('Scale');
    await screen.sees('There are 0 now.');
    screen.field('Replicas').value = '-2';
    const scale = () => inDialog('Scale')?.click();
    scale();
    await screen.sees('must be greater than or equal to 0');
    screen.field('Replicas').value = '5';
    scale();
    await screen.sees('web is to have 5 replicas.');
  });

  test('CLIENT-4: keys lead to the same places', async () => {
    const namespace = await withConfigMap('keyed');
    const screen = await opened(at(namespace, 'keyed'));
    await screen.sees('kind: ConfigMap');
    expect(screen.key('x')).toBe(false);
    expect(screen.key('e')).toBe(true);
    await screen.until(() => screen.body.all('textarea')[0], 'the editor');
    screen.key('g');
    await screen.sees('It serves');
    screen.go(table(namespace));
    await screen.sees('Live');
    screen.key('c');
    await screen.sees('New ConfigMap');
    expect(screen.key('/')).toBe(true);
  });
});

describe('access', () => {
  test('CLIENT-4: what I may do, whether somebody may, and who may', async () => {
    const namespace = await freshNamespace(server);
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }];
    const within = `${rbacPath}/namespaces/${namespace}`;
    await mustCreate(server, `${within}/roles`, roleOf('Role', 'lister', { rules }));
    const binding = { role: 'lister', roleKind: 'Role', subjects: ['reader'] } as const;
    await mustCreate(server, `${within}/rolebindings`, bindingOf('RoleBinding', 'rb', binding));

    const reader = await opened(`#/a/mine?ns=${namespace}`, { token: 'reader' });
    await reader.sees('You are reader in system:authenticated.');
    const row = () =>
      reader.body.all('tr').find((one) => one.all('th')[0]?.textContent === 'configmaps');
    await reader.until(row, 'the matrix');
    expect(
      row()
        ?.all('td')
        .map(({ attributes }) => attributes.get('aria-label')),
    ).toEqual(['yes', 'yes', 'no', 'no', 'no', 'no', 'no', 'no']);
    await reader.click('May somebody …?');
    await reader.until(() => reader.find('button', 'Ask'), 'the form');
    reader.field('Verb').value = 'list';
    reader.field('Resource').value = 'configmaps';
    await reader.click('Ask');
    await reader.sees('Yes.');
    reader.field('Namespace').value = 'default';
    await reader.click('Ask');
    await reader.sees('No.');
    reader.field('User').value = 'somebody';
    await reader.click('Ask');
    await reader.sees('User "reader" cannot create resource "subjectaccessreviews"');
    await reader.click('Who may …?');
    await reader.until(() => reader.find('button', 'Find'), 'the form');
    await reader.click('Find');
    await reader.sees('User "reader" cannot list resource "clusterroles"');
    await reader.sees('Nobody that could be found.');
    reader.close();

    const admin = await opened(`#/a/who?ns=${namespace}`);
    await admin.until(() => admin.find('button', 'Find'), 'the form');
    admin.field('Verb').value = 'list';
    admin.field('Resource').value = 'configmaps';
    await admin.click('Find');
    await admin.sees(`User/reader${namespace}RoleBinding/${namespace}/rbRole/lister`);
    await admin.sees('Group/system:masterseverywhere');
  });

  test('CLIENT-4: who may not see something is told so in its place', async () => {
    const namespace = await withConfigMap('hidden');
    const screen = await opened(table(namespace), { token: 'reader' });
    await screen.sees(/Refused: .*User "reader" cannot list resource "configmaps"/);
    screen.go(at(namespace, 'hidden'));
    await screen.sees('User "reader" cannot get resource "configmaps"');
  });
});
