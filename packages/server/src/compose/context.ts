import type { Dialect } from '@wheelhouse/machinery';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { QueueMeters } from '../controllers/work-queue.ts';
import type { CachePool } from '../registry/cache-pool.ts';
import type { Registry } from '../registry/registry.ts';
import type { ServerConfig } from './config.ts';
import type { Metrics } from './observability/metrics.ts';
import type { Tracing } from './observability/tracing.ts';

/** What every feature is built with. */
export interface Base {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly metrics: Metrics;
  /** Absent where requests are not traced. */
  readonly tracing?: Tracing | undefined;
}

/** What features are built with that read objects. */
export interface ReadingBase extends Base {
  readonly catalogue: Catalogue;
  readonly caches: CachePool;
}

/** The objects of the API, for what reads and writes them inside the server. */
export interface ObjectApi {
  readonly catalogue: Catalogue;
  readonly registry: Registry;
  /** Counts what the queues of controllers do. */
  readonly queues: QueueMeters;
}

/** What features are started with that work on objects beside the requests. */
export interface Around {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: ObjectApi;
}
