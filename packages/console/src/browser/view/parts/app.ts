import type { Clock } from '@wheelhouse/machinery/browser';
import { createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { Attempt } from '../../model/access.ts';
import type { Api } from '../../model/api.ts';
import type { ManifestFile } from '../../model/editing.ts';
import type { Discovered } from '../../model/kinds.ts';
import type { Fetch, TokenStore } from '../../model/ports.ts';
import type { TableRow } from '../../model/table.ts';
import {
  openTables,
  type RowChange,
  type TableStore,
  type TablesQuery,
} from '../../model/table-store.ts';
import type { Workspace } from '../../model/workspace.ts';

/** A command of a page, for the palette. */
export interface PageCommand {
  readonly label: string;
  readonly run: () => unknown;
}

/** The context of all components. */
export interface App {
  readonly api: Api;
  readonly clock: Clock;
  readonly random: () => number;
  readonly workspace: Workspace;
  /** The result of discovery; components rerender when it changes. */
  readonly discovered: Discovered;
  /** Runs a task before the next frame, once even if requested repeatedly. */
  nextFrame(task: () => void): void;
  /** Announces a message on screen and to screen readers. */
  announce(message: string): void;
  copy(text: string): Promise<void>;
  readonly theme: Theme;
  setTheme(theme: Theme): void;
  /** Whether the connection supports many concurrent streams, as HTTP/2 does. */
  readonly hasManyStreams: boolean;
  /** Commands of the open page, for the palette. */
  readonly pageCommands: { current: readonly PageCommand[] };
  /** Dropped files, for the page that applies them. */
  readonly dropped: { current: readonly ManifestFile[] };
}

/** Provides the state of the console to its views, which read it through `useApp`. */
export const AppContext = createContext<App | undefined>(undefined);

/** Returns the context. Throws outside of a workspace. */
export function useApp(): App {
  const app = useContext(AppContext);
  if (app === undefined) throw new Error('the component is outside of a workspace');
  return app;
}

/** Returns a function that rerenders the component before the next frame. */
export function useRedraw(): () => void {
  const app = useApp();
  const [, count] = useState(0);
  const redraw = useRef(() => count((before) => before + 1));
  const scheduled = useRef(() => app.nextFrame(redraw.current));
  return scheduled.current;
}

/** Follows a list while the component is mounted; rerenders on changes. */
export function useTables(
  query: TablesQuery | undefined,
  onRow?: (change: RowChange, row: TableRow) => void,
): TableStore | undefined {
  const app = useApp();
  const redraw = useRedraw();
  const listener = useRef(onRow);
  listener.current = onRow;
  const [store, setStore] = useState<TableStore>();
  const key = query === undefined ? '' : keyOf(query);
  // The key contains the whole query.
  useEffect(() => {
    if (query === undefined) return;
    const { api, clock, random } = app;
    const opened = openTables({
      ...{ api, clock, random, query },
      onChange: redraw,
      onRow: (change, row) => listener.current?.(change, row),
      ...(app.hasManyStreams ? {} : { watchesMax: fewStreams }),
    });
    setStore(opened);
    const unlisten = app.workspace.onResume(() => opened.restart());
    return () => {
      unlisten();
      opened.close();
    };
  }, [key]);
  // A kind that was removed may be served again.
  useEffect(() => {
    if (store?.snapshot.state.phase === 'refused') store.restart();
  }, [app.discovered]);
  return store;
}

/** Watches per list without many streams: they must not occupy all six connections of a browser. */
const fewStreams = 2;

function keyOf({ kind, ...rest }: TablesQuery): string {
  const { group, version, resource, verbs } = kind;
  return JSON.stringify([group, version, resource, verbs, rest]);
}

/** Returns a function to call when a request begins; its result says whether none began later. */
export function useLatest(): () => () => boolean {
  const count = useRef(0);
  const begin = useRef(() => {
    count.current += 1;
    const own = count.current;
    return () => own === count.current;
  });
  return begin.current;
}

/** Loads a module when a component first needs it; `hasFailed` if that is impossible. */
export function useModule<T>(load: () => Promise<T>): {
  readonly module?: T;
  readonly hasFailed?: boolean;
} {
  const [loaded, setLoaded] = useState<{ readonly module?: T; readonly hasFailed?: boolean }>({});
  useEffect(() => {
    let isUnmounted = false;
    load().then(
      (module) => !isUnmounted && setLoaded({ module }),
      () => !isUnmounted && setLoaded({ hasFailed: true }),
    );
    return () => {
      isUnmounted = true;
    };
  }, [load]);
  return loaded;
}

/** Rerenders the component at intervals, for example for ages; returns the current time. */
export function useNow(periodMs: number): number {
  const app = useApp();
  const redraw = useRedraw();
  useEffect(() => {
    const timer = app.clock.every(periodMs, redraw);
    return () => timer.stop();
  }, [app.clock, periodMs, redraw]);
  return app.clock.now();
}

/**
 * Returns the reason why the user may perform none of several actions; undefined if one is allowed
 * and until the check completes.
 */
export function useRefusal(attempts: readonly Attempt[]): string | undefined {
  const { workspace, discovered } = useApp();
  const [result, setResult] = useState({ key: '', refusal: '' });
  const key = JSON.stringify(attempts);
  // The key contains the attempts.
  useEffect(() => {
    let isUnmounted = false;
    void workspace.permissions.refusal(discovered.dialect, attempts).then((refusal) => {
      if (!isUnmounted) setResult({ key, refusal });
    });
    return () => {
      isUnmounted = true;
    };
  }, [key]);
  return result.key === key && result.refusal !== '' ? result.refusal : undefined;
}

/** Sets the title of the page and its commands for the palette. */
export function usePage(title: string, commands: readonly PageCommand[] = []): void {
  const app = useApp();
  app.pageCommands.current = commands;
  useEffect(() => {
    document.title = `${title} – Wheelhouse`;
  }, [title]);
}

/** The theme: the system's, or the user's choice. */
export type Theme = 'auto' | 'light' | 'dark';

const themes: readonly Theme[] = ['auto', 'light', 'dark'];

/** Light or dark: the system's theme unless the user chose one in this tab. */
export function useTheme(store: TokenStore): readonly [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(
    () => themes.find((candidate) => candidate === store.read()) ?? 'auto',
  );
  useEffect(() => {
    store.write(theme === 'auto' ? undefined : theme);
    document.documentElement.dataset['theme'] = theme;
  }, [store, theme]);
  return [theme, setTheme];
}

/** The next theme of the switch. */
export function nextTheme(theme: Theme): Theme {
  return themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'auto';
}

/** The features of the browser window that the console uses. */
export interface Host {
  /** The root element. */
  readonly root: HTMLElement;
  readonly fetch: Fetch;
  /** Prefix of the API's paths. */
  readonly base: string;
  readonly tokens: TokenStore;
  /** Stores the theme. */
  readonly themes: TokenStore;
  readonly clock: Clock;
  readonly random: () => number;
  readonly hasManyStreams: boolean;
  hash(): string;
  setHash(hash: string): void;
  /** Returns a function that ends the subscription. */
  onHashChange(listener: () => void): () => void;
  nextFrame(task: () => void): void;
  copy(text: string): Promise<void>;
  confirm(question: string): boolean;
}
