import { describe, expect, test } from 'vitest';
import {
  bindingOf,
  mustCreate,
  rbacPath,
  roleOf,
  startWithUsers,
} from '../authentication/token-users.ts';
import { establish } from '../custom-kinds/custom-kinds.ts';
import { adminToken, configMap, eventually, freshNamespace } from '../support/harness.ts';
import { deploymentOf } from './console.ts';
import { chromium, consoleInBrowser, type Screen } from './screen.ts';

/** The built console in a browser on a running server. */

const on = consoleInBrowser((console) => startWithUsers([{ name: 'reader' }], { console }));

const opened = (hash = '', options: { readonly token?: string } = {}): Promise<Screen> =>
  on.open({ hash, ...options });

async function withConfigMap(name: string, more: object = {}): Promise<string> {
  const namespace = await freshNamespace(on.server);
  const body = configMap(name, { ...more });
  await mustCreate(on.server, `/api/v1/namespaces/${namespace}/configmaps`, body);
  return namespace;
}

const table = (namespace: string): string => `#/t/core/v1/configmaps?ns=${namespace}`;
const at = (namespace: string, name: string, tab = ''): string =>
  `#/o/core/v1/configmaps/${namespace}/${name}${tab === '' ? '' : `?tab=${tab}`}`;
const quoted = (text: string): string => JSON.stringify(text);

/** Time limit of a test, for a browser on a busy machine. */
const timeout = 120_000;

describe.skipIf(chromium === undefined)('signing in and out', { timeout }, () => {
  test('CLIENT-4: the form requires a token, shows errors, and discards it on sign-out', async () => {
    const screen = await on.openSignedOut();
    await screen.signIn('wrong');
    await screen.expectText('The server rejected this token.');
    expect(await screen.run(`document.querySelector('.sign-in input').type`)).toBe('password');
    expect(await screen.valueOf('Token')).toBe('');
    await screen.signIn(adminToken);
    await screen.expectText('system:admin');
    await screen.expectText(/\d+ kinds of objects, version/);
    expect(await screen.page.title()).toBe('Overview – Wheelhouse');
    await screen.click('Sign out');
    await screen.until(`document.querySelector('.sign-in form')`);
    expect(await screen.run('document.body.textContent')).not.toContain('system:admin');
  });

  test('CLIENT-4: the token stays in the tab, and a reload keeps it', async () => {
    const screen = await opened();
    await screen.expectText('kinds of objects');
    expect(await screen.run('Object.values(sessionStorage)')).toEqual([adminToken]);
    expect(await screen.run('localStorage.length')).toBe(0);
    expect(await screen.run('document.cookie')).toBe('');
    expect(await screen.run('location.href')).not.toContain(adminToken);
    expect(await screen.run('document.documentElement.outerHTML')).not.toContain(adminToken);
    await screen.page.reload();
    await screen.expectText('kinds of objects');
  });

  test('CLIENT-4: unsaved text survives the expiry of a token', async () => {
    const namespace = await withConfigMap('kept');
    const screen = await opened(at(namespace, 'kept', 'edit'));
    await screen.editor.replace('a: "1"', 'a: "2"');
    await screen.run('window.expired = true');
    await screen.click('Validate');
    await screen.expectText('Your session has expired. Sign in again.');
    expect(await screen.run(`document.querySelector('.cm-content')`)).toBeNull();
    await screen.run('window.expired = false');
    await screen.signIn(adminToken);
    expect(await screen.editor.text()).toContain('a: "2"');
    await screen.click('Save');
    await screen.expectText('Saved.');
  });

  test('CLIENT-4: a late 401 for an earlier sign-in does not end the next session', async () => {
    const namespace = await withConfigMap('late');
    const screen = await opened(at(namespace, 'late', 'edit'));
    await screen.editor.replace('a: "1"', 'a: "2"');
    await screen.run(`window.holds = (request) =>
      window.expired && request.method === 'PUT' && window.release === undefined`);
    await screen.run('window.expired = true');
    await screen.click('Validate');
    await screen.until('window.release !== undefined', 'the refusal that will be late');
    await screen.click('Save');
    await screen.expectText('Your session has expired. Sign in again.');
    await screen.run('window.expired = false');
    await screen.signIn(adminToken);
    await screen.editor.opened();
    await screen.click('Save');
    await screen.expectText('Saved.');
    await screen.run('window.release()');
    await screen.run('new Promise((resolve) => setTimeout(resolve))');
    const text = await screen.run('document.body.textContent');
    expect(text).toContain('Saved.');
    expect(text).not.toContain('Bearer token');
    expect(await screen.run(`document.querySelector('.sign-in')`)).toBeNull();
  });
});

