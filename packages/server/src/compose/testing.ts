import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtinKinds, type ResourceDef } from '@wheelhouse/kinds';
import { type ApiObject, type Dialect, dialectOf, silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import type { Store } from '@wheelhouse/store';
import { createMemoryStore } from '@wheelhouse/store/testing';
import { createHealth } from '../observe/health.ts';
import { serverContext } from '../registry/registry.ts';
import { write } from '../registry/write.ts';
import { type Api, openApi } from './api.ts';
import { readAuthorization } from './authorization/authorizers.ts';
import type { ServerConfig } from './config.ts';
import { createMetrics } from './observability/metrics.ts';
import { OpenParts } from './parts.ts';

/**
 * The registry and catalogue of a server that does not listen, for tests of the modules behind it.
 */
export interface TestApi {
  readonly api: Api;
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly clock: FakeClock;
  readonly store: Store;
  /** A built-in kind by its resource; throws if there is none. */
  def(resource: string, group?: string): ResourceDef;
  /** Creates an object of a built-in kind with the server's own rights. */
  create(
    object: ApiObject,
    at: { readonly resource: string; readonly group?: string },
  ): Promise<void>;
  /** Closes the registry and the store, and removes the server's directory. */
  close(): Promise<void>;
}

/**
 * Opens the API of a server on a memory store with a fake clock.
 * @param change settings that replace those of the test server
 */
export async function openTestApi(change: Partial<ServerConfig> = {}): Promise<TestApi> {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-api-'));
  const clock = new FakeClock();
  const config: ServerConfig = { ...testConfig(directory, clock), ...change };
  const dialect = dialectOf(config.dialect);
  const kinds = builtinKinds(dialect);
  const store = createMemoryStore();
  const metrics = createMetrics({ config });
  const health = createHealth({ clock, logger: silentLogger, livezGracePeriodMs: 0 });
  const parts = new OpenParts();
  const authorizers = await readAuthorization(config, dialect);
  const built = { config, dialect, store, health, kinds, metrics, authorizers };
  const api = await openApi(built, parts);
  const def = (resource: string, group = '') => {
    const kind = api.catalogue.snapshot().builtin(group, resource);
    if (kind === undefined) throw new Error(`there is no resource ${resource} in "${group}"`);
    return kind;
  };
  return {
    api,
    config,
    dialect,
    clock,
    store,
    def,
    async create(object, { resource, group }) {
      const kind = def(resource, group);
      const version = kind.versions.find(({ served }) => served);
      if (version === undefined) throw new Error(`${resource} is not served`);
      const namespace = object.metadata.namespace ?? '';
      const target = { def: kind, version, namespace, name: '', subresource: '' };
      await write(api.registry, { operation: 'create', target, object, context: serverContext });
    },
    async close() {
      await parts.close();
      await store.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The settings of a server without controllers, timers, or limits that would affect a test. */
function testConfig(certDir: string, clock: FakeClock): ServerConfig {
  return {
    dialect: 'svc',
    listen: { host: '192.0.2.1', port: 0, tls: { certDir } },
    store: { type: 'memory' },
    compactionIntervalMs: 0,
    eventTtlMs: 0,
    authorizationModes: ['AlwaysAllow'],
    controllers: [],
    livezGracePeriodMs: 0,
    shutdownDelayMs: 0,
    compressResponses: false,
    authentication: { anonymous: true },
    limits: {
      bodyBytesMax: 1000,
      requestTimeoutMs: 1000,
      minRequestTimeoutMs: 1000,
      readsInFlightMax: 1,
      writesInFlightMax: 1,
    },
    clock,
    logger: silentLogger,
  };
}
