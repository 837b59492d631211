import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';

/** A unary call. */
export interface GrpcCall {
  /** The last part of the path. */
  readonly method: string;
  readonly path: string;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** The answer to a call: a message, or a status other than 0. */
export type GrpcAnswer = Buffer | { readonly status: number; readonly message: string };

/** Serves unary gRPC calls on a Unix socket, or on a port of the loopback interface. */
export async function startGrpcServer(
  at: string | number,
  answerTo: (call: GrpcCall) => GrpcAnswer | Promise<GrpcAnswer>,
) {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream, headers) => {
    const path = String(headers[':path']);
    const method = path.split('/').at(-1) ?? '';
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', () => {});
    stream.on('end', async () => {
      const call = { method, path, headers, body: Buffer.concat(chunks).subarray(5) };
      const answer = await answerTo(call);
      if (stream.destroyed) return;
      if (Buffer.isBuffer(answer)) send(stream, answer);
      else sendStatus(stream, answer);
    });
  });
  await new Promise<void>((resolve) => {
    if (typeof at === 'number') server.listen(at, '127.0.0.1', resolve);
    else server.listen(at, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    /** Number of connected clients. */
    get connections() {
      return sessions.size;
    },
    async stop() {
      for (const session of sessions) session.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function sendStatus(
  stream: ServerHttp2Stream,
  { status, message }: { readonly status: number; readonly message: string },
): void {
  stream.respond(
    {
      ':status': 200,
      'content-type': 'application/grpc',
      'grpc-status': status,
      'grpc-message': encodeURIComponent(message),
    },
    { endStream: true },
  );
}

function send(stream: ServerHttp2Stream, message: Buffer): void {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': 0 }));
  stream.end(Buffer.concat([head, message]));
}
