import { connect, createServer, type Socket } from 'node:net';
import { listenLocally } from '../support/local-server.ts';

const dataFrame = 0;
const headersFrame = 1;
const endStream = 1;
const prefaceBytes = 24;
const frameHeadBytes = 9;

/** A proxy of an etcd (plain HTTP/2) that can delay watch events. */
export interface LaggingLine {
  readonly url: string;
  /** Holds back the events of the open streams; later calls are forwarded. */
  hold(): void;
  /** Resolves when the first call after `hold` begins. */
  nextCall(): Promise<void>;
  /** Forwards the events that were held back. */
  release(): void;
  /** Breaks all connections, including new ones, until `repair`. */
  disconnect(): void;
  repair(): void;
  close(): Promise<void>;
}

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly bytes: Buffer;
}

/**
 * Divides one direction of an HTTP/2 connection into frames.
 * @param skip number of bytes before the first frame
 */
function frameReader(skip: number, onFrame: (frame: Frame) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  let toSkip = skip;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    if (toSkip > 0) {
      if (rest.length < toSkip) return;
      rest = rest.subarray(toSkip);
      toSkip = 0;
    }
    while (rest.length >= frameHeadBytes) {
      const size = frameHeadBytes + rest.readUIntBE(0, 3);
      if (rest.length < size) return;
      const bytes = rest.subarray(0, size);
      const stream = rest.readUInt32BE(5);
      onFrame({ type: rest[3] as number, flags: rest[4] as number, stream, bytes });
      rest = rest.subarray(size);
    }
  };
}

/** Starts the proxy on a free port of the loopback interface. */
export async function startLaggingLine(etcd: { readonly url: string }): Promise<LaggingLine> {
  const target = new URL(etcd.url);
  const sockets = new Set<Socket>();
  const connections = new Set<{ hold(): void; release(): void }>();
  let onCall = () => {};
  let isDisconnected = false;
  const server = createServer((near) => {
    if (isDisconnected) {
      near.destroy();
      return;
    }
    const far = connect(Number(target.port), target.hostname);
    const openStreams = new Set<number>();
    let heldStreams: Set<number> | undefined;
    let heldFrames: Buffer[] = [];
    const hold = () => {
      heldStreams = new Set(openStreams);
    };
    const release = () => {
      heldStreams = undefined;
      for (const bytes of heldFrames) near.write(bytes);
      heldFrames = [];
    };
    connections.add({ hold, release });
    const fromNear = frameReader(prefaceBytes, ({ type, stream }) => {
      if (type !== headersFrame) return;
      openStreams.add(stream);
      if (heldStreams !== undefined) onCall();
    });
    const fromFar = frameReader(0, ({ type, flags, stream, bytes }) => {
      const isEnd = (type === dataFrame || type === headersFrame) && (flags & endStream) !== 0;
      if (isEnd) openStreams.delete(stream);
      if (type === dataFrame && heldStreams?.has(stream)) heldFrames.push(bytes);
      else near.write(bytes);
    });
    near.on('data', (chunk: Buffer) => {
      fromNear(chunk);
      far.write(chunk);
    });
    far.on('data', fromFar);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
  });
  const port = await listenLocally(server);
  return {
    url: `http://127.0.0.1:${port}`,
    hold() {
      for (const connection of connections) connection.hold();
    },
    nextCall: () =>
      new Promise((resolve) => {
        onCall = resolve;
      }),
    release() {
      for (const connection of connections) connection.release();
    },
    disconnect() {
      isDisconnected = true;
      for (const socket of sockets) socket.destroy();
    },
    repair() {
      isDisconnected = false;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
