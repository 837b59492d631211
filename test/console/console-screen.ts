import type { Fetch } from '@wheelhouse/console/testing';
import { systemClock } from '@wheelhouse/machinery';
import { eventually } from '../support/harness.ts';
import { trustingFetch } from './console.ts';
import { createFakeDocument, type FakeElement } from './fake-dom.ts';

/** What the console's own `startConsole` is given and gives; its types are a browser's. */
interface Host {
  readonly root: FakeElement;
  readonly [port: string]: unknown;
}
type StartConsole = (host: Host) => {
  hasUnsaved(): boolean;
  key(key: string): boolean;
  close(): void;
};

/** The console in a document of ours, on a server that runs. */
export interface Screen {
  readonly root: FakeElement;
  readonly body: FakeElement;
  readonly copied: readonly string[];
  /** Questions that were asked before leaving unsaved text; they are answered by `answer`. */
  readonly questions: readonly string[];
  answer: boolean;
  title(): string;
  hash(): string;
  /** Goes to an address, as by its link. */
  go(hash: string): void;
  key(key: string): boolean;
  /** The element of a tag whose text, or label, is this. */
  find(tag: string, text: string | RegExp): FakeElement | undefined;
  /** Waits until it is there, clicks it. */
  click(text: string | RegExp): Promise<void>;
  /** The input, selection or text area of a label. */
  field(label: string): FakeElement;
  /** Waits until the page's text has this. */
  sees(text: string | RegExp): Promise<void>;
  until(holds: () => unknown, what: string): Promise<void>;
  signIn(token: string): Promise<void>;
  close(): void;
}

/** Starts the console in a fake document. One at a time: the document is the process's. */
export async function openScreen(options: {
  readonly url: string;
  readonly fetch?: Fetch;
  readonly hash?: string;
}): Promise<Screen> {
  const document = createFakeDocument();
  Object.assign(globalThis, { document });
  const source = new URL('../../packages/console/src/browser/view/shell.ts', import.meta.url).href;
  const { startConsole } = (await import(source)) as { startConsole: StartConsole };
  const root = document.createElement('div');
  document.body.append(root);
  const place = { hash: options.hash ?? '', title: '' };
  const listeners = new Set<() => void>();
  const copied: string[] = [];
  const questions: string[] = [];
  let token: string | undefined;
  const go = (hash: string): void => {
    if (hash === place.hash) return;
    place.hash = hash;
    queueMicrotask(() => {
      for (const listener of listeners) listener();
    });
  };
  const running = startConsole({
    root,
    fetch: options.fetch ?? trustingFetch,
    base: options.url,
    tokens: {
      read: () => token,
      write: (next: string | undefined) => {
        token = next;
      },
    },
    clock: systemClock,
    random: Math.random,
    hash: () => place.hash,
    setHash: go,
    onHashChange(listener: () => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    setTitle: (text: string) => {
      place.title = text;
    },
    nextFrame: (task: () => void) => setImmediate(task),
    copy: async (text: string) => {
      copied.push(text);
    },
    confirm(question: string) {
      questions.push(question);
      return screen.answer;
    },
  });
  const screen: Screen = {
    ...lookingAt(document.body, go),
    root,
    body: document.body,
    copied,
    questions,
    answer: true,
    title: () => place.title,
    hash: () => place.hash,
    go,
    key: (key) => running.key(key),
    close: () => running.close(),
  };
  return screen;
}

function lookingAt(body: FakeElement, go: (hash: string) => void) {
  const matches = (text: string, wanted: string | RegExp): boolean =>
    typeof wanted === 'string' ? text === wanted : wanted.test(text);
  const find = (tag: string, wanted: string | RegExp): FakeElement | undefined =>
    body.all(tag).find((one) => matches(one.textContent, wanted));
  const until = async (holds: () => unknown, what: string): Promise<void> => {
    const told = () => `${what}; the page: ${body.textContent}`;
    await eventually(async () => Boolean(holds()), told);
  };
  const click = async (wanted: string | RegExp): Promise<void> => {
    const look = () => find('button', wanted) ?? find('a', wanted);
    await until(() => look()?.disabled === false, `${wanted} to click`);
    const found = look();
    if (found?.tag === 'a') go(found.attributes.get('href') ?? '');
    else found?.click();
  };
  const field = (label: string): FakeElement => {
    const around = body.all('label').find((one) => one.all('span')[0]?.textContent === label);
    const tags = ['input', 'select', 'textarea'];
    const found = tags.flatMap((tag) => around?.all(tag) ?? [])[0];
    if (found === undefined) throw new Error(`no field ${label}; the page: ${body.textContent}`);
    return found;
  };
  const sees = (wanted: string | RegExp): Promise<void> =>
    until(
      () =>
        typeof wanted === 'string'
          ? body.textContent.includes(wanted)
          : wanted.test(body.textContent),
      `${wanted} to be seen`,
    );
  return {
    find,
    until,
    click,
    field,
    sees,
    async signIn(token: string) {
      await until(() => find('button', 'Sign in'), 'the sign-in');
      field('Token').value = token;
      find('button', 'Sign in')?.click();
    },
  };
}
