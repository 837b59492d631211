import type { Browser } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bindingOf, mustCreate, rbacPath, startWithUsers } from '../authentication/token-users.ts';
import { adminToken, configMap, type TestServer } from '../support/harness.ts';
import { type BuiltConsole, buildConsole, deploymentOf } from './console.ts';
import {
  accessibilityFaults,
  chromium,
  openScreen,
  openSignedIn,
  type Screen,
  startBrowser,
} from './screen.ts';

/**
 * Every view in every state, light, dark, and as wide as a phone: each leaves a picture, has no fault
 * by WCAG 2.2 AA, is no wider than its window, and every field has a name.
 */

let built: BuiltConsole;
let server: TestServer;
let browser: Browser;

/** A browser on a busy machine. */
const timeout = 300_000;
const namespace = 'gallery';

beforeAll(async () => {
  if (chromium === undefined) return;
  built = await buildConsole();
  server = await startWithUsers([{ name: 'reader' }, { name: 'viewer' }], {
    console: { directory: built.directory },
  });
  await furnish();
  browser = await startBrowser();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  built?.remove();
});

/** Objects to look at: a family with Events and conditions, a refused namespace, and an empty one. */
async function furnish(): Promise<void> {
  const named = (kind: string, name: string) => ({
    apiVersion: 'v1',
    kind,
    metadata: { name },
  });
  await mustCreate(server, '/api/v1/namespaces', named('Namespace', namespace));
  await mustCreate(server, '/api/v1/namespaces', named('Namespace', 'empty'));
  const binding = { role: 'view', subjects: ['viewer'] } as const;
  await mustCreate(
    server,
    `${rbacPath}/namespaces/${namespace}/rolebindings`,
    bindingOf('RoleBinding', 'viewers', binding),
  );
  const core = `/api/v1/namespaces/${namespace}`;
  const apps = `/apis/apps/v1/namespaces/${namespace}`;
  for (const name of [
    'settings',
    'feature-flags',
    'a-name-that-is-so-long-that-it-is-cut-somewhere',
  ]) {
    await mustCreate(server, `${core}/configmaps`, configMap(name, { data: { mode: 'fast' } }));
  }
  const { body: web } = await server.post(
    `${apps}/deployments?fieldManager=deployer`,
    deploymentOf('web', { replicas: 2 }),
  );
  const condition = { type: 'Available', status: 'False', reason: 'Waiting', message: 'not yet' };
  await server.patch(
    `${apps}/deployments/web/status?fieldManager=kubelet`,
    { status: { conditions: [condition], replicas: 2 } },
    'merge',
  );
  await server.patch(
    `${apps}/deployments/web?fieldManager=scaler`,
    { spec: { replicas: 4 }, metadata: { labels: { tier: 'front' } } },
    'merge',
  );
  const { uid } = web.metadata;
  await mustCreate(server, `${apps}/replicasets`, {
    ...deploymentOf('web-1'),
    kind: 'ReplicaSet',
    metadata: {
      name: 'web-1',
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid, controller: true },
      ],
    },
  });
  await mustCreate(server, `${core}/events`, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'web.1' },
    involvedObject: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', namespace, uid },
    reason: 'FailedCreate',
    message: 'Error creating: pods "web-1-" is forbidden: exceeded quota',
    type: 'Warning',
    count: 12,
  });
}

/** One view: where it is, what it shows when it is there, and what is done before. */
interface View {
  readonly name: string;
  readonly hash: string;
  /** A selector, or what the page says. */
  readonly shows: string | RegExp;
  /** Before it is opened: what makes the state. */
  readonly before?: (screen: Screen) => Promise<void>;
  /** After it is opened. */
  readonly act?: (screen: Screen) => Promise<void>;
  /** Who looks; the administrator unless told otherwise. */
  readonly user?: string;
}

const list = (within = namespace): string => `#/t/core/v1/configmaps?ns=${within}`;
const web = (tab = ''): string =>
  `#/o/apps/v1/deployments/${namespace}/web${tab === '' ? '' : `?tab=${tab}`}`;

