import type { Dialect } from '@wheelhouse/machinery';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { QueueMeters } from '../controllers/work-queue.ts';
import type { FeatureGates } from '../flags/feature-gates.ts';
import type { NamedFile } from '../flags/flag-files.ts';
import type { FlagTable, FlagValues } from '../flags/flags.ts';
import type { CachePool } from '../registry/caches.ts';
import type { Registry } from '../registry/registry.ts';
import type { ServerConfig } from './config.ts';
import type { Metrics } from './observability/metrics.ts';
import type { Tracing } from './observability/tracing.ts';

/** What a feature's settings depend on besides its flags. */
export interface CommandLine {
  readonly dialect: Dialect;
  readonly gates: FeatureGates;
  /** Names of the flags on the command line, for checks that compare flags. */
  readonly specifiedFlags: ReadonlySet<string>;
  /** Adds a warning to the log. */
  warn(message: string): void;
}

/**
 * A part of the server that users configure. `settings.ts` in its folder declares the flags as data
 * and converts them to settings; the other files hold what `server.ts` builds from the settings.
 * `command-line.ts` lists all features.
 */
export interface Feature<
  Flags extends FlagTable,
  Settings extends object,
  /** Flags of other features that the settings depend on. */
  OtherFlags extends FlagTable = Flags,
> {
  readonly flags: Flags;
  /**
   * Returns the feature's part of the configuration. Throws a one-line FlagError for invalid
   * values.
   */
  settings(values: FlagValues<Flags & OtherFlags>, line: CommandLine): Settings;
  /** Files named within the values of flags; flags with `file` need not be listed. */
  files?(values: FlagValues<Flags>): readonly NamedFile[];
}

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
