import type { RefObject } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ManifestFile } from '../model/editing.ts';
import { messageOf } from '../model/failure.ts';
import { apiVersionOf, type Discovered, isBrowsable, type Kind } from '../model/kinds.ts';
import { kindAt, type ResourceRoute, type Route, tableRoute } from '../model/route.ts';
import type { Workspace } from '../model/workspace.ts';
import { AccessPage } from './access/access-page.tsx';
import { DropZone } from './drop-zone.tsx';
import { OverviewPage } from './overview/overview-page.tsx';
import { Help, Palette, useShortcuts } from './palette.tsx';
import {
  type App,
  AppContext,
  type Host,
  nextTheme,
  type PageCommand,
  type Theme,
  useApp,
  usePage,
  useTheme,
} from './parts/app.ts';
import { Button, Fault, KindMark, Link, Loaded, TextInput } from './parts/basics.tsx';
import { TablePage } from './table/table-page.tsx';

const themeLabels: Readonly<Record<Theme, readonly [mark: string, label: string]>> = {
  auto: ['◐', 'Theme: system'],
  light: ['☀', 'Theme: light'],
  dark: ['☾', 'Theme: dark'],
};

/** The header of every page. */
function TopBar(props: {
  readonly isNavigationOpen: boolean;
  readonly toggleNavigation: () => void;
  readonly open: (overlay: 'palette' | 'help') => void;
  readonly signOut: () => void;
}) {
  const { isNavigationOpen, toggleNavigation, open, signOut } = props;
  const { workspace, theme, setTheme } = useApp();
  const { user, groups } = workspace.subject;
  const [mark, label] = themeLabels[theme];
  return (
    <header class="top">
      <Button
        act={toggleNavigation}
        class="plain menu"
        aria-expanded={isNavigationOpen}
        aria-controls="navigation"
        aria-label="Kinds"
      >
        ☰
      </Button>
      <Link to={{ page: 'home' }} class="home">
        <span class="logo" aria-hidden="true" />
        Wheelhouse
      </Link>
      <Button act={() => open('palette')} class="search" aria-keyshortcuts="Control+K">
        <span>Search or jump to…</span>
        <kbd>Ctrl K</kbd>
      </Button>
      <Button act={() => setTheme(nextTheme(theme))} class="plain" aria-label={label} title={label}>
        {mark}
      </Button>
      <Button
        act={() => open('help')}
        class="plain"
        aria-label="Help"
        title="Keyboard shortcuts and help"
      >
        ?
      </Button>
      <span class="user" title={groups.join(', ')}>
        {user || 'unknown user'}
      </span>
      <Button act={signOut}>Sign out</Button>
    </header>
  );
}

interface WorkspaceProps {
  readonly host: Host;
  readonly workspace: Workspace;
  readonly signOut: () => void;
}

/** The console of a signed-in user. */
export function WorkspaceView(props: WorkspaceProps) {
  const { host, workspace } = props;
  const [, count] = useState(0);
  const frames = useMemo(() => createFrames(host.nextFrame), [host]);
  useEffect(() => {
    const redraw = (): void => count((before) => before + 1);
    const unsubscribe = workspace.subscribe(() => frames.before(redraw));
    redraw();
    return () => void unsubscribe();
  }, [workspace, frames]);
  const { discovered, failure } = workspace;
  if (discovered !== undefined) return <Open {...props} {...{ discovered, frames }} />;
  return (
    <main class="sign-in">
      {failure === undefined ? (
        <p role="status">Loading resource types…</p>
      ) : (
        <>
          <Fault>{failure}</Fault>
          <Button act={() => workspace.open()}>Try again</Button>
        </>
      )}
    </main>
  );
}

type Overlay = 'palette' | 'help' | undefined;

