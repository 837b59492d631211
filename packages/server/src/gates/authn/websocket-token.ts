import { isUtf8 } from 'node:buffer';
import { type Exchange, protocolsOf } from '@wheelhouse/machinery';
import type { Credentials } from './contract.ts';
import { decodeBase64url } from './jwt/compact.ts';

/**
 * What tells who sends an exchange: a token that is sent as a protocol of a WebSocket stands in for the
 * header that browsers cannot set (AUTHN-3). Throws for one that cannot be read, and when no other
 * protocol is named, which the handshake could be answered with.
 */
export function credentialsOf(exchange: Exchange): Credentials {
  if (exchange.header('authorization') !== undefined) return exchange;
  if (exchange.header('upgrade')?.toLowerCase() !== 'websocket') return exchange;
  const { names, tokens } = protocolsOf(exchange.header('sec-websocket-protocol'));
  const [encoded, ...more] = tokens;
  if (encoded === undefined) return exchange;
  if (more.length > 0) throw new Error('multiple base64.bearer.authorization tokens specified');
  if (encoded === '') return exchange;
  const bytes = decodeBase64url(encoded);
  if (bytes === undefined) {
    throw new Error('invalid base64.bearer.authorization token encoding');
  }
  if (!isUtf8(bytes)) throw new Error('invalid base64.bearer.authorization token');
  if (names.length === 0) throw new Error('missing additional subprotocol');
  const authorization = `Bearer ${bytes.toString()}`;
  return {
    header: (name) => (name === 'authorization' ? authorization : exchange.header(name)),
    headerLines: () => exchange.headerLines(),
    connection: exchange.connection,
  };
}
