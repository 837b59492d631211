import type { Clock } from '@wheelhouse/machinery/browser';
import { createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { Api } from '../../model/api.ts';
import type { Discovered } from '../../model/discovery.ts';
import { openTables, type TablesQuery } from '../../model/merged-table.ts';
import type { TableRow } from '../../model/table.ts';
import type { RowChange, TableStore } from '../../model/table-store.ts';
import type { Workspace } from '../../model/workspace.ts';

/** Light and dark as the system has it, or as the user chose. */
export type Theme = 'auto' | 'light' | 'dark';

/** What a page can do for the user that its own actions do not show. */
export interface PageCommand {
  readonly label: string;
  readonly run: () => unknown;
}

/** What components work with. */
export interface App {
  readonly api: Api;
  readonly clock: Clock;
  readonly random: () => number;
  readonly workspace: Workspace;
  /** What the server serves now; components are drawn again when it changes. */
  readonly discovered: Discovered;
  /** Runs a task before the next picture, once however often it is passed. */
  nextFrame(task: () => void): void;
  /** Says something that happened, on screen and to screen readers. */
  announce(message: string): void;
  copy(text: string): Promise<void>;
  readonly theme: Theme;
  setTheme(theme: Theme): void;
  /** Whether the connection carries many streams at once, as HTTP/2 does. */
  readonly hasManyStreams: boolean;
  /** Commands of the page that is open, for the palette. */
  readonly pageCommands: { current: readonly PageCommand[] };
  /** Files that were dropped on the window, for the page that applies them. */
  readonly dropped: { current: readonly ManifestFile[] };
}

/** A file of manifests. */
export interface ManifestFile {
  readonly name: string;
  readonly text: string;
}

export const AppContext = createContext<App | undefined>(undefined);

/** What the component works with. Throws outside of a workspace. */
export function useApp(): App {
  const app = useContext(AppContext);
  if (app === undefined) throw new Error('the component is outside of a workspace');
  return app;
}

/** A function that draws the component again before the next picture. */
export function useRedraw(): () => void {
  const app = useApp();
  const [, count] = useState(0);
  const redraw = useRef(() => count((before) => before + 1));
  const scheduled = useRef(() => app.nextFrame(redraw.current));
  return scheduled.current;
}

/** A list that is followed for as long as the component shows it; draws it again on changes. */
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
  // Not for every change: the key says all of the query.
  useEffect(() => {
    if (query === undefined) return;
    const { api, clock, random } = app;
    const opened = openTables({
      ...{ api, clock, random, query },
      onChange: redraw,
      onRow: (change, row) => listener.current?.(change, row),
    });
    setStore(opened);
    const unlisten = app.workspace.onResume(() => opened.restart());
    return () => {
      unlisten();
      opened.close();
    };
  }, [key]);
  return store;
}

function keyOf({ kind, ...rest }: TablesQuery): string {
  const { group, version, resource, verbs } = kind;
  return JSON.stringify([group, version, resource, verbs, rest]);
}

/** A module that is loaded by the first component that needs it. */
export function useModule<T>(load: () => Promise<T>): T | undefined {
  const [loaded, setLoaded] = useState<{ readonly module: T }>();
  useEffect(() => {
    let isGone = false;
    load().then(
      (module) => !isGone && setLoaded({ module }),
      () => {},
    );
    return () => {
      isGone = true;
    };
  }, [load]);
  return loaded?.module;
}

/** Draws the component again at intervals, as for ages; gives the present time. */
export function useNow(periodMs: number): number {
  const app = useApp();
  const redraw = useRedraw();
  useEffect(() => {
    const timer = app.clock.every(periodMs, redraw);
    return () => timer.stop();
  }, [app.clock, periodMs, redraw]);
  return app.clock.now();
}

/** Says what the page is called, and which commands it adds to the palette. */
export function usePage(title: string, commands: readonly PageCommand[] = []): void {
  const app = useApp();
  app.pageCommands.current = commands;
  useEffect(() => {
    document.title = `${title} – Wheelhouse`;
  }, [title]);
}
