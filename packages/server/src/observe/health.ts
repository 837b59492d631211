import {
  asError,
  type Clock,
  createMetricRegistry,
  type Logger,
  type MetricRegistry,
} from '@wheelhouse/machinery';
import { apiRelease } from '../documents/version.ts';
import { addStartTime } from './process-metrics.ts';

/**
 * A named check, which fails by throwing or rejecting. The reason is logged and reported at the
 * check's own path.
 */
export interface HealthCheck {
  readonly name: string;
  run(): void | Promise<void>;
}

/** The endpoints that run a check. `livez` gives boot checks a grace period. */
type HealthEndpoint = 'healthz' | 'livez' | 'readyz';

/** The answer of a health endpoint. */
export interface HealthAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * The checks of a server and the answers of `/healthz`, `/livez`, `/readyz`, and their subpaths
 * (HEALTH-1, HEALTH-2).
 */
export interface Health {
  /** Adds a check to all endpoints; `boot` checks cannot fail livez during its grace period. */
  add(check: HealthCheck, options?: { boot: boolean }): void;
  /** Adds a check to readyz only, such as `shutdown`. */
  addReadyz(check: HealthCheck): void;
  /** Adds a check of a condition that a restart does not repair to healthz and readyz. */
  addWithoutLivez(check: HealthCheck): void;
  /** Adds a check of a condition that only a restart repairs to livez. */
  addLivez(check: HealthCheck): void;
  /** The served paths. */
  paths(): readonly string[];
  /** Runs the checks of a path; undefined if it is not a health path. */
  answer(path: string, query: URLSearchParams): Promise<HealthAnswer> | undefined;
}

const endpoints: readonly HealthEndpoint[] = ['healthz', 'livez', 'readyz'];

/** Creates a server's health with the checks `ping` and `log`, which all endpoints have. */
export function createHealth(options: {
  clock: Clock;
  logger: Logger;
  livezGracePeriodMs: number;
  /** Called for each check that runs as part of an endpoint. */
  onChecked?: (check: {
    readonly name: string;
    readonly endpoint: HealthEndpoint;
    readonly result: 'success' | 'error';
  }) => void;
}): Health {
  const { clock, logger, onChecked = () => {} } = options;
  const checks: Record<HealthEndpoint, HealthCheck[]> = { healthz: [], livez: [], readyz: [] };
  const graceEnds = clock.monotonic() + options.livezGracePeriodMs;
  const withGrace = (check: HealthCheck): HealthCheck => ({
    name: check.name,
    run: () => (clock.monotonic() > graceEnds ? check.run() : undefined),
  });
  const health: Health = {
    add(check, { boot } = { boot: false }) {
      checks.healthz.push(check);
      checks.livez.push(boot ? withGrace(check) : check);
      checks.readyz.push(check);
    },
    addReadyz: (check) => {
      checks.readyz.push(check);
    },
    addWithoutLivez: (check) => {
      checks.healthz.push(check);
      checks.readyz.push(check);
    },
    addLivez: (check) => {
      checks.livez.push(check);
    },
    paths: () =>
      endpoints.flatMap((endpoint) => [
        `/${endpoint}`,
        ...checks[endpoint].map(({ name }) => `/${endpoint}/${name}`),
      ]),
    answer(path, query) {
      const [, endpoint, ...rest] = path.split('/');
      if (!isEndpoint(endpoint)) return undefined;
      if (rest.length === 0)
        return answerAll({ endpoint, checks: checks[endpoint], query, logger, onChecked });
      const name = rest.join('/');
      const check = checks[endpoint].find((candidate) => candidate.name === name);
      return check === undefined ? undefined : answerOne(check);
    },
  };
  health.add({ name: 'ping', run: () => {} });
  health.add({ name: 'log', run: () => {} });
  return health;
}

function isEndpoint(segment: string | undefined): segment is HealthEndpoint {
  return endpoints.some((endpoint) => endpoint === segment);
}

const plainText = {
  'content-type': 'text/plain; charset=utf-8',
  'x-content-type-options': 'nosniff',
};

