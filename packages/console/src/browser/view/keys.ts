import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { App } from './parts/app.ts';
import { nextTheme } from './theme.ts';

/** What each key does outside of fields, in the order of the help. */
export const shortcuts: readonly (readonly [keys: string, meaning: string])[] = [
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
  ['Esc', 'Close a dialog, or leave the editor for Tab to go on'],
];

interface Surroundings {
  readonly open: (overlay: 'palette' | 'help') => void;
  readonly finder: RefObject<HTMLInputElement | null>;
}

/** Follows the keyboard for as long as the component is shown. */
export function useShortcuts(app: App, around: Surroundings): void {
  const latest = useRef({ app, around });
  latest.current = { app, around };
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const { app: now, around: surroundings } = latest.current;
      const isCommand = event.ctrlKey || event.metaKey;
      if (isCommand && event.key.toLowerCase() === 'k') surroundings.open('palette');
      else if (isCommand || event.altKey || isField(event.target) || isInDialog()) return;
      else if (!act(event.key, now, surroundings)) return;
      event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

function act(key: string, app: App, { open, finder }: Surroundings): boolean {
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
