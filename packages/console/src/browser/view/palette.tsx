import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Command, placesOf, ranked } from '../model/commands.ts';
import { hashOf } from '../model/route.ts';
import { shortcuts } from './keys.ts';
import { type App, useApp } from './parts/app.ts';
import { Button, Modal } from './parts/basics.tsx';
import { nextTheme } from './theme.ts';

const shownMax = 50;

/** Finds places and actions by typing. */
export function Palette(props: {
  readonly onClose: () => void;
  readonly open: (overlay: 'help') => void;
}) {
  const { onClose, open } = props;
  const app = useApp();
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const commands = useMemo(() => commandsOf(app, () => open('help')), [app, open]);
  const found = ranked(commands, query).slice(0, shownMax);
  const chosen = found[Math.min(at, found.length - 1)];
  const list = useRef<HTMLUListElement>(null);
  // Not for every change: another choice is what this is about.
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
      setAt((Math.min(at, found.length - 1) + step + found.length) % Math.max(found.length, 1));
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
          chosen === undefined ? undefined : `palette-${found.indexOf(chosen)}`
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
        {found.map((command, index) => (
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
      {found.length === 0 && <p class="empty">Nothing is called that.</p>}
    </Modal>
  );
}

function commandsOf(app: App, help: () => void): Command[] {
  const { workspace, discovered } = app;
  const { route } = workspace;
  const command = (label: string, target: Command['target'], detail = ''): Command => ({
    ...{ label, detail, target },
    words: [],
  });
  const own = app.pageCommands.current.map(({ label, run }) => command(label, run, 'this page'));
  const scoped = route.page === 'table' ? route : undefined;
  const namespaces =
    scoped === undefined
      ? []
      : workspace.namespaces.map((namespace) =>
          command(`Namespace ${namespace}`, { ...scoped, at: { ...scoped.at, namespace } }),
        );
  const namespace = scoped?.at.namespace ?? ('namespace' in route ? route.namespace : '');
  return [
    ...own,
    ...placesOf(discovered.kinds, namespace),
    ...namespaces,
    command('Switch theme', () => app.setTheme(nextTheme(app.theme))),
    command('Copy the address', () => app.copy(location.href.split('#')[0] + hashOf(route))),
    command('Keys and help', help),
  ];
}

/** What the keys do. */
export function Help(props: { readonly onClose: () => void }) {
  return (
    <Modal label="Keys and help" class="help" onClose={props.onClose}>
      <h2>Keys</h2>
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
        Drop manifest files anywhere to see what applying them would change. The libraries in this
        console and their licenses are listed in <code>licenses.txt</code> beside it.
      </p>
      <div class="actions">
        <Button act={props.onClose} class="primary">
          Close
        </Button>
      </div>
    </Modal>
  );
}
