import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

const dataFrame = 0;
const headersFrame = 1;
const endStream = 1;
const prefaceBytes = 24;
const frameHeadBytes = 9;

/** A proxy of an etcd (plain HTTP/2) that can hold back watch events. */
export interface LaggingLine {
  readonly url: string;
  /** Holds back the events of the open streams; later calls are answered. */
  hold(): void;
  /** Resolves when the next call begins after `hold`. */
  nextCall(): Promise<void>;
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

/** Divides one direction of an HTTP/2 connection into frames. */
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
    const open = new Set<number>();
    let held: Set<number> | undefined;
    let kept: Buffer[] = [];
    const hold = () => {
      held = new Set(open);
    };
    const release = () => {
      held = undefined;
      for (const bytes of kept) near.write(bytes);
      kept = [];
    };
    connections.add({ hold, release });
    const fromNear = frameReader(prefaceBytes, ({ type, stream }) => {
      if (type !== headersFrame) return;
      open.add(stream);
      if (held !== undefined) onCall();
    });
    const fromFar = frameReader(0, ({ type, flags, stream, bytes }) => {
      const isEnd = (type === dataFrame || type === headersFrame) && (flags & endStream) !== 0;
      if (isEnd) open.delete(stream);
      if (type === dataFrame && held?.has(stream)) kept.push(bytes);
      else near.write(bytes);
    });
    near.on('data', (chunk: Buffer) => {
      fromNear(chunk);
      far.write(chunk);
    });
    far.on('data', fromFar);
    for (const [one, another] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => another.destroy());
      one.on('close', () => another.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    hold() {
      for (const one of connections) one.hold();
    },
    nextCall: () =>
      new Promise((resolve) => {
        onCall = resolve;
      }),
    release() {
      for (const one of connections) one.release();
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
