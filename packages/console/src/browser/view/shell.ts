import type { Clock, Timer } from '@wheelhouse/machinery/browser';
import type { Subject } from '../model/access.ts';
import { type Discovery, openDiscovery } from '../model/discovery.ts';
import { messageOf } from '../model/failure.ts';
import type { Fetch, TokenStore } from '../model/ports.ts';
import { hashOf, type Route, routeOf } from '../model/route.ts';
import { createSchemaSource } from '../model/schema.ts';
import { createSession, type Session, type SessionState } from '../model/session.ts';
import { openTable, type TableStore } from '../model/table-store.ts';
import type { Page, PageContext } from './context.ts';
import { button, element, fill } from './element.ts';
import { createNavigation } from './navigation.ts';
import { openPage } from './pages.ts';
import { signInPage } from './sign-in-page.ts';

/** What brings kinds and takes them; who may not watch it hears of them a little later. */
const definitionsName = 'customresourcedefinitions';
/** A definition changes several times before its kind is served. */
const refreshAfterMs = 200;

/** What the console needs of the window it is in. */
export interface Host {
  /** Everything is shown in it. */
  readonly root: HTMLElement;
  readonly fetch: Fetch;
  /** What the API's paths are put behind. */
  readonly base: string;
  readonly tokens: TokenStore;
  readonly clock: Clock;
  readonly random: () => number;
  hash(): string;
  setHash(hash: string): void;
  /** Gives what ends it. */
  onHashChange(listener: () => void): () => void;
  setTitle(title: string): void;
  nextFrame(task: () => void): void;
  copy(text: string): Promise<void>;
  /** Whether the user wants to go on; asked for before unsaved text is lost. */
  confirm(question: string): boolean;
}

/** A console that runs. */
export interface RunningConsole {
  readonly session: Session;
  /** Whether text would be lost by leaving. */
  hasUnsaved(): boolean;
  /** A key pressed outside of any field; whether it means something. */
  key(key: string): boolean;
  close(): void;
}

/** Starts the console: signs in with what there is, or asks who the user is. */
export function startConsole(host: Host): RunningConsole {
  let workspace: Workspace | undefined;
  const session = createSession({
    fetch: host.fetch,
    base: host.base,
    tokens: host.tokens,
    parseYaml: async (text) => {
      const { readYaml } = await import('../model/yaml.ts');
      const read = readYaml(text);
      return read.fault === undefined ? read.value : undefined;
    },
    onChange: (state) => show(state),
  });
  const leave = (): void => {
    workspace?.close();
    workspace = undefined;
  };
  const show = (state: SessionState): void => {
    if (state.phase === 'signed in') {
      // Whoever signs in again after an expiry finds the page as it was left.
      const { user } = state.subject;
      if (workspace === undefined || user === '' || workspace.subject.user !== user) {
        leave();
        workspace = new Workspace({ host, session, subject: state.subject });
      } else workspace.resume();
      fill(host.root, workspace.root);
      return;
    }
    if (state.phase === 'signing in') {
      fill(host.root, element('p', { class: 'sign-in', role: 'status' }, 'Signing in…'));
      return;
    }
    if (state.message === '') leave();
    host.setTitle('Sign in');
    fill(host.root, signInPage(session, state.message));
  };
  void session.resume();
  return {
    session,
    hasUnsaved: () => workspace?.page?.hasUnsaved?.() === true,
    key: (key) => workspace?.key(key) ?? false,
    close: leave,
  };
}

/** What a user who is signed in works in. */
class Workspace {
  readonly root: HTMLElement;
  readonly subject: Subject;
  page: Page | undefined;
  readonly #host: Host;
  readonly #session: Session;
  readonly #context: PageContext;
  readonly #navigation = createNavigation();
  readonly #main = element('main', { id: 'main', tabindex: '-1' });
  readonly #said = element('output', { class: 'said', role: 'status' });
  #discovery: Discovery | undefined;
  #namespaces: TableStore | undefined;
  #definitions: TableStore | undefined;
  #refreshing: Timer | undefined;
  #hash = '';
  readonly #unlisten: () => void;
  #isClosed = false;
  #waiting = new Set<() => void>();