describe.skipIf(chromium === undefined)('browsing', { timeout }, () => {
  test('CLIENT-4: kinds are found by any name and link to their objects', async () => {
    const screen = await opened();
    await screen.expectText('storageclasses');
    const shown = `[...document.querySelectorAll('nav li a')].map((link) => link.lastChild.data)`;
    await screen.fill('Find a kind', 'deploy');
    await screen.until(`${shown}.join() === 'deployments'`);
    await screen.fill('Find a kind', 'pvc');
    await screen.until(`${shown}.join() === 'persistentvolumeclaims'`);
    await screen.fill('Find a kind', 'policy');
    await screen.until(`${shown}.includes('poddisruptionbudgets')`);
    await screen.click(/poddisruptionbudgets$/);
    await screen.expectText('Live');
    expect(await screen.hash()).toBe('#/t/policy/v1/poddisruptionbudgets');
    expect(await screen.page.title()).toBe('PodDisruptionBudget objects – Wheelhouse');
  });

  test('CLIENT-4: a table is live, sorts by a column, and can show wide columns', async () => {
    const namespace = await withConfigMap('b');
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const screen = await opened(table(namespace));
    const names = (wanted: string, what: string) =>
      screen.until(
        `[...document.querySelectorAll('tbody a')].map((link) => link.textContent)
          .join() === '${wanted}'`,
        what,
      );
    await names('b', 'the first row');
    await screen.run(`window.first = document.querySelector('tbody tr')`);
    await mustCreate(on.server, path, configMap('a', { data: { x: '1', y: '2' } }));
    await names('a,b', 'the new row');
    // The unchanged row keeps its element.
    expect(await screen.run(`document.querySelectorAll('tbody tr')[1] === window.first`)).toBe(
      true,
    );
    await screen.click('Data');
    await names('b,a', 'the order of data');
    await screen.click('Data ↑');
    await names('a,b', 'the other order');
    await on.server.remove(`${path}/a`);
    await names('b', 'the row to go');
    await screen.expectText('1 object');

    await screen.click('Copy as kubectl');
    expect(await screen.copied()).toEqual([`kubectl get configmaps -n ${namespace}`]);
    await screen.go('#/t/apps/v1/deployments');
    await screen.expectText('Up-to-date');
    expect(await screen.texts('th')).not.toContain('Images');
    await screen.tick('Wide');
    await screen.until(
      `[...document.querySelectorAll('th')].some((header) => header.textContent === 'Images')`,
    );
  });

  test('CLIENT-4: a filter is part of the URL, which restores it', async () => {
    const namespace = await withConfigMap('one');
    const screen = await opened('#/t/core/v1/configmaps');
    await screen.expectText('Live');
    await screen.fill('Fields', 'metadata.name=one');
    await screen.fill('Namespaces', namespace);
    await screen.click('Show');
    await screen.until(`location.hash.includes('f=metadata.name%3Done')`, 'the address');
    await screen.expectText('1 object');
    expect(await screen.valueOf('Namespaces')).toBe(namespace);
    await screen.fill('Labels', '!!');
    await screen.click('Show');
    await screen.expectText(/Refused: .*unable to parse/);
    await screen.click('Try again');
  });

  test('CLIENT-4: an object shows its text, field owners, Events, and deletion', async () => {
    const namespace = await withConfigMap('watched', {
      metadata: { name: 'watched', labels: { tier: 'front' } },
    });
    const path = `/api/v1/namespaces/${namespace}/configmaps/watched`;
    const screen = await opened(at(namespace, 'watched'));
    const text = `document.querySelector('pre.text').textContent`;
    await screen.until(`${text}.includes('kind: ConfigMap')`, 'the text');
    expect(await screen.run(text)).not.toContain('managedFields');
    await screen.expectText('tier=front');
    await screen.tick('With managed fields');
    await screen.until(`${text}.includes('managedFields')`);
    await screen.tick('With managed fields');
    await screen.until(`!${text}.includes('managedFields')`);
    await on.server.patch(path, { data: { b: 'seen at once' } }, 'merge');
    await screen.until(`${text}.includes('seen at once')`, 'the change');
    await screen.click('JSON');
    await screen.until(`${text}.startsWith('{\\n  "apiVersion": "v1"')`, 'JSON');
    await screen.click('Fields');
    await screen.expectText('data.b');
    const { uid } = (await on.server.get(path)).body.metadata;
    await mustCreate(on.server, `/api/v1/namespaces/${namespace}/events`, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'watched.1' },
      involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', name: 'watched', namespace, uid },
      reason: 'Noticed',
      message: 'something happened',
      type: 'Normal',
    });
    await screen.click('Timeline');
    await screen.expectText('something happened');
    await screen.click('YAML');
    await screen.until(`${text}.includes('kind: ConfigMap')`, 'the text again');
    await on.server.remove(path);
    await screen.expectText('The object has been deleted.');
  });

  test('CLIENT-4: a new kind appears on an open page, and missing objects are reported', async () => {
    const screen = await opened('#/t/soon.example.com/v1/things');
    await screen.expectText('The server does not serve things of soon.example.com/v1.');
    await establish(on.server, { group: 'soon.example.com', plural: 'things', kind: 'Thing' });
    await screen.expectText('Live');
    await screen.go('#/o/core/v1/configmaps/default/missing');
    await screen.expectText('configmaps "missing" not found');
  });
});

