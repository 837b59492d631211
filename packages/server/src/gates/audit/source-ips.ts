import { isIP } from 'node:net';
import type { Exchange } from '@wheelhouse/machinery';

/** Addresses that a client may name; what a header holds beyond them is not recorded. */
const namedMax = 64;

/**
 * Where a request comes from, as far as it says: what proxies have noted in their headers, and last
 * the address of the connection, which alone cannot be made up.
 */
export function sourceIps(exchange: Pick<Exchange, 'header' | 'remoteAddress'>): string[] {
  const forwarded = (exchange.header('x-forwarded-for') ?? '').split(',', namedMax);
  const found = forwarded.map((one) => one.trim()).filter((one) => isIP(one) !== 0);
  const real = (exchange.header('x-real-ip') ?? '').trim();
  if (isIP(real) !== 0 && !found.includes(real)) found.push(real);
  const remote = exchange.remoteAddress.replace(/^::ffff:(?=\d+\.)/i, '');
  if (isIP(remote) !== 0 && found.at(-1) !== remote) found.push(remote);
  return found;
}
