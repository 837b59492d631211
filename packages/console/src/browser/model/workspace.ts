import type { Clock, Timer } from '@wheelhouse/machinery/browser';
import type { Subject } from './access.ts';
import type { Api } from './api.ts';
import { messageOf } from './failure.ts';
import { type Discovered, type Discovery, openDiscovery } from './kinds.ts';
import { Permissions } from './permissions.ts';
import { hashOf, type Route, routeOf } from './route.ts';
import { createSchemaSource, type SchemaSource } from './schema.ts';
import { openTable, type TableStore } from './table-store.ts';

/** The resource whose changes add or remove kinds; users who cannot watch it see them later. */
const definitionsResource = 'customresourcedefinitions';
/** Delay before rediscovery, since a definition changes several times before its kind is served. */
const refreshAfterMs = 200;

/** The features of the browser window that the workspace uses. */
interface WorkspacePorts {
  readonly api: Api;
  readonly clock: Clock;
  readonly random: () => number;
  hash(): string;
  setHash(hash: string): void;
  /** Returns a function that ends the subscription. */
  onHashChange(listener: () => void): () => void;
  /** Asks the user whether to discard unsaved text. */
  confirm(question: string): boolean;
}

/**
 * The state shared by the pages of a signed-in user: the served kinds, the open page, and whether
 * it has unsaved text. Notifies its listeners of each change.
 */
export class Workspace {
  readonly subject: Subject;
  readonly ports: WorkspacePorts;
  readonly schemas: SchemaSource;
  readonly permissions: Permissions;
  /** Why discovery failed; undefined while it runs and after it succeeds. */
  failure: string | undefined;
  /** Whether the open page has unsaved text. */
  hasUnsaved: () => boolean = () => false;
  #hash: string;
  #discovery: Discovery | undefined;
  #namespaces: TableStore | undefined;
  #definitions: TableStore | undefined;
  #refreshTimer: Timer | undefined;
  #isClosed = false;
  readonly #listeners = new Set<() => void>();
  readonly #resumeListeners = new Set<() => void>();
  readonly #unsubscribe: () => void;

  constructor(subject: Subject, ports: WorkspacePorts) {
    this.subject = subject;
    this.ports = ports;
    this.schemas = createSchemaSource(ports.api);
    this.permissions = new Permissions(ports);
    this.#hash = ports.hash();
    this.#unsubscribe = ports.onHashChange(() => this.#onHashChange());
    void this.open();
  }

  /** Undefined until discovery succeeds. */
  get discovered(): Discovered | undefined {
    return this.#discovery?.current();
  }

  get hash(): string {
    return this.#hash;
  }

  /** The namespaces that the user may list. */
  get namespaces(): readonly string[] {
    return this.#namespaces?.snapshot.rows.map(({ name }) => name) ?? [];
  }

  /** Whether the open page has no unsaved text, or the user agrees to discard it. */
  mayLeave(): boolean {
    return !this.hasUnsaved() || this.ports.confirm('Leave without saving your changes?');
  }

  go(route: Route): void {
    this.ports.setHash(hashOf(route));
  }

  get route(): Route {
    return routeOf(this.#hash);
  }

  /** Returns a function that ends the subscription. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Calls `listener` when the user signs in again. Returns a function that ends the subscription.
   */
  onResume(listener: () => void): () => void {
    this.#resumeListeners.add(listener);
    return () => this.#resumeListeners.delete(listener);
  }

  /** Runs discovery and keeps its result current. Never rejects. */
  async open(): Promise<void> {
    const { api, clock } = this.ports;
    this.failure = undefined;
    this.#notify();
    try {
      const discovery = await openDiscovery({ api, clock, onChange: () => this.#notify() });
      // The user may have signed in again before this discovery completed.
      if (this.#isClosed || this.#discovery !== undefined) return discovery.close();
      this.#discovery = discovery;
      const { dialect } = discovery.current();
      const namespaces = { group: '', resource: 'namespaces' };
      this.#namespaces = this.#follow(namespaces, () => void this.#loadNamespaces());
      const definitions = { group: dialect.group('apiextensions'), resource: definitionsResource };
      this.#definitions = this.#follow(definitions, () => this.#refreshKinds(discovery));
    } catch (error) {
      this.failure = messageOf(error);
    }
    this.#notify();
  }

  /** Restarts watches after the user signs in again. */
  resume(): void {
    this.permissions.clear();
    this.#namespaces?.restart();
    this.#definitions?.restart();
    if (this.#discovery === undefined) void this.open();
    for (const listener of this.#resumeListeners) listener();
  }

  close(): void {
    this.#isClosed = true;
    this.#unsubscribe();
    this.#discovery?.close();
    this.#namespaces?.close();
    this.#definitions?.close();
    this.#refreshTimer?.stop();
  }

  /** Lists and watches the objects of a resource; undefined if it is not served. */
  #follow(
    resource: { readonly group: string; readonly resource: string },
    onChange: () => void,
  ): TableStore | undefined {
    const { api, clock, random } = this.ports;
    const kind = this.discovered?.kinds.find(
      (candidate) => candidate.group === resource.group && candidate.resource === resource.resource,
    );
    if (kind === undefined) return undefined;
    const selectors = { labelSelector: '', fieldSelector: '' };
    const query = { kind, namespace: undefined, ...selectors, pageSize: 500 };
    return openTable({ api, clock, random, query, onChange });
  }

  /** Reads the remaining pages of namespaces until there are none, or one cannot be read. */
  async #loadNamespaces(): Promise<void> {
    for (let before = -1; this.namespaces.length > before; ) {
      before = this.namespaces.length;
      await this.#namespaces?.loadMore();
    }
  }

  #refreshKinds(discovery: Discovery): void {
    this.#refreshTimer?.stop();
    this.#refreshTimer = this.ports.clock.after(refreshAfterMs, () => {
      // A failure is retried with the next refresh.
      discovery.refresh().catch(() => {});
    });
  }

  #onHashChange(): void {
    const hash = this.ports.hash();
    if (this.#isClosed || hash === this.#hash) return;
    if (!this.mayLeave()) {
      this.ports.setHash(this.#hash);
      return;
    }
    this.#hash = hash;
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