describe.skipIf(chromium === undefined)('hostile names and values', { timeout }, () => {
  const script = '<img src=x onerror=alert(1)><script>alert(2)</script>';

  /** Asserts that no element loads or runs anything, and that every link stays on the page. */
  async function expectHarmless(screen: Screen): Promise<void> {
    const tags = ['script', 'img', 'iframe', 'object', 'embed', 'svg', 'style', 'link', 'base'];
    const found = await screen.run(
      `[...document.body.querySelectorAll(${quoted(tags.join())})]
        .map((element) => element.outerHTML)`,
    );
    expect(found).toEqual([]);
    const attributes = await screen.run<
      string[]
    >(`[...document.body.querySelectorAll('*')].flatMap((element) =>
      [...element.attributes].map(({ name, value }) => name + '=' + value))`);
    for (const attribute of new Set(attributes)) {
      expect(attribute).not.toMatch(/^on|^src|^action=|^formaction=/);
      // Styles that the console sets: sizes and positions, and nothing that loads.
      if (attribute.startsWith('style=')) expect(attribute).not.toMatch(/url|expression|import/i);
      if (attribute.startsWith('href=')) expect(attribute).toMatch(/^href=#/);
    }
    expect(screen.confirmations).toEqual([]);
  }

  test('CLIENT-4: object names are rendered as text everywhere', async () => {
    const name = `${script.replaceAll('/', '')}"'&`;
    const role = roleOf('ClusterRole', name, { rules: [] });
    const screen = await opened('#/t/rbac.authorization.svc.io/v1/clusterroles');
    await screen.expectText('Live');
    await mustCreate(on.server, `${rbacPath}/clusterroles`, role);
    await screen.until(
      `[...document.querySelectorAll('tbody a')]
        .some((link) => link.textContent === ${quoted(name)})`,
    );
    await expectHarmless(screen);
    await screen.click(name);
    await screen.until(`document.querySelector('h1').textContent === ${quoted(name)}`);
    await screen.expectText(`name: ${name}`.slice(0, 20));
    await expectHarmless(screen);
    await screen.click('Delete');
    await screen.expectText(`Delete ClusterRole ${name}?`);
    await expectHarmless(screen);
    await screen.click('Delete', 'dialog');
    await screen.expectText('The object has been deleted.');
  });

  test('CLIENT-4: annotations, data, columns, schemas, and Events are rendered as text', async () => {
    const namespace = await freshNamespace(on.server);
    await establishTraps(script);
    await mustCreate(on.server, `/apis/hostile.example.com/v1/namespaces/${namespace}/traps`, {
      apiVersion: 'hostile.example.com/v1',
      kind: 'Trap',
      metadata: {
        name: 'one',
        annotations: { note: script, 'example.com/link': 'javascript:alert(3)' },
        finalizers: ['example.com/keep'],
      },
      spec: { bait: script },
    });
    const trap = await on.server.get(
      `/apis/hostile.example.com/v1/namespaces/${namespace}/traps/one`,
    );
    const { uid } = trap.body.metadata;
    await mustCreate(on.server, `/api/v1/namespaces/${namespace}/events`, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'one.1' },
      involvedObject: { kind: 'Trap', name: 'one', namespace, uid },
      reason: script,
      message: `warning ${script}`,
      reportingComponent: script,
      type: 'Warning',
    });
    const screen = await opened(`#/t/hostile.example.com/v1/traps?ns=${namespace}`);
    const hasText = (selector: string) =>
      `[...document.querySelectorAll('${selector}')]
        .some((element) => element.textContent === ${quoted(script)})`;
    await screen.until(hasText('td'), 'the cell');
    expect(await screen.run(hasText('th'))).toBe(true);
    await expectHarmless(screen);
    for (const [tab, sign] of Object.entries({
      '': 'Finalizers:',
      '?tab=json': '"bait":',
      '?tab=fields': 'spec.bait',
      '?tab=events': `warning ${script}`,
      '?tab=history': 'Opened',
      '?tab=edit': 'One of',
    })) {
      await screen.go(`#/o/hostile.example.com/v1/traps/${namespace}/one${tab}`);
      if (tab === '?tab=edit') await screen.click('spec', '.explain');
      await screen.expectText(sign);
      await expectHarmless(screen);
    }
    await screen.expectText(`One of: ${script}, x`);
    const text = await screen.editor.text();
    await screen.editor.setText(`${text}\n"${script.replaceAll('"', '')}": 1\n`);
    await screen.click('Validate');
    await screen.expectText('strict decoding error');
    await expectHarmless(screen);
  });

  async function establishTraps(text: string): Promise<void> {
    const spec = {
      type: 'object',
      description: text,
      properties: { bait: { type: 'string', enum: [text, 'x'] } },
    };
    const schema = { type: 'object', description: text, properties: { spec } };
    await establish(on.server, {
      group: 'hostile.example.com',
      plural: 'traps',
      kind: 'Trap',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schema },
          additionalPrinterColumns: [
            { name: text, type: 'string', jsonPath: '.spec.bait', description: text },
          ],
        },
      ],
    });
  }

  test('CLIENT-4: a crafted URL can only navigate', async () => {
    const hashes = [
      `#/o/core/v1/configmaps/default/${encodeURIComponent(script)}`,
      `#/o/core/v1/configmaps/default/${encodeURIComponent(script)}?tab=edit`,
      `#/t/core/v1/configmaps?ns=${encodeURIComponent(script)}&l=${encodeURIComponent(script)}`,
      `#/t/${encodeURIComponent(script)}/v1/${encodeURIComponent(script)}`,
      '#/t/../../api/v1/secrets',
      '#/o/core/v1/configmaps/default/..',
      '#/apply',
      'javascript:alert(1)',
    ];
    const screen = await opened();
    await screen.expectText('kinds of objects');
    for (const hash of hashes) {
      await screen.go(hash);
      await screen.until(`document.querySelector('main h1')`, hash);
      await expectHarmless(screen);
    }
    // Opening any URL only reads. Reviews of the user's own identity and permissions store nothing.
    const writes =
      await screen.run(`window.requests.filter((request) => !request.startsWith('GET') &&
      !/\\/selfsubject(access)?reviews$/.test(request))`);
    expect(writes).toEqual([]);
  });

  test('CLIENT-4: the Content-Security-Policy blocks markup, scripts, and other servers', async () => {
    const screen = await opened();
    await screen.expectText('kinds of objects');
    const refused = (expression: string) =>
      screen.run(
        `(async () => { try { ${expression}; return 'done'; } catch (error) { return error.name; } })()`,
      );
    expect(await refused(`document.body.innerHTML = '<b>x</b>'`)).toBe('TypeError');
    expect(await refused(`document.body.insertAdjacentHTML('beforeend', '<b>x</b>')`)).toBe(
      'TypeError',
    );
    expect(await refused(`setTimeout('document.title = 1')`)).toBe('TypeError');
    expect(await refused(`await fetch('https://127.0.0.1:9/')`)).toBe('TypeError');
    const styled = `(() => {
      const style = document.createElement('style');
      style.textContent = 'body { outline: 7px solid red }';
      document.head.append(style);
      const width = getComputedStyle(document.body).outlineWidth;
      style.remove();
      return width;
    })()`;
    expect(await screen.run(styled)).not.toBe('7px');
    const inline = `(() => {
      const made = document.createElement('a');
      made.href = 'javascript:document.title="hit"';
      document.body.append(made);
      made.click();
      made.remove();
    })()`;
    await screen.run(inline).catch(() => {});
    expect(await screen.page.title()).not.toBe('hit');
  });
});

