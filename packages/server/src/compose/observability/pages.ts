import { type Features, releaseName } from '@wheelhouse/kinds';
import { dialectOf, redactSecrets } from '@wheelhouse/machinery';
import { apiRelease } from '../../documents/version.ts';
import type { PlainAnswer } from '../../endpoints/call.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import type { ServerConfig } from '../config.ts';

/** Debugging pages about the process: `/flagz` and `/statusz`, each behind its gate. */
interface ZPages {
  /** Undefined for other paths and for pages whose gate is off. */
  answer(path: string, accept: string | undefined): PlainAnswer | undefined;
  paths(): readonly string[];
}

const warning =
  'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility ' +
  'guarantees and is for debugging purposes only.';
const delimiter = ': ';
const headers = { 'content-type': 'text/plain; charset=utf-8' };
const notAcceptable: PlainAnswer = {
  status: 406,
  headers: { ...headers, 'x-content-type-options': 'nosniff' },
  body: 'media type not acceptable, must be: text/plain\n',
};

/** `Mon Nov 23 03:13:09 UTC 2026` */
function unixDate(ms: number): string {
  const [day = '', date = '', month = '', year = '', time = ''] = new Date(ms)
    .toUTCString()
    .replace(',', '')
    .split(' ');
  return `${day} ${month} ${String(Number(date)).padStart(2)} ${time} UTC ${year}`;
}

const pad = (count: number) => String(count).padStart(2, '0');

/** Creates the pages. `/flagz` redacts the secrets in `config.flags`. */
export function createZPages(config: ServerConfig): ZPages {
  const features: Features = config.featureGates ?? defaultGates;
  const beganMs = config.clock.now();
  const component = `${dialectOf(config.dialect).namespacePrefix}apiserver`;
  const pages = new Map<string, () => string>();
  if (features.enabled('ComponentFlagz'))
    pages.set('/flagz', () => flagsText(component, config.flags));
  if (features.enabled('ComponentStatusz')) {
    pages.set('/statusz', () => statusText(component, config, beganMs));
  }
  return {
    answer(path, accept) {
      const page = pages.get(path);
      if (page === undefined) return undefined;
      return takesText(accept) ? { status: 200, headers, body: page() } : notAcceptable;
    },
    paths: () => [...pages.keys()],
  };
}

/**
 * Whether a client accepts plain text in UTF-8; without an Accept header it does not, as in
 * kube-apiserver.
 */
function takesText(accept: string | undefined): boolean {
  return (accept ?? '').split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const others = parameters.filter((parameter) => !parameter.startsWith('q='));
    const [first] = others;
    if (!['text/plain', 'text/*', '*/plain', '*/*'].includes(type)) return false;
    return first === undefined || (others.length === 1 && first === 'charset=utf-8');
  });
}

/** A flag's value without credentials in the user or query parts of URLs. */
const shownFlag = (value: string) =>
  redactSecrets(value).replace(/:\/\/[^/@\s]*@/g, '://REDACTED@');

function flagsText(component: string, flags: ServerConfig['flags']): string {
  const lines = [...(flags ?? [])]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, value]) => `${name}${delimiter}${shownFlag(value)}\n`);
  return `\n${component} flags\n${warning}\n\n${lines.join('')}`;
}

function statusText(
  component: string,
  { clock, emulatedMinor }: ServerConfig,
  beganMs: number,
): string {
  const seconds = Math.floor((clock.now() - beganMs) / 1000);
  const hours = Math.floor(seconds / 3600);
  const up = `${hours} hr ${pad(Math.floor(seconds / 60) % 60)} min ${pad(seconds % 60)} sec`;
  const { major, minor } = apiRelease;
  const emulated = emulatedMinor === undefined ? `${major}.${minor}` : releaseName(emulatedMinor);
  const lines = [
    ['Started', unixDate(beganMs)],
    ['Up', up],
    ['Go version', `node ${process.version}`],
    ['Binary version', `${major}.${minor}`],
    ['Emulation version', emulated],
  ];
  const data = lines.map(([name, value]) => `${name}${delimiter} ${value}\n`).join('');
  return `\n${component} statusz\n${warning}\n\n${data}`;
}

/** A path below `/debug/` with its query. */
interface DebugRequest {
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Renders the text of a path; undefined for other paths. */
export type DebugPage = (request: DebugRequest) => string | undefined;

/** The answer of the first page that has one; undefined if none does. */
export function debugAnswer(
  pages: readonly DebugPage[],
  request: DebugRequest,
): PlainAnswer | undefined {
  if (!request.path.startsWith('/debug/')) return undefined;
  for (const page of pages) {
    const body = page(request);
    if (body !== undefined) return { status: 200, headers, body };
  }
  return undefined;
}
