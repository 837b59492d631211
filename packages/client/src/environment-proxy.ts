import { blockHas, ipVersion, parseIpAddress, parseIpBlock } from '@wheelhouse/machinery';

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
  return (
    host === 'localhost' || host === '::1' || (ipVersion(host) === 4 && host.startsWith('127.'))
  );
}

/** Whether an entry of NO_PROXY covers a host: an address, a range, a domain, or `*`. */
function isExempt(
  target: { readonly host: string; readonly port: string },
  entry: string,
): boolean {
  const { host, port } = target;
  if (entry === '*') return true;
  if (entry.includes('/')) return isInRange(host, entry);
  const [, name = entry, onlyPort] = /^(\[.*\]|[^:]*):(\d+)$/.exec(entry) ?? [];
  if (onlyPort !== undefined && onlyPort !== port) return false;
  const bare = name.replace(/^\[|\]$/g, '').replace(/^\*(?=\.)/, '');
  if (bare.startsWith('.')) return host.endsWith(bare);
  return host === bare || (ipVersion(host) === 0 && host.endsWith(`.${bare}`));
}

function isInRange(host: string, range: string): boolean {
  const block = parseIpBlock(range);
  const address = parseIpAddress(host);
  return block !== undefined && address !== undefined && blockHas(block, address);
}
