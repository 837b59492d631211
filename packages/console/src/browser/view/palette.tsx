import type { RefObject } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Command, navigationCommands, rankCommands } from '../model/commands.ts';
import type { Kind } from '../model/kinds.ts';
import { hashOf, namespacesOf } from '../model/route.ts';
import { type App, nextTheme, useApp } from './parts/app.ts';
import { Button, Modal } from './parts/basics.tsx';

/** The keyboard shortcuts outside of inputs, in the order of the help. */
const shortcuts: readonly (readonly [keys: string, meaning: string])[] = [
  ['Ctrl K', 'Open the command palette'],
  ['/', 'Find a kind'],
  ['g', 'Go to the overview'],
  ['c', 'Create an object of the listed kind'],
  ['e', 'Edit the shown object'],
  ['p', 'Apply manifests'],
  ['t', 'Switch between light and dark'],
  ['?', 'Show this help'],
  ['↑ ↓ j k', 'Move between rows'],
  ['Enter', 'Open the row'],
  ['x', 'Select the row'],
  ['f', 'Filter by columns'],
  ['Ctrl Enter', 'Validate the text in the editor'],
  ['Ctrl S', 'Save the text in the editor'],
  ['Ctrl Space', 'Complete a field in the editor'],
  ['Esc', 'Close a dialog, or leave the editor so that Tab moves on'],
];

interface ShortcutTargets {
  readonly open: (overlay: 'palette' | 'help') => void;
  readonly finder: RefObject<HTMLInputElement | null>;
}

/** Handles keyboard shortcuts while the component is mounted. */
export function useShortcuts(app: App, targets: ShortcutTargets): void {
  const latest = useRef({ app, targets });
  latest.current = { app, targets };
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const { app: now, targets } = latest.current;
      const isCommand = event.ctrlKey || event.metaKey;
      if (isCommand && event.key.toLowerCase() === 'k') targets.open('palette');
      else if (isCommand || event.altKey || isField(event.target) || isInDialog()) return;
      else if (!act(event.key, now, targets)) return;
      event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

function act(key: string, app: App, { open, finder }: ShortcutTargets): boolean {
  const { workspace } = app;
  const { route } = workspace;
  if (key === '/') finder.current?.focus();
  else if (key === 'g') workspace.go({ page: 'home' });
  else if (key === 'p') workspace.go({ page: 'apply' });
  else if (key === 't') app.setTheme(nextTheme(app.theme));
  else if (key === '?') open('help');
  else if (key === 'c' && route.page === 'table') {
    const [namespace = ''] = route.at.namespace.split(',');
    workspace.go({ page: 'create', resource: route.at, namespace });
  } else if (key === 'e' && route.page === 'object') workspace.go({ ...route, tab: 'edit' });
  else return false;
  return true;
}

function isInDialog(): boolean {
  return document.querySelector('dialog[open]') !== null;
}

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches('input:not([type=checkbox]), textarea, select');
}

const shownMax = 50;

/** The command palette. */
export function Palette(props: {
  readonly onClose: () => void;
  readonly open: (overlay: 'help') => void;
}) {
  const { onClose, open } = props;
  const app = useApp();
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const commands = useCommands(app, open);
  const matches = rankCommands(commands, query).slice(0, shownMax);
  const chosen = matches[Math.min(at, matches.length - 1)];
  const list = useRef<HTMLUListElement>(null);
  // Runs only when the selection changes.
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [at, query]);
  const run = ({ target }: Command): void => {
    onClose();
    if (typeof target === 'function') void target();
    else app.workspace.go(target);
  };
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      setAt(
        (Math.min(at, matches.length - 1) + step + matches.length) % Math.max(matches.length, 1),
      );
    } else if (event.key === 'Enter' && chosen !== undefined) run(chosen);
    else return;
    event.preventDefault();
  };
  return (
    <Modal label="Command palette" class="palette" onClose={onClose}>
      <input
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        aria-label="Search or jump to"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={
          chosen === undefined ? undefined : `palette-${matches.indexOf(chosen)}`
        }
        placeholder="Type a kind, a page, or an action"
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <ul id="palette-list" role="listbox" aria-label="Commands" ref={list}>
        {matches.map((command, index) => (
          <li
            key={`${command.label} ${command.detail}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={command === chosen}
            onClick={() => run(command)}
          >
            <span>{command.label}</span>
            <small>{command.detail}</small>
          </li>
        ))}
      </ul>
      {matches.length === 0 && <p class="empty">No matches.</p>}
    </Modal>
  );
}

/** The namespace of the open page; empty for all namespaces and on other pages. */
function namespaceOf({ workspace: { route } }: App): string {
  if (route.page === 'table') return namespacesOf(route.at)[0] ?? '';
  return 'namespace' in route ? route.namespace : '';
}

/** Returns a check for whether the user may create a kind; it allows all until it is loaded. */
function useCreatable(app: App): (kind: Kind) => boolean {
  const [creatable, setCreatable] = useState<(kind: Kind) => boolean>(() => () => true);
  const { workspace, discovered } = app;
  // Runs once, when the palette opens.
  useEffect(() => {
    void workspace.permissions
      .creatable(discovered.dialect, namespaceOf(app))
      .then((isCreatable) => setCreatable(() => isCreatable));
  }, []);
  return creatable;
}

function useCommands(app: App, open: (overlay: 'help') => void): readonly Command[] {
  const canCreate = useCreatable(app);
  return useMemo(
    () => commandsOf(app, { help: () => open('help'), canCreate }),
    [app, open, canCreate],
  );
}

function commandsOf(
  app: App,
  { help, canCreate }: { readonly help: () => void; readonly canCreate: (kind: Kind) => boolean },
): Command[] {
  const { workspace, discovered } = app;
  const { route } = workspace;
  const command = (label: string, target: Command['target'], detail = ''): Command => ({
    ...{ label, detail, target },
    words: [],
  });
  const pageCommands = app.pageCommands.current.map(({ label, run }) =>
    command(label, run, 'this page'),
  );
  const tableRoute = route.page === 'table' ? route : undefined;
  const namespaces =
    tableRoute === undefined
      ? []
      : workspace.namespaces.map((namespace) =>
          command(`Namespace ${namespace}`, { ...tableRoute, at: { ...tableRoute.at, namespace } }),
        );
  const namespace = tableRoute?.at.namespace ?? ('namespace' in route ? route.namespace : '');
  return [
    ...pageCommands,
    ...navigationCommands(discovered.kinds, { namespace, canCreate }),
    ...namespaces,
    command('Switch theme', () => app.setTheme(nextTheme(app.theme))),
    command('Copy link', () => app.copy(location.href.split('#')[0] + hashOf(route))),
    command('Keyboard shortcuts and help', help),
  ];
}

/** The keyboard shortcuts. */
export function Help(props: { readonly onClose: () => void }) {
  return (
    <Modal label="Keyboard shortcuts and help" class="help" onClose={props.onClose}>
      <h2>Keyboard shortcuts</h2>
      <dl class="keys">
        {shortcuts.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <p class="hint">
        Drop manifest files anywhere to preview their changes. The libraries in this console and
        their licenses are listed in <code>licenses.txt</code>.
      </p>
      <div class="actions">
        <Button act={props.onClose} class="primary">
          Close
        </Button>
      </div>
    </Modal>
  );
}
