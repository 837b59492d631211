import tls from 'node:tls';
import { randomOf } from '@wheelhouse/machinery';

const starts = [
  'GET /api HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET /api HTTP/9.9\r\n\r\n',
  'GET  /api  HTTP/1.1\r\nHost\r\n\r\n',
  'POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}',
  'POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n{}',
  'POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n',
  'POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{',
  'POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nExpect: nonsense\r\nContent-Length: 2\r\n\r\n{}',
  'GET /api HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
  `GET /${'a'.repeat(70_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
  `GET /api HTTP/1.1\r\nX: ${'y'.repeat(70_000)}\r\n\r\n`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x05\x01\x05\0\0\0\x01\xff\xff\xff\xff\xff',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff',
  '\x16\x03\x01\0\0',
  '\0'.repeat(1000),
];

const patienceMs = 2_000;

/**
 * Sends malformed HTTP on a separate connection and disconnects; resolves when the connection is
 * closed.
 */
export function abuse(url: string, seed: number): Promise<void> {
  const random = randomOf(seed);
  const { hostname, port } = new URL(url);
  const protocol = random.chance(0.5) ? 'http/1.1' : 'h2';
  const bytes = Buffer.from(random.pick(starts), 'latin1');
  if (random.chance(0.3)) bytes[random.below(bytes.length)] = random.below(256);
  const sent = random.chance(0.3) ? bytes.subarray(0, random.below(bytes.length)) : bytes;
  return new Promise((resolve) => {
    const socket = tls.connect({
      host: hostname,
      port: Number(port),
      ALPNProtocols: [protocol],
      rejectUnauthorized: false,
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.on('secureConnect', () => socket.write(sent));
    socket.on('data', () => {
      if (random.chance(0.5)) socket.destroy();
    });
    socket.setTimeout(patienceMs, () => socket.destroy());
    // The server may keep an idle connection, so the client closes it.
    socket.once('data', () => socket.end());
  });
}
