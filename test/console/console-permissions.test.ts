import { beforeEach, describe, expect, test } from 'vitest';
import {
  bindingOf,
  mustCreate,
  rbacPath,
  roleOf,
  startWithUsers,
} from '../authentication/token-users.ts';
import { configMap, freshNamespace } from '../support/harness.ts';
import { deploymentOf } from './console.ts';
import { accessibilityFaults, chromium, consoleInBrowser, type Screen } from './screen.ts';

/** Actions that the user may not perform. */

const users = [{ name: 'reader' }, { name: 'editor' }, { name: 'getter' }, { name: 'lister' }];
const on = consoleInBrowser((console) => startWithUsers(users, { console }));
let namespace: string;

beforeEach(async () => {
  if (chromium === undefined) return;
  namespace = await freshNamespace(on.server);
  for (const name of ['one', 'two']) {
    await mustCreate(on.server, `/api/v1/namespaces/${namespace}/configmaps`, configMap(name));
  }
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`;
  await mustCreate(on.server, deployments, deploymentOf('web'));
  const read = { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] };
  await grant('reader', [read]);
  const own = { apiGroups: [''], resources: ['configmaps'], resourceNames: ['one'] };
  await grant('editor', [read, { ...own, verbs: ['update', 'delete', 'patch'] }]);
});

async function grant(user: string, rules: readonly object[]): Promise<void> {
  const within = `${rbacPath}/namespaces/${namespace}`;
  await mustCreate(on.server, `${within}/roles`, roleOf('Role', user, { rules }));
  const binding = { role: user, roleKind: 'Role', subjects: [user] } as const;
  await mustCreate(on.server, `${within}/rolebindings`, bindingOf('RoleBinding', user, binding));
}

const opened = (token: string, hash: string): Promise<Screen> => on.open({ hash, token });

const table = () => `#/t/core/v1/configmaps?ns=${namespace}`;
const at = (name: string, tab = '') =>
  `#/o/core/v1/configmaps/${namespace}/${name}${tab === '' ? '' : `?tab=${tab}`}`;
const buttonOf = (text: string) =>
  `[...document.querySelectorAll('main button')]
    .find((button) => button.textContent.trim() === ${JSON.stringify(text)})`;

/** The reason why an action is unavailable, as its tooltip and as screen readers read it. */
async function refusalOf(screen: Screen, action: string): Promise<string> {
  const button = buttonOf(action);
  await screen.until(`${button}?.ariaDisabled === 'true'`, `${action} to be unavailable`);
  const tooltip: string = await screen.run(`${button}.title`);
  const description = `document.getElementById(${button}.getAttribute('aria-describedby'))`;
  expect(await screen.run(`${description}.textContent`)).toBe(tooltip);
  return tooltip;
}

async function isOffered(screen: Screen, action: string): Promise<boolean> {
  return (await screen.run(`${buttonOf(action)}.ariaDisabled`)) !== 'true';
}

async function palette(screen: Screen, query: string): Promise<string[]> {
  await screen.run(`dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }))`);
  await screen.fill('Search or jump to', query);
  const found = await screen.texts('.palette li span');
  await screen.press('Escape');
  await screen.until(`document.querySelector('dialog') === null`, 'the palette to close');
  return found;
}

const timeout = 120_000;

describe.skipIf(chromium === undefined)('permissions', { timeout }, () => {
  test('CLIENT-4: a reader sees why an object cannot be edited, scaled, or deleted', async () => {
    const screen = await opened('reader', at('one'));
    await screen.expectText('kind: ConfigMap');
    const where = `in the namespace "${namespace}".`;
    expect(await refusalOf(screen, 'Delete')).toBe(`You may not delete configmaps "one" ${where}`);
    expect(await refusalOf(screen, 'Edit')).toBe(`You may not update configmaps "one" ${where}`);
    expect(await palette(screen, 'show')).not.toContain('Show Edit');
    expect(await palette(screen, 'delete')).not.toContain('Delete');
    // Using the action explains it and does nothing else.
    await screen.run(`${buttonOf('Delete')}.click()`);
    await screen.until(
      `document.querySelector('[role=status], [aria-live]') !== null &&
        [...document.querySelectorAll('[aria-live], [role=status], output')]
          .some((region) => region.textContent.includes('You may not delete'))`,
      'the announcement',
    );
    expect(await screen.run(`document.querySelector('dialog')`)).toBeNull();
    expect(await accessibilityFaults(screen)).toEqual([]);

    await screen.go(`#/o/apps/v1/deployments/${namespace}/web`);
    expect(await refusalOf(screen, 'Scale')).toBe(
      `You may not update the scale of deployments.apps "web" ${where}`,
    );
  });

  test('CLIENT-4: the editor of a reader neither saves nor validates, and shows why', async () => {
    const screen = await opened('reader', at('one', 'edit'));
    await screen.editor.opened();
    const refusal = await refusalOf(screen, 'Save');
    expect(refusal).toBe(`You may not update configmaps "one" in the namespace "${namespace}".`);
    await screen.expectText(refusal);
    expect(await refusalOf(screen, 'Validate')).toBe(refusal);
    await screen.editor.setCursorAfter('kind: ConfigMap');
    const writes = `window.requests.filter((request) => request.startsWith('PUT')).length`;
    await screen.page.keyboard.down('Control');
    await screen.press('s');
    await screen.press('Enter');
    await screen.page.keyboard.up('Control');
    await screen.fill('Mode', 'apply');
    expect(await refusalOf(screen, 'Save')).toContain('You may not patch configmaps "one"');
    expect(await screen.run(writes)).toBe(0);
    expect(await accessibilityFaults(screen)).toEqual([]);
  });

  test('CLIENT-4: a reader is offered neither creation nor deletion in a list', async () => {
    const screen = await opened('reader', table());
    await screen.expectText('Live');
    expect(await refusalOf(screen, 'Create')).toBe(
      `You may not create configmaps in the namespace "${namespace}".`,
    );
    await screen.tick('Select all');
    await screen.expectText('2 selected');
    expect(await refusalOf(screen, 'Delete…')).toContain('You may not delete configmaps');
    await screen.until(
      `(dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true })), true)`,
    );
    await screen.fill('Search or jump to', 'create');
    await screen.until(
      `![...document.querySelectorAll('.palette li span')]
        .some((item) => item.textContent === 'Create ConfigMap')`,
      'the palette without creation',
    );
    await screen.press('Escape');
    await screen.go(`#/c/core/v1/configmaps?ns=${namespace}`);
    await screen.editor.opened();
    expect(await refusalOf(screen, 'Save')).toContain('You may not create configmaps');
  });

  test('CLIENT-4: manifests that the user may not apply cannot be applied', async () => {
    const screen = await opened('reader', '#/apply');
    const metadata = `metadata: {name: one, namespace: ${namespace}}`;
    await screen.fill('Manifests', `apiVersion: v1\nkind: ConfigMap\n${metadata}\n`);
    await screen.click('Preview');
    await screen.expectText('would be rejected');
    expect(await refusalOf(screen, 'Apply')).toContain('You may not patch configmaps "one"');
  });

  test('CLIENT-4: permissions on single objects are respected', async () => {
    const screen = await opened('editor', at('two', 'edit'));
    expect(await refusalOf(screen, 'Save')).toContain('You may not update configmaps "two"');
    await screen.go(at('one', 'edit'));
    await screen.editor.opened();
    await screen.editor.replace('a: "1"', 'a: "2"');
    await screen.click('Save');
    await screen.expectText('Saved.');
    expect(await isOffered(screen, 'Delete')).toBe(true);
    await screen.go(table());
    await screen.expectText('Live');
    await screen.tick('Select two');
    expect(await refusalOf(screen, 'Delete…')).toContain('You may not delete configmaps');
    await screen.tick('Select one');
    await screen.until(`${buttonOf('Delete…')}.ariaDisabled !== 'true'`, 'the deletion');
    await screen.click('Delete…');
    await screen.click('Delete 2', 'dialog');
    await screen.expectText('1 not deleted. two:');
  });

  test('CLIENT-4: an object that may be read but not listed is not shown as deleted', async () => {
    const rule = { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] };
    await grant('getter', [rule]);
    const screen = await opened('getter', at('one'));
    await screen.expectText('kind: ConfigMap');
    await screen.expectText('Not live: configmaps "one" is forbidden');
    await screen.page.evaluate(
      'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
    );
    expect(await screen.texts('.notice')).toEqual([]);
    const path = `/api/v1/namespaces/${namespace}/configmaps/one`;
    await on.server.patch(path, { data: { a: 'changed' } }, 'merge');
    await screen.click('Refresh');
    await screen.expectText('a: changed');
    expect(await accessibilityFaults(screen)).toEqual([]);
  });

  test('CLIENT-4: a list that may not be watched can be refreshed', async () => {
    const rule = { apiGroups: [''], resources: ['configmaps'], verbs: ['list'] };
    await grant('lister', [rule]);
    const screen = await opened('lister', table());
    await screen.expectText('2 objects');
    await screen.expectText('Not live');
    await mustCreate(on.server, `/api/v1/namespaces/${namespace}/configmaps`, configMap('three'));
    await screen.click('Refresh');
    await screen.expectText('3 objects');
  });

  test('CLIENT-4: actions are offered if access reviews fail', async () => {
    const screen = await opened('reader', '#/');
    await screen.expectText('kinds of objects');
    await screen.run(`window.cuts = (path) => path.endsWith('selfsubjectaccessreviews')`);
    await screen.go(at('one'));
    await screen.expectText('kind: ConfigMap');
    await screen.click('Delete');
    await screen.click('Delete', 'dialog');
    await screen.expectText('User "reader" cannot delete resource "configmaps"');
  });
});