/** Runs all checks of an endpoint, and reports them in order. */
async function answerAll(options: {
  endpoint: HealthEndpoint;
  checks: readonly HealthCheck[];
  query: URLSearchParams;
  logger: Logger;
  onChecked: NonNullable<Parameters<typeof createHealth>[0]['onChecked']>;
}): Promise<HealthAnswer> {
  const { endpoint, checks, query, logger, onChecked } = options;
  const excluded = new Set(query.getAll('exclude'));
  const unmatched = new Set(excluded);
  const results = await Promise.all(
    checks.map(async (check) => {
      unmatched.delete(check.name);
      if (excluded.has(check.name)) return { check, line: `[+]${check.name} excluded: ok` };
      const error = await failureOf(check);
      const result = error === undefined ? 'success' : 'error';
      onChecked({ name: check.name, endpoint, result });
      if (error === undefined) return { check, line: `[+]${check.name} ok` };
      return { check, line: `[-]${check.name} failed: reason withheld`, error };
    }),
  );
  const lines = results.map(({ line }) => `${line}\n`);
  if (unmatched.size > 0) {
    const names = [...unmatched].sort().map((name) => JSON.stringify(name));
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names.join(',')}\n`);
  }
  const failed = results.filter(({ error }) => error !== undefined);
  if (failed.length > 0) {
    const names = failed.map(({ check }) => check.name);
    const errors = failed.map(({ error }) => error);
    logger.debug(2, 'health check failed', { endpoint, checks: names, errors });
    return { status: 500, headers: plainText, body: `${lines.join('')}${endpoint} check failed\n` };
  }
  const body = query.has('verbose') ? `${lines.join('')}${endpoint} check passed\n` : 'ok';
  return { status: 200, headers: plainText, body };
}

async function answerOne(check: HealthCheck): Promise<HealthAnswer> {
  const error = await failureOf(check);
  if (error === undefined) return { status: 200, headers: plainText, body: 'ok' };
  const body = `internal server error: ${error.message}\n`;
  return { status: 500, headers: plainText, body };
}

async function failureOf(check: HealthCheck): Promise<Error | undefined> {
  try {
    await check.run();
    return undefined;
  } catch (error) {
    return asError(error);
  }
}

/**
 * Creates a check of the store that fails if the store does not answer within `timeoutMs`. It pings
 * the store at most twice per `timeoutMs` and otherwise repeats the last result.
 */
export function boundedCheck(options: {
  readonly ping: () => Promise<void>;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Prefix of errors; by default kube-apiserver's prefix for etcd. */
  readonly errorPrefix?: string;
}): () => Promise<void> {
  const { ping, clock, timeoutMs, errorPrefix = 'error getting data from etcd' } = options;
  let last: { readonly atMs: number; readonly answer: Promise<void> } | undefined;
  return () => {
    const nowMs = clock.monotonic();
    if (last === undefined || nowMs - last.atMs >= timeoutMs / 2) {
      last = { atMs: nowMs, answer: withTimeout(ping, { clock, timeoutMs, errorPrefix }) };
      last.answer.catch(() => {});
    }
    return last.answer;
  };
}

function withTimeout(
  ping: () => Promise<void>,
  options: { readonly clock: Clock; readonly timeoutMs: number; readonly errorPrefix: string },
): Promise<void> {
  const { clock, timeoutMs, errorPrefix } = options;
  return new Promise((resolve, reject) => {
    const late = new Error(`${errorPrefix}: context deadline exceeded`);
    const timer = clock.after(timeoutMs, () => reject(late));
    ping()
      .then(resolve, (error: unknown) => reject(new Error(`${errorPrefix}: ${error}`)))
      .finally(() => timer.stop());
  });
}

/** Counts outcomes of health checks in a separate registry (OPS-1). */
interface HealthMetrics {
  readonly registry: MetricRegistry;
  observe(check: {
    readonly name: string;
    readonly endpoint: HealthEndpoint;
    readonly result: 'success' | 'error';
  }): void;
}

/** Creates the metrics of `/metrics/slis`, which may be scraped more often than `/metrics`. */
export function createHealthMetrics(clock: Clock): HealthMetrics {
  const release = `${apiRelease.major}.${apiRelease.minor}`;
  const registry = createMetricRegistry({ release, hidden: 'hidden' });
  const last = registry.gauge({
    name: 'kubernetes_healthcheck',
    help: 'Result of the last run of a health check: 1 for success, 0 for failure.',
    stability: 'STABLE',
    labels: ['name', 'type'],
  });
  const total = registry.counter({
    name: 'kubernetes_healthchecks_total',
    help: 'Number of health checks, by result.',
    stability: 'STABLE',
    labels: ['name', 'type', 'status'],
  });
  addStartTime(registry, clock);
  return {
    registry,
    observe({ name, endpoint, result }) {
      last.of(name, endpoint).set(result === 'success' ? 1 : 0);
      total.of(name, endpoint, result).add(1);
    },
  };
}
