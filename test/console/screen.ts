import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import puppeteer, { type Browser, type KeyInput, type Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { adminToken, type TestServer } from '../support/harness.ts';
import { type BuiltConsole, buildConsole } from './console.ts';

/** The installed browser, if any. Chromium without its windows takes the least time. */
export const chromium = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']
  .map((name) => spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim())
  .find((path) => path !== '');

/** Time limit for a condition, long enough for a browser on a busy machine. */
const limitMs = 30_000;

/** With CONSOLE_SCREENSHOTS=1, tests save screenshots for people; no test reads them. */
const keepsScreenshots = process.env['CONSOLE_SCREENSHOTS'] === '1';

/** The directory of screenshots, which is not part of the repository. */
const screenshotDirectory = fileURLToPath(new URL('../../coverage/console', import.meta.url));

/**
 * Starts a headless browser that trusts the certificates of test servers, with an open page of one
 * of them: the pages of one server share a process, which this page keeps running.
 */
async function startBrowser(url: string): Promise<Browser> {
  // Chromium starts a process for each page, and spare ones for pages to come.
  const oneProcess = [
    '--renderer-process-limit=1',
    '--disable-features=SpareRendererForSitePerProcess',
  ];
  const quiet = ['--no-first-run', '--disable-extensions', '--disable-background-networking'];
  const foreground = [
    '--disable-renderer-backgrounding',
    '--disable-backgrounding-occluded-windows',
  ];
  const browser = await puppeteer.launch({
    executablePath: chromium ?? '',
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      ...[...quiet, ...foreground, ...oneProcess],
    ],
    pipe: true,
    acceptInsecureCerts: true,
    defaultViewport: { width: 1280, height: 800 },
    protocolTimeout: 120_000,
    timeout: 120_000,
  });
  const page = await browser.newPage();
  // The console would send anonymous requests, after each of which the server closes the shared
  // connection; Chromium fails the load of a page that it starts on the connection at that moment.
  await page.setJavaScriptEnabled(false);
  await page.goto(`${url}/console/`);
  return browser;
}

/** The console in its own page. */
export interface Screen {
  readonly page: Page;
  /** Errors, blocked loads, and policy violations of the page. */
  readonly errors: readonly string[];
  /** Texts of the confirmations that the page has shown. */
  readonly confirmations: readonly string[];
  /** Whether confirmations are accepted; true by default. */
  acceptsConfirmations: boolean;
  /** Evaluates an expression, which may be a promise, in the page. Rejects if it throws. */
  run<T = unknown>(expression: string): Promise<T>;
  /** Waits until an expression is true in the page. */
  until(expression: string, what?: string): Promise<void>;
  /** Waits until the page contains a text. */
  expectText(text: string | RegExp): Promise<void>;
  /** Waits for a button or link with a text, and clicks it. */
  click(text: string | RegExp, within?: string): Promise<void>;
  /** Sets the value of a labeled input, as if typed. */
  fill(label: string, value: string): Promise<void>;
  /** Toggles a labeled checkbox. */
  tick(label: string): Promise<void>;
  valueOf(label: string): Promise<string>;
  /** The texts of the elements that match a selector. */
  texts(selector: string): Promise<string[]>;
  go(hash: string): Promise<void>;
  hash(): Promise<string>;
  press(key: KeyInput): Promise<void>;
  copied(): Promise<string[]>;
  readonly editor: ScreenEditor;
  signIn(token: string): Promise<void>;
  /** Takes a screenshot of the whole window, if screenshots are kept. */
  screenshot(name: string): Promise<void>;
  close(): Promise<void>;
}

/** The editor of the open page. */
export interface ScreenEditor {
  opened(): Promise<void>;
  text(): Promise<string>;
  setText(text: string): Promise<void>;
  replace(before: string, after: string): Promise<void>;
  selected(): Promise<string>;
  /** Focuses the editor and puts the cursor after a text. */
  setCursorAfter(before: string): Promise<void>;
}

/**
 * Records copied texts, and lets a test expire the sign-in (`window.expired`), delay responses
 * (`window.holds`), and interrupt the network (`window.cuts`).
 */
const hooks = `
  window.copiedTexts = [];
  Object.defineProperty(navigator, 'clipboard', {
    value: { writeText: async (text) => void window.copiedTexts.push(text) },
  });
  const send = window.fetch;
  window.fetch = async (url, request) => {
    const headers = window.expired ? { ...request.headers, authorization: 'Bearer old' } : request.headers;
    const { pathname, searchParams } = new URL(url);
    // The editor also checks texts with dry runs, whose number depends on the speed.
    const isDryRun = searchParams.has('dryRun');
    if (!isDryRun) window.requests = [...(window.requests ?? []), request.method + ' ' + pathname];
    if (window.cuts?.(pathname)) throw new TypeError('Failed to fetch');
    const response = await send(url, { ...request, headers });
    if (window.holds?.(request, url)) await new Promise((resolve) => { window.release = resolve; });
    return response;
  };
`;

