import { jsonObject } from '@wheelhouse/machinery';
import { type Clock, type JsonObject, parseExactJson } from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { ApiFailure, failureOf, isTransient, messageOf, objectOf, textOf } from './failure.ts';
import { collectionPath, type Kind } from './kinds.ts';
import { columnsOf, rowsOf, type TableColumn, type TableRow, tableType } from './table.ts';

/**
 * The rows of a list that is read in pages while a watch reports its changes. All pages have the
 * same resourceVersion. A change beyond the last page read so far is kept until its page is read:
 *
 *     page 1: a, b (more pages)          rows a b        pending: -
 *     ADDED c, DELETED d, MODIFIED a     rows a' b       pending: c, no d
 *     page 2: d, e (the last)            rows a' b c e   pending: -
 */
export class TableRows {
  readonly #rows = new Map<string, TableRow>();
  /**
   * The latest changes of objects beyond the last page; without a row, the object is deleted. Later
   * pages do not contain objects that are new.
   */
  readonly #pendingChanges = new Map<
    string,
    { readonly row?: TableRow; readonly isNew: boolean }
  >();
  /** The last key of the pages read so far; undefined at the end of the list. */
  #end: string | undefined = '';
  #sorted: readonly TableRow[] | undefined;

  /** The rows in the server's order, by namespace and name. */
  get sorted(): readonly TableRow[] {
    this.#sorted ??= [...this.#rows.values()].sort(byKey);
    return this.#sorted;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** Adds the next page of the list. */
  addPage(page: readonly TableRow[], place: 'last' | 'more to come'): void {
    this.#sorted = undefined;
    this.#end = place === 'last' ? undefined : (page.at(-1)?.key ?? this.#end);
    for (const row of page) this.#rows.set(row.key, row);
    for (const [key, { row }] of this.#pendingChanges) {
      if (!this.#isRead(key)) continue;
      this.#pendingChanges.delete(key);
      if (row === undefined) this.#rows.delete(key);
      else this.#rows.set(key, row);
    }
  }

  /** Applies a change, later if the object is on a page that has not been read. */
  change(type: RowChange, row: TableRow): void {
    const { key } = row;
    if (!this.#isRead(key)) {
      const isNew = this.#pendingChanges.get(key)?.isNew ?? type === 'ADDED';
      if (type !== 'DELETED') this.#pendingChanges.set(key, { row, isNew });
      else if (isNew) this.#pendingChanges.delete(key);
      else this.#pendingChanges.set(key, { isNew });
      return;
    }
    if (type === 'DELETED') this.#rows.delete(key);
    else this.#rows.set(key, row);
    this.#sorted = undefined;
  }

  #isRead(key: string): boolean {
    return this.#end === undefined || key <= this.#end;
  }
}

function byKey(left: TableRow, right: TableRow): number {
  return left.key < right.key ? -1 : 1;
}

/** The objects that a table shows. */
export interface TableQuery {
  readonly kind: Kind;
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
  readonly labelSelector: string;
  readonly fieldSelector: string;
  /** Page size. */
  readonly pageSize: number;
  /** Whether rows contain whole objects instead of their metadata. */
  readonly objects?: 'whole';
}

/** A change from the watch. */
export type RowChange = 'ADDED' | 'MODIFIED' | 'DELETED';

/**
 * The synchronization state of a table:
 *
 *     listing   reading the list for the first time, or again
 *     live      the watch is connected
 *     waiting   the connection failed and is retried later
 *     static    listed but not watched, because the kind or the user cannot watch
 *     refused   the server refused the list; `message` is the reason
 */
export interface TableState {
  readonly phase: 'listing' | 'live' | 'waiting' | 'static' | 'refused';
  readonly message?: string;
  readonly retryInMs?: number;
}

/** The current contents of a table. */
export interface TableSnapshot {
  readonly state: TableState;
  readonly columns: readonly TableColumn[];
  readonly rows: readonly TableRow[];
  /** Whether there are more pages; `remaining` is the number of objects in them, if known. */
  readonly more: { readonly remaining: number | undefined } | undefined;
  readonly resourceVersion: string;
  readonly warnings: readonly string[];
}

/** A list that follows its changes until it is closed. */
export interface TableStore {
  readonly snapshot: TableSnapshot;
  /** Reads the next page, if any. Never rejects. */
  loadMore(): Promise<void>;
  /** Reads the list again, for example after `refused`. */
  restart(): void;
  close(): void;
}

const firstDelayMs = 500;
const longestDelayMs = 30_000;
/** A watch that lasted this long is restarted without delay. */
const stableMs = 5_000;
/** A watch that is silent this long is restarted: servers send a bookmark about every minute. */
const silentMsMax = 180_000;

/**
 * Lists a kind's objects as a table and watches them from that version. Bookmarks advance the
 * version. Restarts an ended watch from the last version, with growing delays after failures, and
 * lists again if the version has expired. Calls `onChange` after each change of the snapshot.
 */
export function openTable(options: {
  readonly api: Api;
  readonly clock: Clock;
  readonly query: TableQuery;
  /** Random number between 0 and 1 that spreads the retries of many clients. */
  readonly random: () => number;
  readonly onChange: () => void;
  /** Called before `onChange` for each change from the watch. */
  readonly onRow?: (change: RowChange, row: TableRow) => void;
}): TableStore {
  return new WatchedTable(options);
}

class WatchedTable implements TableStore {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #query: TableQuery;
  readonly #random: () => number;
  readonly #onChange: () => void;
  readonly #onRow: (change: RowChange, row: TableRow) => void;
  #abort = new AbortController();
  #rows = new TableRows();
  #columns: readonly TableColumn[] = [];
  #state: TableState = { phase: 'listing' };
  #version = '';
  #continue = '';
  #remaining: number | undefined;
  #warnings: readonly string[] = [];
  #failures = 0;
  #loading: Promise<void> | undefined;