describe.skipIf(chromium === undefined)('editing', { timeout }, () => {
  async function editing(namespace: string, name: string): Promise<Screen> {
    const screen = await opened(at(namespace, name, 'edit'));
    await screen.editor.opened();
    return screen;
  }

  test('CLIENT-4: causes link to their lines, and accepted changes are previewed first', async () => {
    const namespace = await withConfigMap('edited');
    const path = `/api/v1/namespaces/${namespace}/configmaps/edited`;
    const screen = await editing(namespace, 'edited');
    await screen.editor.replace('a: "1"', 'a b: "1"');
    await screen.click('Validate');
    await screen.expectText('a valid config key must consist of');
    await screen.click(/^Line \d+$/);
    const selected = async () => (await screen.editor.selected()) === '  a b: "1"';
    await eventually(selected, 'the line to be selected');
    // The field reference is next to it.
    await screen.until(
      `/^ConfigMap ?data/.test(document.querySelector('.explain nav').textContent)`,
    );

    await screen.editor.replace('a b: "1"', 'a: "2"');
    await screen.click('Validate');
    await screen.expectText('Nothing has been saved.');
    await screen.until(
      `[...document.querySelectorAll('td')].some((cell) => cell.textContent === 'data.a')`,
    );
    expect((await on.server.get(path)).body.data).toEqual({ a: '1' });
    await screen.click('Save');
    await screen.expectText('Saved.');
    expect((await on.server.get(path)).body.data).toEqual({ a: '2' });
    const { managedFields } = (await on.server.get(path)).body.metadata;
    expect(managedFields.map(({ manager }: { manager: string }) => manager)).toContain(
      'wheelhouse-console',
    );
  });

  test('CLIENT-4: after a 409, both sides are shown and can be merged', async () => {
    const namespace = await withConfigMap('shared', { data: { a: '1', b: '1' } });
    const path = `/api/v1/namespaces/${namespace}/configmaps/shared`;
    const screen = await editing(namespace, 'shared');
    await screen.editor.replace('a: "1"', 'a: mine');
    await on.server.patch(path, { data: { b: 'theirs' } }, 'merge');
    await screen.expectText('The object has changed since you started editing.');
    expect(await screen.editor.text()).toContain('a: mine');
    await screen.click('Save');
    await screen.expectText('the object has been modified');
    const rows = await screen.run(`[...document.querySelectorAll('.changes tbody tr')].map((row) =>
      [...row.querySelectorAll('td')].map((cell) => cell.textContent).join(' '))`);
    expect(rows).toEqual(['others data.b "1" "theirs"', 'you data.a "1" "mine"']);
    // What is typed after the conflict is merged, too.
    await screen.editor.replace('a: mine', 'a: mine, still');
    await screen.click('Merge my changes into their version');
    await screen.click('Save');
    await screen.expectText('Saved.');
    expect((await on.server.get(path)).body.data).toEqual({ a: 'mine, still', b: 'theirs' });
  });

  test('CLIENT-4: apply takes ownership of fields only after a confirmation', async () => {
    const namespace = await withConfigMap('applied');
    const path = `/api/v1/namespaces/${namespace}/configmaps/applied`;
    const screen = await editing(namespace, 'applied');
    await screen.click('Owned fields only');
    await screen.until(`!document.querySelector('.cm-content').textContent.includes('uid')`);
    await screen.editor.replace('a: "1"', 'a: "2"');
    await screen.click('Save');
    await screen.expectText('conflict with "unknown" using v1');
    expect((await on.server.get(path)).body.data).toEqual({ a: '1' });
    await screen.click('Take ownership of these fields');
    await screen.expectText('Saved.');
    expect((await on.server.get(path)).body.data).toEqual({ a: '2' });
  });

  test('CLIENT-4: leaving unsaved text requires a confirmation', async () => {
    const namespace = await withConfigMap('unsaved');
    const screen = await editing(namespace, 'unsaved');
    const text = await screen.editor.text();
    await screen.editor.setText(`${text}# more\n`);
    screen.acceptsConfirmations = false;
    await screen.go('#/').catch(() => {});
    await eventually(async () => screen.confirmations.length === 1, 'the question');
    await screen.until(`location.hash === ${quoted(at(namespace, 'unsaved', 'edit'))}`);
    expect(await screen.editor.text()).toContain('# more');
    screen.acceptsConfirmations = true;
    await screen.go('#/').catch(() => {});
    await screen.expectText('kinds of objects');
  });

  test('CLIENT-4: objects are created, scaled, and deleted', async () => {
    const namespace = await freshNamespace(on.server);
    const screen = await opened(`#/c/core/v1/configmaps?ns=${namespace}`);
    await screen.editor.replace('name: ""', 'name: made');
    await screen.editor.setText(`${await screen.editor.text()}data:\n  x: "1"\n`);
    await screen.click('Save');
    await screen.until(`location.hash === ${quoted(at(namespace, 'made'))}`, 'its page');
    await screen.expectText('kind: ConfigMap');
    await screen.click('Delete');
    await screen.expectText('Delete ConfigMap made?');
    await screen.click('Cancel', 'dialog');
    await screen.until(`document.querySelector('dialog') === null`, 'the dialog to go');
    const path = `/api/v1/namespaces/${namespace}/configmaps/made`;
    expect((await on.server.get(path)).status).toBe(200);
    await screen.click('Delete');
    await screen.click('Delete', 'dialog');
    await eventually(async () => (await on.server.get(path)).status === 404, 'the deletion');

    const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    await mustCreate(on.server, deployments, deploymentOf('web'));
    await screen.go(`#/o/apps/v1/deployments/${namespace}/web`);
    await screen.click('Scale');
    await screen.expectText('Current replicas: 0');
    await screen.fill('Replicas', '-2');
    await screen.click('Scale', 'dialog');
    await screen.expectText('must be greater than or equal to 0');
    await screen.fill('Replicas', '5');
    await screen.click('Scale', 'dialog');
    await screen.expectText('web scaled to 5 replicas.');
  });

  test('CLIENT-4: keyboard shortcuts reach the same views', async () => {
    const namespace = await withConfigMap('keyed');
    const screen = await opened(at(namespace, 'keyed'));
    await screen.expectText('kind: ConfigMap');
    await screen.press('e');
    await screen.editor.opened();
    expect(await screen.hash()).toBe(at(namespace, 'keyed', 'edit'));
    await screen.press('g');
    await screen.expectText('kinds of objects');
    await screen.go(table(namespace));
    await screen.expectText('Live');
    await screen.press('c');
    await screen.expectText('New ConfigMap');
    await screen.press('/');
    await screen.until(`document.activeElement?.placeholder?.startsWith('Find a kind')`);
  });
});

