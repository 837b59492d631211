import { beforeAll, describe, expect, test } from 'vitest';
import { bindingOf, mustCreate, rbacPath, startWithUsers } from '../authentication/token-users.ts';
import { adminToken, configMap } from '../support/harness.ts';
import { deploymentOf } from './console.ts';
import {
  accessibilityFaults,
  chromium,
  consoleInBrowser,
  openScreen,
  openSignedIn,
  type Screen,
} from './screen.ts';

/**
 * Checks every view in every state, light, dark, and as wide as a phone: it has no violations of
 * WCAG 2.2 AA, fits its window, and all its fields have names. CONSOLE_SCREENSHOTS=1 saves a
 * screenshot of each.
 */

const users = [{ name: 'reader' }, { name: 'viewer' }];
const on = consoleInBrowser((console) => startWithUsers(users, { console }));

/** Time limit of a test, for a browser on a busy machine. */
const timeout = 300_000;
const namespace = 'gallery';

beforeAll(async () => {
  if (chromium !== undefined) await createObjects();
}, 120_000);

/**
 * Creates related objects with Events and conditions, a namespace that only `viewer` may read, and
 * an empty one.
 */
async function createObjects(): Promise<void> {
  const named = (kind: string, name: string) => ({ apiVersion: 'v1', kind, metadata: { name } });
  await mustCreate(on.server, '/api/v1/namespaces', named('Namespace', namespace));
  await mustCreate(on.server, '/api/v1/namespaces', named('Namespace', 'empty'));
  const binding = { role: 'view', subjects: ['viewer'] } as const;
  await mustCreate(
    on.server,
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
    await mustCreate(on.server, `${core}/configmaps`, configMap(name, { data: { mode: 'fast' } }));
  }
  const { body: web } = await on.server.post(
    `${apps}/deployments?fieldManager=deployer`,
    deploymentOf('web', { replicas: 2 }),
  );
  const condition = { type: 'Available', status: 'False', reason: 'Waiting', message: 'not yet' };
  await on.server.patch(
    `${apps}/deployments/web/status?fieldManager=kubelet`,
    { status: { conditions: [condition], replicas: 2 } },
    'merge',
  );
  await on.server.patch(
    `${apps}/deployments/web?fieldManager=scaler`,
    { spec: { replicas: 4 }, metadata: { labels: { tier: 'front' } } },
    'merge',
  );
  const { uid } = web.metadata;
  await mustCreate(on.server, `${apps}/replicasets`, {
    ...deploymentOf('web-1'),
    kind: 'ReplicaSet',
    metadata: {
      name: 'web-1',
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid, controller: true },
      ],
    },
  });
  await mustCreate(on.server, `${core}/events`, {
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

/** One view: its route, its expected contents, and its setup. */
interface View {
  readonly name: string;
  readonly hash: string;
  /** A selector, or a text on the page. */
  readonly shows: string | RegExp;
  /** Sets up the state before the view opens. */
  readonly before?: (screen: Screen) => Promise<void>;
  /** Runs after the view opens. */
  readonly act?: (screen: Screen) => Promise<void>;
  /** The user; the administrator by default. */
  readonly user?: string;
}

const list = (within = namespace): string => `#/t/core/v1/configmaps?ns=${within}`;
const web = (tab = ''): string =>
  `#/o/apps/v1/deployments/${namespace}/web${tab === '' ? '' : `?tab=${tab}`}`;

/** Delays responses until the page closes. */
const delay = (path: string) => async (screen: Screen) => {
  await screen.run(`void (window.holds = (request, url) => url.includes(${JSON.stringify(path)}))`);
};
/** Makes requests to a path fail. */
const disconnect = (path: string) => async (screen: Screen) => {
  await screen.run(`void (window.cuts = (url) => url.includes(${JSON.stringify(path)}))`);
};
/** Waits until the list has rows, since it handles keys only then. */
const press = (key: 'f' | '?') => async (screen: Screen) => {
  await screen.until(`document.querySelector('tbody a')`);
  await screen.press(key);
};
const paste = (text: string) => async (screen: Screen) => {
  await screen.fill('Manifests', text);
  await screen.click('Preview');
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
  { name: 'overview-forbidden', hash: '#/', shows: /Charts are unavailable/, user: 'reader' },
  {
    name: 'overview-disconnected',
    hash: '#/',
    shows: /Charts are unavailable/,
    before: disconnect('/'),
  },
  { name: 'list', hash: list(), shows: 'tbody a' },
  { name: 'list-empty', hash: list('empty'), shows: /No objects/ },
  { name: 'list-loading', hash: list(), shows: /Loading/, before: delay('/configmaps') },
  { name: 'list-forbidden', hash: list(), shows: /Refused/, user: 'reader' },
  {
    name: 'list-disconnected',
    hash: list(),
    shows: /Not connected/,
    before: disconnect('/configmaps'),
  },
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
  { name: 'object-loading', hash: web(), shows: /Loading|Reading/, before: delay('/deployments') },
  {
    name: 'object-disconnected',
    hash: web(),
    shows: '.notice',
    before: disconnect('/deployments'),
  },
  {
    name: 'object-missing',
    hash: `${list().replace('#/t', '#/o').replace('?ns=', '/')}/none`,
    shows: '.notice',
  },
  { name: 'object-forbidden', hash: web(), shows: '.notice', user: 'reader' },
  { name: 'object-read-only', hash: web('edit'), shows: '.explain dl', user: 'viewer' },
  { name: 'object-delete', hash: web(), shows: 'dialog', act: (screen) => screen.click('Delete') },
  { name: 'object-scale', hash: web(), shows: 'dialog', act: (screen) => screen.click('Scale') },
  { name: 'create', hash: `#/c/core/v1/configmaps?ns=${namespace}`, shows: '.explain dl' },
  { name: 'apply', hash: '#/apply', shows: 'textarea' },
  { name: 'apply-results', hash: '#/apply', shows: /would be rejected/, act: paste(conflicting) },
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

/** A form of a view: theme and width, changed without reopening it. */
interface Form {
  readonly name: string;
  readonly scheme: 'light' | 'dark';
  readonly width: number;
  readonly height: number;
  /** The accessibility rules that the previous forms did not check. */
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

/** The navigation, which has more elements than most views. */
const navigation = '.navigation';
/** The forms and contents of navigations without faults. */
const fineNavigations = new Set<string>();

/**
 * Asserts that a screen has no faults in a form. A navigation that had none in the form is left out
 * until its contents differ.
 */
async function expectAccessible(screen: Screen, form: Form, name: string): Promise<void> {
  const faults = async (): Promise<string[]> => {
    const content = await screen.run(`document.querySelector('${navigation}')?.outerHTML`);
    const key = `${form.name} ${content}`;
    const without = fineNavigations.has(key) ? { without: navigation } : {};
    const found = await accessibilityFaults(screen, { ...form.rules, ...without });
    if (found.length === 0) fineNavigations.add(key);
    return found;
  };
  // A changing page may have transient faults; only lasting ones count.
  await expect.poll(faults, { message: name }).toEqual([]);
}

/** Asserts that a screen is readable and usable in every form. */
async function expectUsable(screen: Screen, view: string): Promise<void> {
  for (const form of forms) {
    const name = `${form.name}-${view}`;
    await take(screen, form);
    await screen.screenshot(name);
    const wide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    expect.soft(await screen.run(wide), `${name}: wider than the window`).toBe(0);
    await expectAccessible(screen, form, name);
  }
  await take(screen, light);
  const nameless = `[...document.querySelectorAll('input, select, textarea')]
    .filter((field) => field.labels.length === 0 && !field.ariaLabel)
    .map((field) => field.outerHTML)`;
  expect.soft(await screen.run(nameless), `${view}: fields without a name`).toEqual([]);
  // A view must not report unreadable contents as empty.
  if (/-(disconnected|forbidden|loading)$/.test(view)) {
    const text = await screen.run('document.body.textContent');
    expect.soft(text, view).not.toContain('No objects');
  }
}

const userOf = ({ user = adminToken }: View): string => user;

/** Views of one test, which must end within its time limit on a busy machine. */
const viewsPerTour = 8;

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
  if (shows instanceof RegExp) await screen.expectText(shows);
  else await screen.until(`document.querySelector(${JSON.stringify(shows)})`);
}

describe.skipIf(chromium === undefined)('light, dark, and on a phone', { timeout }, () => {
  test('CLIENT-4: the sign-in form is accessible in every form', async () => {
    const screen = await openScreen(on.browser, { url: on.server.url });
    await screen.until(`document.querySelector('.sign-in input')`);
    await expectUsable(screen, 'sign-in');
    await screen.signIn('wrong');
    await screen.expectText('rejected this token');
    await expectUsable(screen, 'sign-in-refused');
    await delay('selfsubjectreviews')(screen);
    await screen.signIn(adminToken);
    await screen.expectText('Signing in…');
    await expectUsable(screen, 'sign-in-waiting');
    await screen.close();
    const offline = await openScreen(on.browser, { url: on.server.url });
    await offline.until(`document.querySelector('.sign-in input')`);
    await offline.run(`void (window.cuts = (url) => /apis?$/.test(url))`);
    await offline.signIn(adminToken);
    await offline.expectText('Try again');
    await expectUsable(offline, 'unreachable');
    await offline.close();
  });

  const tours = [...new Set(views.map(userOf))].flatMap((user) => {
    const seen = views.filter((view) => userOf(view) === user);
    const count = Math.ceil(seen.length / viewsPerTour);
    return Array.from({ length: count }, (_, index) => ({
      user,
      views: seen.slice(index * viewsPerTour, (index + 1) * viewsPerTour),
      names: `${seen[index * viewsPerTour]?.name} and following`,
    }));
  });
  test.each(tours)('CLIENT-4: for $user, $names are accessible in every form', async (tour) => {
    const { user } = tour;
    const screen = await openSignedIn(on.browser, { url: on.server.url, token: user });
    await screen.until(`document.querySelector('main h1')`);
    for (const view of tour.views) {
      await show(screen, view);
      await expectUsable(screen, view.name);
      await screen.run(`for (const dialog of document.querySelectorAll('dialog')) dialog.close()`);
    }
    await screen.close();
  });
});
