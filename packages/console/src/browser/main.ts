import { browserClock } from './browser-clock.ts';
import type { TokenStore } from './model/ports.ts';
import { startConsole } from './view/shell.ts';

/** The page is at `<base>/console/`, whatever a proxy has put before it. */
const base = new URL('..', document.baseURI).href.replace(/\/$/, '');
const tokenName = 'wheelhouse-token';

/** Of this tab alone, and gone with it. A browser that keeps nothing asks anew after a reload. */
const tokens: TokenStore = {
  read() {
    try {
      return sessionStorage.getItem(tokenName) ?? undefined;
    } catch {
      return undefined;
    }
  },
  write(token) {
    try {
      if (token === undefined) sessionStorage.removeItem(tokenName);
      else sessionStorage.setItem(tokenName, token);
    } catch {
      // It stays in memory.
    }
  },
};

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select');
}

const root = document.getElementById('console');
if (root === null) throw new Error('the page has no place for the console');

const running = startConsole({
  root,
  fetch: (url, request) => fetch(url, request),
  base,
  tokens,
  clock: browserClock,
  random: Math.random,
  hash: () => location.hash,
  setHash: (hash) => {
    location.hash = hash;
  },
  onHashChange(listener) {
    addEventListener('hashchange', listener);
    return () => removeEventListener('hashchange', listener);
  },
  setTitle: (title) => {
    document.title = `${title} – Wheelhouse`;
  },
  nextFrame: (task) => void requestAnimationFrame(task),
  // There is no clipboard on a page that came without TLS.
  copy: async (text) => navigator.clipboard.writeText(text),
  confirm: (question) => confirm(question),
});

addEventListener('beforeunload', (event) => {
  if (running.hasUnsaved()) event.preventDefault();
});
addEventListener('keydown', (event) => {
  const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (isPlain && !isField(event.target) && running.key(event.key)) event.preventDefault();
});