/** Answers do not come, until the page is left. */
const hold = (path: string) => async (screen: Screen) => {
  await screen.run(`void (window.holds = (request, url) => url.includes(${JSON.stringify(path)}))`);
};
/** The network is gone for requests to a path. */
const cut = (path: string) => async (screen: Screen) => {
  await screen.run(`void (window.cuts = (url) => url.includes(${JSON.stringify(path)}))`);
};
/** Keys belong to the page that is shown: a list takes them once it has rows. */
const press = (key: 'f' | '?') => async (screen: Screen) => {
  await screen.until(`document.querySelector('tbody a')`);
  await screen.press(key);
};
const paste = (text: string) => async (screen: Screen) => {
  await screen.fill('Manifests', text);
  await screen.click('Use this text');
};

const conflicting = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ${namespace}}
spec: {replicas: 9}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ${namespace}}
data: {extra: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: new, namespace: ${namespace}}
data: {a: b}
---
a: [
`;

const views: readonly View[] = [
  { name: 'overview', hash: '#/', shows: '.tile-count' },
  { name: 'overview-forbidden', hash: '#/', shows: /No charts/, user: 'reader' },
  { name: 'overview-cut', hash: '#/', shows: /No charts/, before: cut('/') },
  { name: 'list', hash: list(), shows: 'tbody a' },
  { name: 'list-empty', hash: list('empty'), shows: /There are none/ },
  { name: 'list-loading', hash: list(), shows: /Loading/, before: hold('/configmaps') },
  { name: 'list-forbidden', hash: list(), shows: /Refused/, user: 'reader' },
  { name: 'list-cut', hash: list(), shows: /Not connected/, before: cut('/configmaps') },
  { name: 'list-filtering', hash: list(), shows: '.filters', act: press('f') },
  {
    name: 'list-selection',
    hash: list(),
    shows: /2 selected/,
    act: async (screen) => {
      await screen.tick('Select settings');
      await screen.tick('Select feature-flags');
    },
  },
  {
    name: 'list-bulk-delete',
    hash: list(),
    shows: 'dialog',
    act: async (screen) => {
      await screen.tick('Select settings');
      await screen.click('Delete…');
    },
  },
  { name: 'object-yaml', hash: web(), shows: 'pre.text' },
  { name: 'object-json', hash: web('json'), shows: 'pre.text' },
  { name: 'object-tree', hash: web('tree'), shows: '.graph path' },
  { name: 'object-timeline', hash: web('events'), shows: /Error creating/ },
  { name: 'object-history', hash: web('history'), shows: /scaler/ },
  { name: 'object-fields', hash: web('fields'), shows: /scaler/ },
  { name: 'object-edit', hash: web('edit'), shows: '.explain dl' },
  {
    name: 'object-form',
    hash: web('edit'),
    shows: '.schema-form',
    act: (screen) => screen.click('Edit as form'),
  },
  { name: 'object-loading', hash: web(), shows: /Loading|Reading/, before: hold('/deployments') },
  { name: 'object-cut', hash: web(), shows: '.notice', before: cut('/deployments') },
  {
    name: 'object-missing',
    hash: list().replace('#/t', '#/o').replace('?ns=', '/') + '/none',
    shows: '.notice',
  },
  { name: 'object-forbidden', hash: web(), shows: '.notice', user: 'reader' },
  {
    name: 'object-read-only',
    hash: web('edit'),
    shows: '.explain dl',
    user: 'viewer',
  },
  { name: 'object-delete', hash: web(), shows: 'dialog', act: (screen) => screen.click('Delete') },
  { name: 'object-scale', hash: web(), shows: 'dialog', act: (screen) => screen.click('Scale') },
  { name: 'create', hash: `#/c/core/v1/configmaps?ns=${namespace}`, shows: '.explain dl' },
  { name: 'apply', hash: '#/apply', shows: 'textarea' },
  { name: 'apply-results', hash: '#/apply', shows: /would be refused/, act: paste(conflicting) },
  { name: 'access-mine', hash: `#/a/mine?ns=${namespace}`, shows: '.matrix tbody tr' },
  { name: 'access-ask', hash: `#/a/ask?ns=${namespace}`, shows: 'main form' },
  {
    name: 'access-who',
    hash: `#/a/who?ns=${namespace}`,
    shows: /system:masters/,
    act: (screen) => screen.click('Find'),
  },
  {
    name: 'access-who-forbidden',
    hash: `#/a/who?ns=${namespace}`,
    shows: /cannot list/,
    act: (screen) => screen.click('Find'),
    user: 'reader',
  },
  { name: 'not-served', hash: '#/t/none.example.com/v1/none', shows: /Not served/ },
  {
    name: 'palette',
    hash: list(),
    shows: '[role=option]',
    act: async (screen) => {
      await screen.until(`document.querySelector('tbody a')`);
      await screen.page.keyboard.down('Control');
      await screen.press('k');
      await screen.page.keyboard.up('Control');
    },
  },
  { name: 'help', hash: list(), shows: 'dialog', act: press('?') },
];

