import { builtinBehavior } from '@wheelhouse/kinds';
import {
  badRequest,
  dialectOf,
  expired,
  type ResponseStream,
  systemClock,
} from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { jsonRendering } from '../answer/rendering.ts';
import { grantPermit } from '../registry/permit.ts';
import { parseListOptions } from '../request/options.ts';
import type { WatchSpec } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';
import { watchEndpoint } from './read.ts';

const dialect = dialectOf('svc');

/** The call of a watch, which counts the memory that it holds. */
function makeCall(watch: (spec: WatchSpec) => Promise<{ close(): void }>) {
  const counts = { shutdown: 0, watches: 0, requests: 0 };
  const aborts: (() => void)[] = [];
  const shutdowns = new Set<() => void>();
  const written: string[] = [];
  let ended = 0;
  const stream: Partial<ResponseStream> = {
    write: (chunk) => written.push(chunk.toString()) > 0,
    end: () => {
      ended += 1;
    },
  };
  const def = {
    group: '',
    resource: 'things',
    kind: 'Thing',
    strategy: {},
    storage: {},
    scope: 'Namespaced',
    behavior: builtinBehavior,
  };
  const call = {
    context: {
      dialect,
      clock: systemClock,
      features: { enabled: () => true },
      limits: { minRequestTimeoutMs: 1000 },
      onShutdown: (callback: () => void) => {
        shutdowns.add(callback);
        return { close: () => shutdowns.delete(callback) };
      },
      metrics: {
        eventsOf: () => () => {},
        beginStream: () => {
          counts.requests += 1;
          return () => {
            counts.requests -= 1;
          };
        },
      },
      registry: {
        caches: {
          of: () => ({
            watch: async (spec: WatchSpec) => {
              const handle = await watch(spec);
              counts.watches += 1;
              return {
                close: () => {
                  counts.watches -= 1;
                  handle.close();
                },
              };
            },
          }),
        },
      },
    },
    exchange: {
      aborted: false,
      header: () => undefined,
      onAbort: (callback: () => void) => aborts.push(callback),
      stream: () => stream,
    },
    permit: grantPermit(watching, ''),
    info: { parts: ['things'], verb: 'watch', query: new URLSearchParams() },
    target: {
      def,
      version: { version: 'v1' },
      namespace: 'default',
      name: '',
      subresource: '',
    },
    entryKind: def,
    rendering: jsonRendering,
    baseHeaders: {},
    warnings: [],
  } as unknown as ApiCall;
  return { call, counts, aborts, shutdowns, written, ended: () => ended };
}

const watching = {
  verb: 'watch',
  isResourceRequest: true,
  group: '',
  version: 'v1',
  resource: 'things',
  subresource: '',
  namespace: 'default',
  name: '',
  path: '',
};
const options = parseListOptions(new URLSearchParams('watch=true'));
const handle = { close: () => {} };

test('a disconnecting client frees the watch and its place in the shutdown order', async () => {
  const fixture = makeCall(async () => handle);
  await watchEndpoint(fixture.call, options);
  expect(fixture.counts).toMatchObject({ watches: 1, requests: 1 });
  expect(fixture.shutdowns.size).toBe(1);
  for (const abort of fixture.aborts) abort();
  expect(fixture.counts).toMatchObject({ watches: 0, requests: 0 });
  expect(fixture.shutdowns.size).toBe(0);
});

test('a watch that cannot start holds nothing', async () => {
  const fixture = makeCall(async () => {
    throw badRequest('no');
  });
  await expect(watchEndpoint(fixture.call, options)).rejects.toThrow('no');
  expect(fixture.shutdowns.size).toBe(0);
});

test('a watch that ends by itself releases its memory and reports why', async () => {
  const fixture = makeCall(async (spec) => {
    spec.sink.end({ type: 'error', error: expired('too old') });
    return handle;
  });
  await watchEndpoint(fixture.call, options);
  expect(fixture.shutdowns.size).toBe(0);
  expect(fixture.counts).toMatchObject({ watches: 0, requests: 0 });
  expect(fixture.written.join('')).toContain('"type":"ERROR"');
  expect(fixture.ended()).toBe(1);
});

test('shutdown ends the stream cleanly', async () => {
  const fixture = makeCall(async () => handle);
  await watchEndpoint(fixture.call, options);
  for (const shutdown of [...fixture.shutdowns]) shutdown();
  expect(fixture.ended()).toBe(1);
  expect(fixture.counts).toMatchObject({ watches: 0, requests: 0 });
});