/** Opens the console in a page without signing in. */
export async function openScreen(
  browser: Browser,
  options: { readonly url: string; readonly hash?: string },
): Promise<Screen> {
  const page = await browser.newPage();
  const errors: string[] = [];
  const confirmations: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warn') errors.push(message.text());
  });
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('dialog', (dialog) => {
    confirmations.push(dialog.message());
    void (screen.acceptsConfirmations ? dialog.accept() : dialog.dismiss()).catch(() => {});
  });
  await page.evaluateOnNewDocument(hooks);
  const screen: Screen = {
    page,
    errors,
    confirmations,
    acceptsConfirmations: true,
    ...actionsOn(page),
  };
  await page.goto(`${options.url}/console/${options.hash ?? ''}`);
  return screen;
}

/** Opens the console signed in, by default with the token of the administrator. */
export async function openSignedIn(
  browser: Browser,
  options: { readonly url: string; readonly hash?: string; readonly token?: string },
): Promise<Screen> {
  const { token = adminToken, ...rest } = options;
  const screen = await openScreen(browser, rest);
  await screen.signIn(token);
  return screen;
}

const quoted = (text: string): string => JSON.stringify(text);
/** An expression that is true for an element with a text. */
const matching = (expected: string | RegExp): string =>
  typeof expected === 'string'
    ? `(text) => text === ${quoted(expected)}`
    : `(text) => ${expected}.test(text)`;

const inputOf = (label: string): string => `(() => {
  const fields = [...document.querySelectorAll('input, select, textarea')];
  return fields.find((field) => field.ariaLabel === ${quoted(label)} ||
    [...(field.labels ?? [])].some((label) =>
      label.querySelector('span')?.textContent === ${quoted(label)}));
})()`;