  constructor(options: Parameters<typeof openTable>[0]) {
    this.#api = options.api;
    this.#clock = options.clock;
    this.#query = options.query;
    this.#random = options.random;
    this.#onChange = options.onChange;
    this.#onRow = options.onRow ?? (() => {});
    void this.#follow(this.#abort.signal);
  }

  get snapshot(): TableSnapshot {
    return {
      state: this.#state,
      columns: this.#columns,
      rows: this.#rows.sorted,
      more: this.#continue === '' ? undefined : { remaining: this.#remaining },
      resourceVersion: this.#version,
      warnings: this.#warnings,
    };
  }

  loadMore(): Promise<void> {
    if (this.#continue === '') return Promise.resolve();
    const { signal } = this.#abort;
    this.#loading ??= this.#nextPage(signal).finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  restart(): void {
    this.close();
    this.#abort = new AbortController();
    this.#version = '';
    this.#failures = 0;
    this.#set({ phase: 'listing' });
    void this.#follow(this.#abort.signal);
  }

  close(): void {
    this.#abort.abort(new Error('closed'));
  }

  /** Lists and watches until closed or refused. Never rejects. */
  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#version === '') await this.#list(signal);
        if (!this.#query.kind.verbs.includes('watch')) return this.#set({ phase: 'static' });
        await this.#watch(signal);
      } catch (error) {
        if (signal.aborted || this.#isFinal(error)) return;
        const mustRelist = isStaleVersion(error);
        if (mustRelist) this.#version = '';
        // The first retry is immediate; further ones back off.
        if (mustRelist && this.#failures === 0) this.#relist();
        else await this.#pause(error, signal);
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    // Reads as many rows as before, so that listing again does not lose pages.
    const limit = Math.max(this.#query.pageSize, this.#rows.size);
    const { table, warnings } = await this.#page({ limit, signal });
    this.#rows = new TableRows();
    this.#warnings = warnings;
    this.#columns = columnsOf(table) ?? [];
    this.#version = textOf(objectOf(table, 'metadata'), 'resourceVersion');
    this.#addPage(table);
    this.#onChange();
  }

  async #page(of: { limit: number; signal: AbortSignal; token?: string }) {
    const { kind, namespace, labelSelector, fieldSelector } = this.#query;
    const { text, warnings } = await this.#api.send({
      path: collectionPath(kind, namespace),
      query: {
        labelSelector,
        fieldSelector,
        limit: of.limit,
        continue: of.token,
        includeObject: this.#includeObject,
      },
      accept: tableType,
      signal: of.signal,
    });
    return { table: jsonObject(parseExactJson(text)), warnings };
  }

  get #includeObject(): string | undefined {
    return this.#query.objects === 'whole' ? 'Object' : undefined;
  }

