import type { Dialect } from '@wheelhouse/machinery';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { QueueMeters } from '../controllers/work-queue.ts';
import type { CachePool } from '../registry/caches.ts';
import type { Registry } from '../registry/registry.ts';
import type { ServerConfig } from './config.ts';
import type { Metrics } from './observability/metrics.ts';
import type { Tracing } from './observability/tracing.ts';

/** The dependencies of every feature. */
export interface Base {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly metrics: Metrics;
  /** Absent unless requests are traced. */
  readonly tracing?: Tracing | undefined;
}

/** The dependencies of features that read objects. */
export interface ReadingBase extends Base {
  readonly catalogue: Catalogue;
  readonly caches: CachePool;
}

/** The objects of the API as code inside the server reads and writes them. */
export interface ObjectApi {
  readonly catalogue: Catalogue;
  readonly registry: Registry;
  /** Metrics of the controllers' queues. */
  readonly queues: QueueMeters;
}

/** The dependencies of features that work on objects in the background. */
export interface Around {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: ObjectApi;
}
