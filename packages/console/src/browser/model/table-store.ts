import { jsonObject } from '@wheelhouse/machinery';
import type { Clock, JsonObject, Timer } from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { ApiFailure, failureOf, messageOf, objectOf, textOf } from './failure.ts';
import { collectionPath, type Kind } from './kinds.ts';
import { columnsOf, rowsOf, type TableColumn, type TableRow, tableType } from './table.ts';
import { TableRows } from './table-rows.ts';

/** Which objects a table shows. */
export interface TableQuery {
  readonly kind: Kind;
  /** Undefined: of all namespaces. */
  readonly namespace: string | undefined;
  readonly labelSelector: string;
  readonly fieldSelector: string;
  /** Objects a page. */
  readonly pageSize: number;
  /** Whether rows carry whole objects, or their metadata alone. */
  readonly objects?: 'whole';
}

/** A change that the watch reports. */
export type RowChange = 'ADDED' | 'MODIFIED' | 'DELETED';

/**
 * How a table stands to the server:
 *
 *     listing   nothing to show yet, or all of it is being read anew
 *     live      every change is shown as it happens
 *     waiting   the connection is gone; it is tried again in a while
 *     still     what was listed is shown, changes are not (this kind or user cannot watch)
 *     refused   the server does not list them to this user, or cannot; `message` is its word
 */
export interface TableState {
  readonly phase: 'listing' | 'live' | 'waiting' | 'still' | 'refused';
  readonly message?: string;
  readonly retryInMs?: number;
}

/** What there is to show. */
export interface TableSnapshot {
  readonly state: TableState;
  readonly columns: readonly TableColumn[];
  readonly rows: readonly TableRow[];
  /** There are more pages; `remaining` objects, where the server says how many. */
  readonly more: { readonly remaining: number | undefined } | undefined;
  readonly resourceVersion: string;
  readonly warnings: readonly string[];
}

/** A list that follows its changes until it is closed. */
export interface TableStore {
  readonly snapshot: TableSnapshot;
  /** Reads the next page; does nothing when there is none. Never rejects. */
  loadMore(): Promise<void>;
  /** Reads everything anew, as after `refused`. */
  restart(): void;
  close(): void;
}

const firstDelayMs = 500;
const longestDelayMs = 30_000;
/** A watch that held this long was a good one: the next may begin at once. */
const settledMs = 5_000;

/**
 * Lists a kind's objects as a table and watches them from there (LIST, WATCH): bookmarks move the
 * version on, a connection that ends is opened again from the last version, after growing pauses
 * when it failed, and a version that has become too old makes it list anew. `onChange` is called
 * after each change of the snapshot.
 */
export function openTable(options: {
  readonly api: Api;
  readonly clock: Clock;
  readonly query: TableQuery;
  /** Between 0 and 1: spreads the return of many clients. */
  readonly random: () => number;
  readonly onChange: () => void;
  /** Called for each change that the watch reports, before `onChange`. */
  readonly onRow?: (change: RowChange, row: TableRow) => void;
}): TableStore {
  return new FollowedTable(options);
}

class FollowedTable implements TableStore {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #query: TableQuery;
  readonly #random: () => number;
  readonly #onChange: () => void;
  readonly #onRow: (change: RowChange, row: TableRow) => void;
  #abort = new AbortController();
  #timer: Timer | undefined;
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
    this.#timer?.stop();
    this.#abort.abort(new Error('closed'));
  }

  /** Lists and watches until it is closed, or there is nothing to be had. Never rejects. */
  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#version === '') await this.#list(signal);
        if (!this.#query.kind.verbs.includes('watch')) return this.#set({ phase: 'still' });
        await this.#watch(signal);
      } catch (error) {
        if (signal.aborted || this.#isFinal(error)) return;
        const mustRelist = isOfAnotherTime(error);
        if (mustRelist) this.#version = '';
        // The first time at once; a server that goes on refusing is not to be pressed.
        if (mustRelist && this.#failures === 0) this.#relist();
        else await this.#pause(error, signal);
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    // As many as there were: a list that is read anew does not lose pages.
    const limit = Math.max(this.#query.pageSize, this.#rows.size);
    const { table, warnings } = await this.#page({ limit, signal });
    this.#rows = new TableRows();
    this.#warnings = warnings;
    this.#columns = columnsOf(table) ?? [];
    this.#version = textOf(objectOf(table, 'metadata'), 'resourceVersion');
    this.#take(table);
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
    return { table: jsonObject(JSON.parse(text)), warnings };
  }

  get #includeObject(): string | undefined {
    return this.#query.objects === 'whole' ? 'Object' : undefined;
  }

  #take(table: JsonObject): void {
    const metadata = objectOf(table, 'metadata');
    const { remainingItemCount: remaining } = metadata;
    this.#continue = textOf(metadata, 'continue');
    this.#remaining = typeof remaining === 'number' ? remaining : undefined;
    this.#rows.addPage(rowsOf(table), this.#continue === '' ? 'last' : 'more to come');
  }

  async #nextPage(signal: AbortSignal): Promise<void> {
    const { pageSize } = this.#query;
    try {
      const { table } = await this.#page({ limit: pageSize, signal, token: this.#continue });
      if (signal.aborted) return;
      this.#take(table);
      this.#onChange();
    } catch (error) {
      if (signal.aborted) return;
      // The moment that the pages show is forgotten: all of them are read anew.
      if (isOfAnotherTime(error)) this.restart();
      else this.#set({ ...this.#state, message: messageOf(error) });
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { kind, namespace, labelSelector, fieldSelector } = this.#query;
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
      signal,
    });
    const begunMs = this.#clock.monotonic();
    this.#set({ phase: 'live' });
    for await (const event of values) {
      this.#failures = 0;
      this.#event(event);
    }
    if (signal.aborted || this.#clock.monotonic() - begunMs >= settledMs) return;
    throw new Error('the server ended the watch');
  }

  #event(event: JsonObject): void {
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

  /** Whether asking again is no use; the state then says why. */
  #isFinal(error: unknown): boolean {
    if (!(error instanceof ApiFailure)) return false;
    const { code, message } = error;
    if (code < 400 || code >= 500 || code === 410 || code === 429) return false;
    // Listed but not to be watched: better an old list than none.
    const listed = this.#version !== '' && (code === 403 || code === 405);
    this.#set({ phase: listed ? 'still' : 'refused', message });
    return true;
  }

  #relist(): void {
    this.#failures += 1;
    this.#set({ phase: 'listing' });
  }

  #pause(error: unknown, signal: AbortSignal): Promise<void> {
    const retryAfterMs = error instanceof ApiFailure ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
    const growing = Math.min(longestDelayMs, firstDelayMs * 2 ** this.#failures);
    const retryInMs = Math.max(retryAfterMs, growing * (0.5 + this.#random() / 2));
    this.#failures += 1;
    this.#set({ phase: 'waiting', message: messageOf(error), retryInMs });
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      this.#timer = this.#clock.after(retryInMs, resolve);
    });
  }

  #set(state: TableState): void {
    this.#state = state;
    this.#onChange();
  }
}

/**
 * The version, or the token of a page, is older than what the server remembers; or newer than all
 * it has, which is what a server that began anew says.
 */
function isOfAnotherTime(error: unknown): boolean {
  if (!(error instanceof ApiFailure)) return false;
  const { code, reason, causes } = error;
  if (code === 410 || reason === 'Expired' || reason === 'Gone') return true;
  return causes.some((cause) => cause.reason === 'ResourceVersionTooLarge');
}
