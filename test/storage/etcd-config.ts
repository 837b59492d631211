import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { EtcdSettings, LeaderElectionSettings } from '@wheelhouse/server/testing';
import type { ConfigChange } from '../support/harness.ts';

let prefixes = 0;

/** A configuration on an etcd with a unique key prefix, which several servers may share. */
export function onEtcd(
  etcd: { readonly url: string },
  more: Partial<EtcdSettings> = {},
): ConfigChange {
  prefixes += 1;
  return {
    store: {
      type: 'etcd',
      servers: [etcd.url],
      prefix: `/test-${prefixes}`,
      healthcheckTimeoutMs: 2000,
      readycheckTimeoutMs: 2000,
      countMetricMs: 1,
      sizeMetricMs: 1,
      leaseReuseMs: 60_000,
      ...more,
    },
  };
}

/** A configuration that reaches the same etcd through another address. */
export function reachedBy(config: ConfigChange, url: string): ConfigChange {
  const { store } = config;
  if (store?.type !== 'etcd') throw new Error('not on etcd');
  return { ...config, store: { ...store, servers: [url] } };
}

/** Durations with which leadership changes within seconds. */
export const quickElection: LeaderElectionSettings = {
  leaseDurationMs: 1500,
  renewDeadlineMs: 1000,
  retryPeriodMs: 200,
  name: 'test-controllers',
};

/** A proxy in front of an etcd. */
export interface Line {
  readonly url: string;
  /** Drops all connections, and refuses new ones until `restore`. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  /** Withholds requests, but not what etcd sends, until the returned function is called. */
  hold(): () => void;
  /** Until it is removed, drops each connection with a request that contains its text. */
  dropped: string | undefined;
}

/** Starts a proxy that forwards connections to an etcd, at an address or a Unix socket. */
export async function startLine(
  etcd: { readonly url: string },
  place: { readonly host: string } | { readonly path: string } = { host: '127.0.0.1' },
): Promise<Line> {
  const target = new URL(etcd.url);
  const sockets = new Set<Socket>();
  const lines = new Map<Socket, Socket>();
  const server: Server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    lines.set(near, far);
    near.on('data', (bytes: Buffer) => {
      if (line.dropped !== undefined && bytes.includes(line.dropped)) near.destroy();
    });
    near.on('close', () => lines.delete(near));
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
  });
  const first = 'path' in place ? place : { ...place, port: 0 };
  await new Promise<void>((resolve) => server.listen(first, resolve));
  const own = 'path' in place ? place : { ...place, port: (server.address() as AddressInfo).port };
  const line: Line = {
    dropped: undefined,
    url: 'path' in own ? `unix://${own.path}` : `${target.protocol}//${own.host}:${own.port}`,
    cut: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
        sockets.clear();
      }),
    hold() {
      const held = [...lines];
      for (const [near, far] of held) near.unpipe(far);
      return () => {
        for (const [near, far] of held) near.pipe(far);
      };
    },
    restore: () => new Promise((resolve) => server.listen(own, resolve)),
  };
  return line;
}
