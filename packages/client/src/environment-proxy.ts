import { BlockList, isIP } from 'node:net';

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the URL of the proxy that the environment sets for a URL, by Go's rules: HTTPS_PROXY or
 * HTTP_PROXY by the scheme, unless NO_PROXY lists the host or the host is this machine. Names in
 * lower case are accepted, too.
 */
export function environmentProxy(url: URL, env: Environment): string | undefined {
  const read = (name: string) => env[name] || env[name.toLowerCase()] || '';
  const proxy = read(url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY');
  if (proxy === '') return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (isLocal(host)) return undefined;
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  const isListed = read('NO_PROXY')
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== '' && isExempt({ host, port }, entry));
  if (isListed) return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

function isLocal(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Whether an entry of NO_PROXY covers a host: an address, a range, a domain, or `*`. */
function isExempt(
  target: { readonly host: string; readonly port: string },
  entry: string,
): boolean {
  const { host, port } = target;
  if (entry === '*') return true;
  const range = /^(.+)\/(\d+)$/.exec(entry);
  if (range !== null) return isInRange(host, { base: range[1] ?? '', bits: Number(range[2]) });
  const [, name = entry, onlyPort] = /^(\[.*\]|[^:]*):(\d+)$/.exec(entry) ?? [];
  if (onlyPort !== undefined && onlyPort !== port) return false;
  const bare = name.replace(/^\[|\]$/g, '').replace(/^\*(?=\.)/, '');
  if (bare.startsWith('.')) return host.endsWith(bare);
  return host === bare || (isIP(host) === 0 && host.endsWith(`.${bare}`));
}

function isInRange(
  host: string,
  { base, bits }: { readonly base: string; readonly bits: number },
): boolean {
  const family = isIP(base);
  if (family === 0 || isIP(host) !== family || bits > (family === 4 ? 32 : 128)) return false;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  const range = new BlockList();
  range.addSubnet(base, bits, type);
  return range.check(host, type);
}