  constructor(options: {
    readonly host: Host;
    readonly session: Session;
    readonly subject: Subject;
  }) {
    this.#host = options.host;
    this.#session = options.session;
    this.subject = options.subject;
    this.#context = this.#makeContext();
    this.root = element(
      'div',
      { class: 'workspace' },
      button('Skip to the content', () => this.#main.focus(), { class: 'skip' }),
      this.#header(),
      this.#navigation.root,
      this.#main,
      this.#said,
    );
    this.#unlisten = this.#host.onHashChange(() => this.#route());
    void this.#open();
  }

  /** Follows again what an expired sign-in had ended. */
  resume(): void {
    this.#namespaces?.restart();
    this.#definitions?.restart();
    this.page?.resume?.();
  }

  close(): void {
    this.#isClosed = true;
    this.#unlisten();
    this.page?.close();
    this.#discovery?.close();
    this.#namespaces?.close();
    this.#definitions?.close();
    this.#refreshing?.stop();
  }

  #header(): HTMLElement {
    const { user, groups } = this.subject;
    return element(
      'header',
      { class: 'top' },
      element('a', { class: 'home', href: hashOf({ page: 'home' }) }, 'Wheelhouse'),
      element('span', { class: 'user', title: groups.join(', ') }, user || 'somebody'),
      button('Sign out', () => this.#session.signOut()),
    );
  }

  #makeContext(): PageContext {
    const { clock, random } = this.#host;
    const { api } = this.#session;
    return {
      api,
      clock,
      random,
      subject: this.subject,
      schemas: createSchemaSource(api),
      discovered: () => {
        if (this.#discovery === undefined) throw new Error('the kinds have not been read yet');
        return this.#discovery.current();
      },
      namespaces: () => this.#namespaces?.snapshot.rows.map(({ name }) => name) ?? [],
      beforeNextFrame: (task) => this.#beforeNextFrame(task),
      go: (route) => this.#host.setHash(hashOf(route)),
      announce: (message) => fill(this.#said, message),
      copy: async (text) => {
        const failure = await this.#host.copy(text).then(() => undefined, messageOf);
        fill(this.#said, failure ?? `Copied: ${text.length > 200 ? 'the text' : text}`);
      },
    };
  }

  #beforeNextFrame(task: () => void): void {
    if (this.#waiting.size === 0) {
      this.#host.nextFrame(() => {
        const tasks = this.#waiting;
        this.#waiting = new Set();
        if (!this.#isClosed) for (const one of tasks) one();
      });
    }
    this.#waiting.add(task);
  }

  async #open(): Promise<void> {
    const { api, clock } = this.#context;
    fill(this.#main, element('p', { role: 'status' }, 'Asking what the server serves…'));
    try {
      const onChange = (): void => this.#kindsChanged();
      const discovery = await openDiscovery({ api, clock, onChange });
      if (this.#isClosed) return discovery.close();
      this.#discovery = discovery;
      this.#namespaces = this.#follow({ group: '', resource: 'namespaces' }, () => {});
      const { dialect } = discovery.current();
      const definitions = { group: dialect.group('apiextensions'), resource: definitionsName };
      this.#definitions = this.#follow(definitions, () => this.#refreshKinds(discovery));
      this.#route();
    } catch (error) {
      const again = button('Try again', () => this.#open());
      fill(this.#main, element('p', { class: 'fault', role: 'alert' }, messageOf(error)), again);
    }
  }

  /** The objects of a kind as they come and go, if the user may see them. */
  #follow(
    wanted: { readonly group: string; readonly resource: string },
    onChange: () => void,
  ): TableStore | undefined {
    const { api, clock, random } = this.#context;
    const kind = this.#context
      .discovered()
      .kinds.find(({ group, resource }) => group === wanted.group && resource === wanted.resource);
    if (kind === undefined) return undefined;
    const selectors = { labelSelector: '', fieldSelector: '' };
    const query = { kind, namespace: undefined, ...selectors, pageSize: 500 };
    return openTable({ api, clock, random, query, onChange });
  }

  #refreshKinds(discovery: Discovery): void {
    this.#refreshing?.stop();
    this.#refreshing = this.#host.clock.after(refreshAfterMs, () => {
      // What fails now is asked again by and by.
      discovery.refresh().catch(() => {});
    });
  }

  #kindsChanged(): void {
    this.#context.schemas.forget();
    this.#showNavigation(routeOf(this.#host.hash()));
    // A page whose kind was not there may have one now; what is being edited is left alone.
    if (this.page?.isUnserved === true) this.#route();
  }

  #showNavigation(route: Route): void {
    const { kinds } = this.#context.discovered();
    const current =
      route.page === 'table' ? route.at : 'resource' in route ? route.resource : undefined;
    const namespace =
      route.page === 'table' ? route.at.namespace : 'namespace' in route ? route.namespace : '';
    this.#navigation.show(kinds, current, namespace);
  }

  #route(): void {
    if (this.#isClosed || this.#discovery === undefined) return;
    const hash = this.#host.hash();
    if (this.page?.hasUnsaved?.() === true && hash !== this.#hash) {
      if (!this.#host.confirm('What you have written is not saved. Leave it?')) {
        this.#host.setHash(this.#hash);
        return;
      }
    } else if (this.page !== undefined && hash === this.#hash && this.page.isUnserved !== true) {
      return;
    }
    this.#hash = hash;
    void this.#show(routeOf(hash));
  }

  async #show(route: Route): Promise<void> {
    this.#showNavigation(route);
    const hash = this.#hash;
    const page = await openPage(this.#context, route);
    // Somebody who has gone on meanwhile does not want it.
    if (this.#isClosed || hash !== this.#hash) return page.close();
    this.page?.close();
    this.page = page;
    fill(this.#main, page.root);
    fill(this.#said);
    this.#host.setTitle(page.title);
    this.#main.focus();
  }

  /** A key pressed outside of any field. */
  key(key: string): boolean {
    const route = routeOf(this.#hash);
    if (key === '/') this.#navigation.focus();
    else if (key === 'g') this.#context.go({ page: 'home' });
    else if (key === 'c' && route.page === 'table') {
      this.#context.go({ page: 'create', resource: route.at, namespace: route.at.namespace });
    } else if (key === 'e' && route.page === 'object') this.#context.go({ ...route, tab: 'edit' });
    else return false;
    return true;
  }
}