  #addPage(table: JsonObject): void {
    const metadata = objectOf(table, 'metadata');
    const { remainingItemCount: remaining } = metadata;
    this.#continue = textOf(metadata, 'continue');
    this.#remaining = typeof remaining === 'number' ? remaining : undefined;
    this.#rows.addPage(rowsOf(table), this.#continue === '' ? 'last' : 'more to come');
  }

  async #nextPage(signal: AbortSignal): Promise<void> {
    const { pageSize } = this.#query;
    const rows = this.#rows;
    // Meanwhile the list may have been read again; then this page belongs to the previous one.
    const isOutdated = (): boolean => signal.aborted || rows !== this.#rows;
    try {
      const { table } = await this.#page({ limit: pageSize, signal, token: this.#continue });
      if (isOutdated()) return;
      this.#addPage(table);
      this.#onChange();
    } catch (error) {
      if (isOutdated()) return;
      // The continue token has expired, so all pages are read again.
      if (isStaleVersion(error)) this.restart();
      else this.#set({ ...this.#state, message: messageOf(error) });
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { kind, namespace, labelSelector, fieldSelector } = this.#query;
    const silence = new AbortController();
    const end = (): void => silence.abort(new Error('the server has sent nothing for 3 minutes'));
    let timer = this.#clock.after(silentMsMax, end);
    const startMs = this.#clock.monotonic();
    try {
      const values = await this.#api.stream({
        path: collectionPath(kind, namespace),
        query: {
          labelSelector,
          fieldSelector,
          watch: 1,
          allowWatchBookmarks: 'true',
          resourceVersion: this.#version,
          includeObject: this.#includeObject,
        },
        accept: tableType,
        signal: AbortSignal.any([signal, silence.signal]),
      });
      this.#set({ phase: 'live' });
      for await (const event of values) {
        timer.stop();
        timer = this.#clock.after(silentMsMax, end);
        this.#failures = 0;
        this.#handleEvent(event);
      }
    } finally {
      timer.stop();
    }
    if (signal.aborted || this.#clock.monotonic() - startMs >= stableMs) return;
    throw new Error('the server ended the watch');
  }

  #handleEvent(event: JsonObject): void {
    const table = objectOf(event, 'object');
    const type = textOf(event, 'type');
    if (type === 'ERROR') throw failureOf(table, { code: 500 });
    this.#version = textOf(objectOf(table, 'metadata'), 'resourceVersion') || this.#version;
    if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED') return;
    const columns = columnsOf(table);
    if (columns !== undefined) this.#columns = columns;
    for (const row of rowsOf(table)) {
      this.#version = row.resourceVersion || this.#version;
      this.#rows.change(type, row);
      this.#onRow(type, row);
    }
    this.#onChange();
  }

  /** Whether retrying is pointless; sets the state accordingly. */
  #isFinal(error: unknown): boolean {
    if (!(error instanceof ApiFailure) || isTransient(error) || error.code === 410) return false;
    const { code, message } = error;
    // The list may be shown even if it cannot be watched.
    const listed = this.#version !== '' && (code === 403 || code === 405);
    this.#set({ phase: listed ? 'static' : 'refused', message });
    return true;
  }

  #relist(): void {
    this.#failures += 1;
    this.#set({ phase: 'listing' });
  }

  #pause(error: unknown, signal: AbortSignal): Promise<void> {
    const retryAfterMs = error instanceof ApiFailure ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
    const backoffMs = Math.min(longestDelayMs, firstDelayMs * 2 ** this.#failures);
    const retryInMs = Math.max(retryAfterMs, backoffMs * (0.5 + this.#random() / 2));
    this.#failures += 1;
    this.#set({ phase: 'waiting', message: messageOf(error), retryInMs });
    return pause(this.#clock, retryInMs, signal);
  }

  #set(state: TableState): void {
    this.#state = state;
    this.#onChange();
  }
}

/** Resolves after a delay, or when the signal aborts. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      timer.stop();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.after(delayMs, end);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}

/**
 * Whether the version or continue token has expired, or is newer than any version of the server,
 * which happens after the server loses its data.
 */
export function isStaleVersion(error: unknown): boolean {
  if (!(error instanceof ApiFailure)) return false;
  const { code, reason, causes } = error;
  if (code === 410 || reason === 'Expired' || reason === 'Gone') return true;
  return causes.some((cause) => cause.reason === 'ResourceVersionTooLarge');
}

/** Like `TableQuery`, for several namespaces; empty for all. */
export interface TablesQuery extends Omit<TableQuery, 'namespace'> {
  readonly namespaces: readonly string[];
}

/** States from worst to best; the merged table shows the worst. */
const phases: readonly TableState['phase'][] = ['refused', 'waiting', 'listing', 'static', 'live'];

/**
 * Lists and follows a kind's objects in several namespaces as one table, with one request per
 * namespace, since the API has no request for several.
 */
export function openTables(options: {
  readonly api: Api;
  readonly clock: Clock;
  readonly query: TablesQuery;
  readonly random: () => number;
  readonly onChange: () => void;
  readonly onRow?: (change: RowChange, row: TableRow) => void;
  /** Maximum number of watches; the lists of further namespaces are static. */
  readonly watchesMax?: number;
}): TableStore {
  const { query, watchesMax = Number.POSITIVE_INFINITY, ...rest } = options;
  const { namespaces, kind, ...shared } = query;
  const unwatched = { ...kind, verbs: kind.verbs.filter((verb) => verb !== 'watch') };
  const open = (namespace: string | undefined, index = 0) =>
    openTable({
      ...rest,
      query: { ...shared, kind: index < watchesMax ? kind : unwatched, namespace },
    });
  const [first, ...others] = namespaces;
  if (first === undefined || others.length === 0) return open(first);
  const stores = [...namespaces].sort().map((namespace, index) => open(namespace, index));
  return {
    get snapshot() {
      return mergeSnapshots(stores.map(({ snapshot }) => snapshot));
    },
    async loadMore() {
      await Promise.all(stores.map((store) => store.loadMore()));
    },
    restart() {
      for (const store of stores) store.restart();
    },
    close() {
      for (const store of stores) store.close();
    },
  };
}

function mergeSnapshots(parts: readonly TableSnapshot[]): TableSnapshot {
  const states = parts.map(({ state }) => state);
  const worst = phases.flatMap((phase) => states.filter((state) => state.phase === phase))[0];
  const remainders = parts.flatMap(({ more }) => (more === undefined ? [] : [more]));
  const counts = remainders.map(({ remaining }) => remaining);
  const remaining = counts.includes(undefined)
    ? undefined
    : counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
  return {
    state: worst ?? { phase: 'listing' },
    columns: parts.find(({ columns }) => columns.length > 0)?.columns ?? [],
    rows: parts.flatMap(({ rows }) => rows),
    more: remainders.length === 0 ? undefined : { remaining },
    resourceVersion: parts[0]?.resourceVersion ?? '',
    warnings: [...new Set(parts.flatMap(({ warnings }) => warnings))],
  };
}