function Open(
  props: WorkspaceProps & { readonly discovered: Discovered; readonly frames: Frames },
) {
  const { host, workspace, signOut, discovered, frames } = props;
  const [announcement, setAnnouncement] = useState('');
  const [overlay, setOverlay] = useState<Overlay>();
  const [isNavigationOpen, setNavigationOpen] = useState(false);
  const finder = useRef<HTMLInputElement>(null);
  const main = useRef<HTMLElement>(null);
  const app = useAppValue({ host, workspace, discovered, frames, announce: setAnnouncement });
  useShortcuts(app, { open: setOverlay, finder });
  const { hash } = workspace;
  // Runs only when the page changes.
  useEffect(() => {
    setNavigationOpen(false);
    setAnnouncement('');
    main.current?.focus({ preventScroll: true });
  }, [hash]);
  useEffect(() => {
    if (announcement === '') return;
    const timer = app.clock.after(announcementMs, () => setAnnouncement(''));
    return () => timer.stop();
  }, [announcement, app.clock]);
  const close = (): void => setOverlay(undefined);
  return (
    <AppContext.Provider value={app}>
      <div class={`workspace ${isNavigationOpen ? 'with-navigation' : ''}`}>
        <button type="button" class="skip" onClick={() => main.current?.focus()}>
          Skip to content
        </button>
        <TopBar
          isNavigationOpen={isNavigationOpen}
          toggleNavigation={() => setNavigationOpen(!isNavigationOpen)}
          {...{ signOut, open: setOverlay }}
        />
        <Navigation finder={finder} />
        <main id="main" tabIndex={-1} ref={main}>
          <Pages />
        </main>
        <output class="announcement">{announcement}</output>
        {overlay === 'palette' && <Palette onClose={close} open={setOverlay} />}
        {overlay === 'help' && <Help onClose={close} />}
        <DropZone />
      </div>
    </AppContext.Provider>
  );
}

/** How long an announcement stays visible. */
const announcementMs = 6_000;

function useAppValue(of: {
  readonly host: Host;
  readonly workspace: Workspace;
  readonly discovered: Discovered;
  readonly frames: Frames;
  readonly announce: (message: string) => void;
}): App {
  const { host, workspace, discovered, frames, announce } = of;
  const [theme, setTheme] = useTheme(host.themes);
  const pageCommands = useRef<readonly PageCommand[]>([]);
  const dropped = useRef<readonly ManifestFile[]>([]);
  const refs = useRef({ pageCommands, dropped });
  return useMemo(() => {
    const { clock, random, hasManyStreams } = host;
    const copy = async (text: string): Promise<void> => {
      const failure = await host.copy(text).then(() => undefined, messageOf);
      announce(failure ?? `Copied: ${text.length > 200 ? 'the text' : text}`);
    };
    const { api } = workspace.ports;
    const nextFrame = frames.before;
    const ports = { api, clock, random, hasManyStreams, nextFrame, announce, copy };
    return { ...ports, ...refs.current, workspace, discovered, theme, setTheme };
  }, [host, workspace, discovered, frames, announce, theme, setTheme]);
}

interface Frames {
  before(task: () => void): void;
}

/** Runs tasks before the next frame, each once. */
function createFrames(nextFrame: (task: () => void) => void): Frames {
  let pending = new Set<() => void>();
  return {
    before(task) {
      if (pending.size === 0) {
        nextFrame(() => {
          const tasks = pending;
          pending = new Set();
          for (const run of tasks) run();
        });
      }
      pending.add(task);
    },
  };
}

