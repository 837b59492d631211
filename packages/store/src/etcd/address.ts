import { StoreError } from '../contract.ts';

/**
 * `host:port` of a server's URL, and whether it speaks TLS. Without a scheme it does where there
 * are certificates for it. Throws StoreError `unavailable` for what is no such URL.
 */
export function addressOf(
  server: string,
  { hasCertificates }: { readonly hasCertificates: boolean },
): { readonly host: string; readonly address: string; readonly secure: boolean } {
  const scheme = hasCertificates ? 'https' : 'http';
  const text = server.includes('://') ? server : `${scheme}://${server}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isKnown = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === undefined || !isKnown || url.hostname === '') {
    const message = `the etcd server ${JSON.stringify(server)} is no URL such as https://host:2379`;
    throw new StoreError({ code: 'unavailable', message });
  }
  const secure = url.protocol === 'https:';
  const port = url.port === '' ? (secure ? '443' : '80') : url.port;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return { host, address: `${url.hostname}:${port}`, secure };
}