function actionsOn(page: Page) {
  const run = async <T = unknown>(expression: string): Promise<T> =>
    (await page.evaluate(expression)) as T;
  const until = async (expression: string, what = expression): Promise<void> => {
    const end = performance.now() + limitMs;
    // The page itself waits most of the time, because each call through the browser is expensive.
    const soon = `((condition) => new Promise((resolve) => {
      const end = performance.now() + 300;
      const check = () => {
        let holds = false;
        try { holds = condition(); } catch {}
        if (holds || performance.now() > end) resolve(holds);
        else setTimeout(check, 15);
      };
      check();
    }))(() => Boolean(${expression}))`;
    while ((await run(soon).catch(() => false)) !== true) {
      if (performance.now() > end) {
        const text = await run('document.body.textContent').catch(String);
        throw new Error(`${what} did not happen within ${limitMs} ms; the page: ${text}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
  };
  const expectText = (expected: string | RegExp): Promise<void> => {
    const text = 'document.body.textContent';
    const holds =
      typeof expected === 'string'
        ? `${text}.includes(${quoted(expected)})`
        : `${expected}.test(${text})`;
    return until(holds, `the text ${expected}`);
  };
  const click = async (expected: string | RegExp, within = ''): Promise<void> => {
    const find = `[...document.querySelectorAll('${within} button, ${within} a')].find((control) =>
      !control.disabled && control.getClientRects().length > 0 &&
      (${matching(expected)})(control.textContent.trim()))`;
    // Found and clicked in one step, since the page may rerender in between.
    await until(`((found) => found && (found.click(), true))(${find})`, `${expected} to click`);
  };
  const fill = async (label: string, value: string): Promise<void> => {
    const act = `((field) => {
      if (field === undefined) return false;
      const { set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value');
      field.focus();
      set.call(field, ${quoted(value)});
      field.dispatchEvent(new Event('input', { bubbles: true }));
      field.dispatchEvent(new Event('change', { bubbles: true }));
      return true;
    })`;
    await until(`${act}(${inputOf(label)})`, `the field ${label}`);
  };
  return {
    run,
    until,
    expectText,
    click,
    fill,
    editor: editorOn(run, until),
    tick: async (label: string) => {
      const act = '((box) => box !== undefined && (box.click(), true))';
      await until(`${act}(${inputOf(label)})`, `the box ${label}`);
    },
    valueOf: (label: string) => run(`${inputOf(label)}.value`) as Promise<string>,
    texts: (selector: string) =>
      run(
        `[...document.querySelectorAll(${quoted(selector)})].map((element) => element.textContent)`,
      ) as Promise<string[]>,
    go: (hash: string) =>
      // Waits until the previous page is gone, so that its buttons are not found.
      run(`(async () => {
        location.hash = ${quoted(hash)};
        await new Promise((resolve) => setTimeout(resolve));
        for (const _ of [1, 2, 3]) await new Promise(requestAnimationFrame);
        await new Promise((resolve) => setTimeout(resolve));
      })()`) as Promise<void>,
    hash: () => run('location.hash') as Promise<string>,
    press: (key: KeyInput) => page.keyboard.press(key),
    copied: () => run('window.copiedTexts') as Promise<string[]>,
    signIn: async (token: string) => {
      await until(`document.querySelector('.sign-in input')`, 'the sign-in');
      await fill('Token', token);
      await click('Sign in');
    },
    screenshot: async (name: string) => {
      if (!keepsScreenshots) return;
      mkdirSync(screenshotDirectory, { recursive: true });
      await page.screenshot({
        path: join(screenshotDirectory, `${name}.png`),
        optimizeForSpeed: true,
      });
    },
    close: () => page.close(),
  };
}

function editorOn(
  run: <T = unknown>(expression: string) => Promise<T>,
  until: (expression: string, what?: string) => Promise<void>,
): ScreenEditor {
  const view = `((dom) => (dom.cmTile ?? dom.cmView).view)(document.querySelector('.cm-content'))`;
  const change = (from: string, to: string, insert: string) =>
    run(`(() => { const view = ${view};
      view.dispatch({ changes: { from: ${from}, to: ${to}, insert: ${quoted(insert)} }, userEvent: 'input' });
    })()`);
  const opened = () => until(`document.querySelector('.cm-content') && ${view}`, 'the editor');
  const text = async (): Promise<string> => {
    await opened();
    return (await run(`${view}.state.doc.toString()`)) as string;
  };
  return {
    opened,
    text,
    setText: async (next) => {
      await opened();
      await change('0', 'view.state.doc.length', next);
    },
    replace: async (before, after) => {
      const at = (await text()).indexOf(before);
      if (at < 0) throw new Error(`${before} is not in the text`);
      await change(String(at), String(at + before.length), after);
    },
    selected: () =>
      run(
        `(({ state }) => state.sliceDoc(state.selection.main.from, state.selection.main.to))(${view})`,
      ),
    setCursorAfter: async (before) => {
      const at = (await text()).indexOf(before) + before.length;
      await run(`(() => { const view = ${view}; view.focus();
        view.dispatch({ selection: { anchor: ${at} }, scrollIntoView: true }); })()`);
    },
  };
}

/**
 * Returns the accessibility violations that axe-core finds in the page.
 * @param options.only The rules to check; WCAG 2.2 AA by default
 * @param options.except Rules to omit
 * @param options.without A selector of parts of the page to leave out
 */
export async function accessibilityFaults(
  screen: Screen,
  options: {
    readonly only?: readonly string[];
    readonly except?: readonly string[];
    readonly without?: string;
  } = {},
): Promise<string[]> {
  if (await screen.run('window.axe === undefined')) await screen.run(axeSource());
  const { only = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'], except = [] } = options;
  const check = {
    runOnly: only,
    rules: Object.fromEntries(except.map((rule) => [rule, { enabled: false }])),
    resultTypes: ['violations'],
    // The page has neither frames nor style sheets of other origins.
    iframes: false,
    preload: false,
  };
  const context = `{ include: document, exclude: ${JSON.stringify(options.without ?? [])} }`;
  const found = `axe.run(${context}, ${JSON.stringify(check)}).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
      id + ': ' + html.slice(0, 200) + ' ' + failureSummary)))`;
  return screen.run(found) as Promise<string[]>;
}

const axeSource = (): string =>
  readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A server with the built console, and a browser, for the tests of a file. */
export interface ConsoleTests {
  readonly server: TestServer;
  readonly browser: Browser;
  /** Opens a signed-in screen that is closed after the test. */
  open(options?: { readonly hash?: string; readonly token?: string }): Promise<Screen>;
  /** Like `open`, but shows the sign-in form. */
  openSignedOut(): Promise<Screen>;
}

/**
 * Builds the console, and starts a server of it and a browser for the tests of a file. Without a
 * Chromium nothing starts. The members are defined while tests run.
 * @param start starts a server that serves the console in a directory
 */
export function consoleInBrowser(
  start: (console: { readonly directory: string }) => Promise<TestServer>,
): ConsoleTests {
  let built: BuiltConsole;
  let server: TestServer;
  let browser: Browser;
  const screens: Screen[] = [];
  const kept = (screen: Screen): Screen => {
    screens.push(screen);
    return screen;
  };
  beforeAll(async () => {
    if (chromium === undefined) return;
    built = await buildConsole();
    server = await start({ directory: built.directory });
    browser = await startBrowser(server.url);
  }, 120_000);
  afterEach(async () => {
    for (const screen of screens.splice(0)) await screen.close();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    built?.remove();
  });
  return {
    get server() {
      return server;
    },
    get browser() {
      return browser;
    },
    open: async (options) => kept(await openSignedIn(browser, { url: server.url, ...options })),
    openSignedOut: async () => kept(await openScreen(browser, { url: server.url })),
  };
}
