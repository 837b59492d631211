import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Discovered } from '../model/discovery.ts';
import { messageOf } from '../model/failure.ts';
import type { Workspace } from '../model/workspace.ts';
import { DropZone } from './drop-zone.tsx';
import type { Host } from './host.ts';
import { useShortcuts } from './keys.ts';
import { Navigation } from './navigation.tsx';
import { Pages } from './pages.tsx';
import { Help, Palette } from './palette.tsx';
import {
  type App,
  AppContext,
  type ManifestFile,
  type PageCommand,
  type Theme,
  useApp,
} from './parts/app.ts';
import { Button, Fault, Link } from './parts/basics.tsx';
import { nextTheme, useTheme } from './theme.ts';

const themeLabels: Readonly<Record<Theme, readonly [mark: string, label: string]>> = {
  auto: ['◐', 'Theme: as the system'],
  light: ['☀', 'Theme: light'],
  dark: ['☾', 'Theme: dark'],
};

/** The head of every page. */
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
      <Button act={() => open('help')} class="plain" aria-label="Help" title="Keys and help">
        ?
      </Button>
      <span class="user" title={groups.join(', ')}>
        {user || 'somebody'}
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

/** What a user who is signed in works in. */
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
        <p role="status">Reading what the server serves…</p>
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
  const [said, setSaid] = useState('');
  const [overlay, setOverlay] = useState<Overlay>();
  const [isNavigationOpen, setNavigationOpen] = useState(false);
  const finder = useRef<HTMLInputElement>(null);
  const main = useRef<HTMLElement>(null);
  const app = useAppValue({ host, workspace, discovered, frames, announce: setSaid });
  useShortcuts(app, { open: setOverlay, finder });
  const { hash } = workspace;
  // Not for every change: another page is what this is about.
  useEffect(() => {
    setNavigationOpen(false);
    setSaid('');
    main.current?.focus({ preventScroll: true });
  }, [hash]);
  useEffect(() => {
    if (said === '') return;
    const timer = app.clock.after(announcementMs, () => setSaid(''));
    return () => timer.stop();
  }, [said, app.clock]);
  const close = (): void => setOverlay(undefined);
  return (
    <AppContext.Provider value={app}>
      <div class={`workspace ${isNavigationOpen ? 'with-navigation' : ''}`}>
        <button type="button" class="skip" onClick={() => main.current?.focus()}>
          Skip to the content
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
        <output class="said">{said}</output>
        {overlay === 'palette' && <Palette onClose={close} open={setOverlay} />}
        {overlay === 'help' && <Help onClose={close} />}
        <DropZone />
      </div>
    </AppContext.Provider>
  );
}

/** How long an announcement stays on screen. */
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

/** Runs tasks before the next picture, each once. */
function createFrames(nextFrame: (task: () => void) => void): Frames {
  let waiting = new Set<() => void>();
  return {
    before(task) {
      if (waiting.size === 0) {
        nextFrame(() => {
          const tasks = waiting;
          waiting = new Set();
          for (const one of tasks) one();
        });
      }
      waiting.add(task);
    },
  };
}