/** How a view is looked at, all without opening it again. */
interface Form {
  readonly name: string;
  readonly scheme: 'light' | 'dark';
  readonly width: number;
  readonly height: number;
  /** Which rules of accessibility to check: those that the form before did not. */
  readonly rules: Parameters<typeof accessibilityFaults>[1];
}

const desk = { width: 1280, height: 800 };
const light: Form = { name: 'light', scheme: 'light', ...desk, rules: {} };
const forms: readonly Form[] = [
  light,
  { name: 'dark', scheme: 'dark', ...desk, rules: { only: ['color-contrast'] } },
  {
    name: 'phone',
    scheme: 'light',
    width: 390,
    height: 844,
    rules: { except: ['color-contrast'] },
  },
];

async function take(screen: Screen, { scheme, width, height }: Form): Promise<void> {
  await screen.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await screen.page.setViewport({ width, height });
  await screen.run(
    'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))',
  );
}

/** Asserts that what a screen shows can be read and used in every form. */
async function expectUsable(screen: Screen, view: string): Promise<void> {
  for (const form of forms) {
    const name = `${form.name}-${view}`;
    await take(screen, form);
    await screen.picture(name);
    const wide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    expect.soft(await screen.run(wide), `${name}: wider than the window`).toBe(0);
    // A page that is checked while it changes may show faults; those of its own stay.
    await expect.poll(() => accessibilityFaults(screen, form.rules), { message: name }).toEqual([]);
  }
  await take(screen, light);
  const nameless = `[...document.querySelectorAll('input, select, textarea')]
    .filter((one) => one.labels.length === 0 && !one.ariaLabel).map((one) => one.outerHTML)`;
  expect.soft(await screen.run(nameless), `${view}: fields without a name`).toEqual([]);
  // A view must not call something empty that it could not read.
  if (/-(cut|forbidden|loading)$/.test(view)) {
    const text = await screen.run('document.body.textContent');
    expect.soft(text, view).not.toContain('There are none');
  }
}

async function show(screen: Screen, view: View): Promise<void> {
  await screen.run('void (window.holds = undefined, window.cuts = undefined)');
  await screen.go('#/a/ask?ns=nowhere');
  await screen.until(`document.querySelector('main form')`);
  await view.before?.(screen);
  await screen.go(view.hash);
  const { shows } = view;
  if (view.act !== undefined) {
    await screen.until(`document.querySelector('main h1')`);
    await view.act(screen);
  }
  if (shows instanceof RegExp) await screen.sees(shows);
  else await screen.until(`document.querySelector(${JSON.stringify(shows)})`);
}

describe.skipIf(chromium === undefined)('light, dark, and on a phone', { timeout }, () => {
  test('CLIENT-4: everybody can read and use the ways in', async () => {
    const screen = await openScreen(browser, { url: server.url });
    await screen.until(`document.querySelector('.sign-in input')`);
    await expectUsable(screen, 'sign-in');
    await screen.signIn('wrong');
    await screen.sees('does not accept this token');
    await expectUsable(screen, 'sign-in-refused');
    await hold('selfsubjectreviews')(screen);
    await screen.signIn(adminToken);
    await screen.sees('Signing in…');
    await expectUsable(screen, 'sign-in-waiting');
    await screen.close();
    const other = await openScreen(browser, { url: server.url });
    await other.until(`document.querySelector('.sign-in input')`);
    await other.run(`void (window.cuts = (url) => /apis?$/.test(url))`);
    await other.signIn(adminToken);
    await other.sees('Try again');
    await expectUsable(other, 'unreachable');
    await other.close();
  });

  const users = [...new Set(views.map(({ user = adminToken }) => user))];
  test.each(users)('CLIENT-4: everybody can read and use every view of %s', async (user) => {
    const screen = await openSignedIn(browser, { url: server.url, token: user });
    await screen.until(`document.querySelector('main h1')`);
    for (const view of views.filter((one) => (one.user ?? adminToken) === user)) {
      await show(screen, view);
      await expectUsable(screen, view.name);
      await screen.run(`for (const one of document.querySelectorAll('dialog')) one.close()`);
    }
    await screen.close();
  });
});
