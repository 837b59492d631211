import type { Clock } from '@wheelhouse/machinery/browser';
import type { TokenStore } from './model/ports.ts';
import { startConsole } from './view/shell.tsx';

/** The browser's clock. */
const browserClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, task) {
    const handle = setTimeout(task, delayMs);
    return { stop: () => clearTimeout(handle) };
  },
  every(periodMs, task) {
    const handle = setInterval(task, periodMs);
    return { stop: () => clearInterval(handle) };
  },
};

/** The page is at `<base>/console/`; `<base>` may include a prefix of a proxy. */
const base = new URL('..', document.baseURI).href.replace(/\/$/, '');

/** Storage of this tab. Without it, a reload requires signing in again. */
function tabStore(name: string): TokenStore {
  return {
    read() {
      try {
        return sessionStorage.getItem(name) ?? undefined;
      } catch {
        return undefined;
      }
    },
    write(text) {
      try {
        if (text === undefined) sessionStorage.removeItem(name);
        else sessionStorage.setItem(name, text);
      } catch {
        // The value stays in memory.
      }
    },
  };
}

/** Over HTTP/1.1, as behind a proxy, a browser opens at most six connections. */
function hasManyStreams(): boolean {
  const [page] = performance.getEntriesByType('navigation');
  return page instanceof PerformanceNavigationTiming && page.nextHopProtocol === 'h2';
}

const root = document.getElementById('console');
if (root === null) throw new Error('the page has no root element for the console');

const running = startConsole({
  root,
  fetch: (url, request) => fetch(url, request),
  base,
  tokens: tabStore('wheelhouse-token'),
  themes: tabStore('wheelhouse-theme'),
  hasManyStreams: hasManyStreams(),
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
  nextFrame: (task) => void requestAnimationFrame(task),
  // The clipboard is unavailable on pages without TLS.
  copy: async (text) => navigator.clipboard.writeText(text),
  confirm: (question) => confirm(question),
});

addEventListener('beforeunload', (event) => {
  if (running.hasUnsaved()) event.preventDefault();
});
