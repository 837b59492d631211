import https from 'node:https';

/**
 * A minimal client for load generation: no retries and no parsing, with as little overhead as Node
 * allows.
 */
export interface LoadClient {
  request(call: LoadCall): Promise<LoadAnswer>;
  /** Opens a stream of body chunks; resolves when the headers have arrived. */
  stream(path: string, onChunk: (chunk: Buffer) => void): Promise<{ close(): void }>;
  /** False once the server has closed the connection, as it does with idle connections. */
  isOpen(): boolean;
  close(): void;
}

export interface LoadCall {
  readonly method: string;
  readonly path: string;
  readonly body?: Buffer;
  readonly contentType?: string;
  readonly accept?: string;
}

export interface LoadAnswer {
  readonly status: number;
  /** Length of the body in bytes. */
  readonly bytes: number;
  /** The beginning of the body; keeping all of a long body would cost more than serving it. */
  readonly body: Buffer;
}

export interface LoadTarget {
  readonly url: string;
  readonly token: string;
}

/** Number of body bytes that are kept, up to one chunk more. */
export const keptBytes = 16 * 1024;

/** One keep-alive connection over HTTP/1.1; each stream opens its own connection. */
export function http1Client(target: LoadTarget): LoadClient {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const { hostname, port } = new URL(target.url);
  const optionsOf = (call: LoadCall) => ({
    hostname,
    port,
    method: call.method,
    path: call.path,
    rejectUnauthorized: false,
    headers: {
      authorization: `Bearer ${target.token}`,
      accept: call.accept ?? 'application/json',
      ...(call.body === undefined
        ? {}
        : {
            'content-type': call.contentType ?? 'application/json',
            'content-length': String(call.body.length),
          }),
    },
  });
  return {
    request: (call) =>
      new Promise((resolve, reject) => {
        const sent = https.request({ ...optionsOf(call), agent }, (response) => {
          const collected = collector();
          response.on('data', collected.add);
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, ...collected.done() }),
          );
          response.on('error', reject);
        });
        sent.on('error', reject);
        sent.end(call.body);
      }),
    stream: (path, onChunk) =>
      new Promise((resolve, reject) => {
        const call = { method: 'GET', path };
        const sent = https.request({ ...optionsOf(call), agent: false }, (response) => {
          response.on('data', onChunk);
          response.on('error', () => {});
          resolve({ close: () => sent.destroy() });
        });
        sent.on('error', reject);
        sent.end();
      }),
    isOpen: () => true,
    close: () => agent.destroy(),
  };
}

function collector(): {
  add: (chunk: Buffer) => void;
  done: () => { bytes: number; body: Buffer };
} {
  const chunks: Buffer[] = [];
  let bytes = 0;
  return {
    add(chunk) {
      if (bytes < keptBytes) chunks.push(chunk);
      bytes += chunk.length;
    },
    done: () => ({ bytes, body: Buffer.concat(chunks) }),
  };
}