/** Links to the pages and to the served kinds by group. */
function Navigation(props: { readonly finder: RefObject<HTMLInputElement | null> }) {
  const { workspace, discovered } = useApp();
  const [query, setQuery] = useState('');
  const { route } = workspace;
  const namespace = namespaceIn(route);
  const sections = groupsOf(discovered.kinds, query.trim().toLowerCase());
  const [firstKind] = [...sections.values()].flat();
  const goToFirst = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || firstKind === undefined) return;
    event.preventDefault();
    workspace.go(tableRoute(firstKind, namespace));
  };
  const place = (to: Route, label: string) => (
    <Link to={to} class="place-link" aria-current={to.page === route.page ? 'page' : undefined}>
      {label}
    </Link>
  );
  return (
    <nav class="navigation" id="navigation" aria-label="Kinds">
      {place({ page: 'home' }, 'Overview')}
      {place({ page: 'apply' }, 'Apply manifests')}
      {place({ page: 'access', tab: 'mine', namespace: '' }, 'Access')}
      <label class="field">
        <span class="unseen">Find a kind</span>
        <TextInput
          isSearch
          place={props.finder}
          placeholder="Find a kind  /"
          value={query}
          onText={setQuery}
          onKeyDown={goToFirst}
        />
      </label>
      {[...sections].map(([apiVersion, kinds]) => (
        <section key={apiVersion}>
          <h2>{apiVersion}</h2>
          <ul>
            {kinds.map((kind) => (
              <li key={kind.resource}>
                <KindLink {...{ kind, namespace, route }} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

function KindLink(props: {
  readonly kind: Kind;
  readonly namespace: string;
  readonly route: Route;
}) {
  const { kind, namespace, route } = props;
  const isCurrent = isSame(kind, resourceIn(route));
  return (
    <Link
      to={tableRoute(kind, namespace)}
      aria-current={isCurrent ? 'page' : undefined}
      title={[kind.kind, ...kind.shortNames].join(', ')}
    >
      <KindMark kind={kind.kind} group={kind.group} />
      {kind.resource}
    </Link>
  );
}

function groupsOf(kinds: readonly Kind[], query: string): ReadonlyMap<string, Kind[]> {
  const groups = new Map<string, Kind[]>();
  for (const kind of kinds) {
    if (!isBrowsable(kind) || !matchesQuery(kind, query)) continue;
    const apiVersion = apiVersionOf(kind);
    const group = groups.get(apiVersion);
    if (group === undefined) groups.set(apiVersion, [kind]);
    else group.push(kind);
  }
  return groups;
}

/** Matches any of the names of a kind. */
function matchesQuery(kind: Kind, query: string): boolean {
  if (query === '') return true;
  const names = [kind.resource, kind.kind, kind.group, ...kind.shortNames, ...kind.categories];
  return names.some((name) => name.toLowerCase().includes(query));
}

function namespaceIn(route: Route): string {
  if (route.page === 'table') return route.at.namespace;
  return 'namespace' in route ? route.namespace : '';
}

function resourceIn(route: Route): ResourceRoute | undefined {
  if (route.page === 'table') return route.at;
  return 'resource' in route ? route.resource : undefined;
}

function isSame(kind: Kind, resource: ResourceRoute | undefined): boolean {
  return (
    resource !== undefined &&
    resource.group === kind.group &&
    resource.version === kind.version &&
    resource.resource === kind.resource
  );
}

/** Loads the YAML parser when a page first needs it. */
const loadObjectPage = () => import('./object/object-page.tsx');
const loadCreatePage = () => import('./edit/editor.tsx');
const loadApplyPage = () => import('./edit/apply-page.tsx');

/** The page of the current route. */
function Pages() {
  const { workspace } = useApp();
  const { route } = workspace;
  if (route.page === 'home') return <OverviewPage />;
  if (route.page === 'access') {
    return <AccessPage key={route.tab} tab={route.tab} namespace={route.namespace} />;
  }
  if (route.page === 'apply') return <Loaded load={loadApplyPage} draw={(m) => <m.ApplyPage />} />;
  return <ResourcePage key={keyOf(route)} route={route} />;
}

type ResourcePageRoute = Extract<Route, { page: 'table' | 'object' | 'create' }>;

/** The identity of a page: routes with the same key keep its state when the tab changes. */
function keyOf(route: ResourcePageRoute): string {
  const { page } = route;
  if (page === 'table') return JSON.stringify(route);
  const { group, version, resource } = route.resource;
  const name = page === 'object' ? route.name : '';
  return JSON.stringify([page, group, version, resource, route.namespace, name]);
}

function ResourcePage(props: { readonly route: ResourcePageRoute }) {
  const { discovered } = useApp();
  const { route } = props;
  const resource = route.page === 'table' ? route.at : route.resource;
  const last = useRef<Kind | undefined>(undefined);
  // If a kind disappears, its open page and unsaved text stay.
  const kind = kindAt(discovered, resource) ?? last.current;
  last.current = kind;
  if (kind === undefined) return <Unserved resource={resource} />;
  if (route.page === 'table') return <TablePage kind={kind} at={route.at} />;
  if (route.page === 'create') {
    const { namespace } = route;
    return <Loaded load={loadCreatePage} draw={(m) => <m.CreatePage {...{ kind, namespace }} />} />;
  }
  const namespace = route.namespace === '' ? undefined : route.namespace;
  const target = { kind, namespace, name: route.name };
  return (
    <Loaded load={loadObjectPage} draw={(m) => <m.ObjectPage target={target} tab={route.tab} />} />
  );
}

function Unserved(props: { readonly resource: ResourceRoute }) {
  const { group, version, resource } = props.resource;
  const name = group === '' ? `${resource}, ${version}` : `${resource} of ${group}/${version}`;
  usePage('Not served');
  return (
    <section class="page">
      <h1>Not served</h1>
      <p>The server does not serve {name}. This page opens when it does.</p>
    </section>
  );
}