describe.skipIf(chromium === undefined)('access', { timeout }, () => {
  test('CLIENT-4: shows the user’s permissions, checks access, and lists subjects', async () => {
    const namespace = await freshNamespace(on.server);
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }];
    const within = `${rbacPath}/namespaces/${namespace}`;
    await mustCreate(on.server, `${within}/roles`, roleOf('Role', 'lister', { rules }));
    const binding = { role: 'lister', roleKind: 'Role', subjects: ['reader'] } as const;
    await mustCreate(on.server, `${within}/rolebindings`, bindingOf('RoleBinding', 'rb', binding));

    const reader = await opened(`#/a/mine?ns=${namespace}`, { token: 'reader' });
    await reader.expectText('You are reader in system:authenticated.');
    const row = `[...document.querySelectorAll('tbody tr')]
      .find((row) => row.querySelector('th').textContent === 'configmaps')`;
    await reader.until(row, 'the matrix');
    expect(
      await reader.run(`[...${row}.querySelectorAll('td')].map((cell) => cell.ariaLabel)`),
    ).toEqual(['yes', 'yes', 'no', 'no', 'no', 'no', 'no', 'no']);
    await reader.click('Check access');
    await reader.fill('Verb', 'list');
    await reader.fill('Resource', 'configmaps');
    await reader.click('Check');
    await reader.expectText('Yes.');
    await reader.fill('Namespace', 'default');
    await reader.click('Check');
    await reader.expectText('No.');
    await reader.fill('User', 'somebody');
    await reader.click('Check');
    await reader.expectText('User "reader" cannot create resource "subjectaccessreviews"');
    await reader.click('Who can …?');
    await reader.click('Find');
    await reader.expectText('User "reader" cannot list resource "clusterroles"');
    await reader.expectText('No subjects found.');

    const admin = await opened(`#/a/who?ns=${namespace}`);
    await admin.fill('Verb', 'list');
    await admin.fill('Resource', 'configmaps');
    await admin.click('Find');
    await admin.expectText(`User/reader${namespace}RoleBinding/${namespace}/rbRole/lister`);
    await admin.expectText('Group/system:mastersall namespaces');
  });

  test('CLIENT-4: views show why they are forbidden', async () => {
    const namespace = await withConfigMap('hidden');
    const screen = await opened(table(namespace), { token: 'reader' });
    await screen.expectText(/Refused: .*User "reader" cannot list resource "configmaps"/);
    await screen.go(at(namespace, 'hidden'));
    await screen.expectText('User "reader" cannot get resource "configmaps"');
  });
});
