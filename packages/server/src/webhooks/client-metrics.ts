import { ConnectionError } from '@wheelhouse/client';
import { type Clock, getOrMake, legacyNameCode, type MetricRegistry } from '@wheelhouse/machinery';

/** Measures outgoing requests under kube-apiserver's names (OPS-1). */
export interface ClientMeter {
  /** Runs and measures one POST to `host`. Rejects as `run` does. */
  measure<Answer extends { readonly status: number; readonly bytes: Buffer }>(
    call: { readonly host: string; readonly body: string },
    run: () => Promise<Answer>,
  ): Promise<Answer>;
  /** Counts a retry caused by a response status. */
  countRetry(host: string, status: number): void;
}

const durationBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
const sizeBuckets = [64, 256, 512, ...Array.from({ length: 8 }, (_, step) => 1024 * 4 ** step)];
const method = 'POST';
/** The code label of requests without a response. */
const noResponseCode = '<error>';

const meters = new WeakMap<MetricRegistry, ClientMeter>();

/** The meter of a registry; the first call registers its metrics, later calls reuse them. */
export function clientMeter(registry: MetricRegistry, clock: Clock): ClientMeter {
  return getOrMake(meters, registry, () => createMeter(registry, clock));
}

function createMeter(registry: MetricRegistry, clock: Clock): ClientMeter {
  const families = createFamilies(registry);
  const countRequest = (host: string, beganMs: number, code: string) => {
    families.total.of(code, method, host).add(1);
    families.duration.of(method, host).observe((clock.monotonic() - beganMs) / 1000);
  };
  return {
    async measure({ host, body }, run) {
      const beganMs = clock.monotonic();
      families.sent.of(method, host).observe(Buffer.byteLength(body));
      try {
        const answer = await run();
        countRequest(host, beganMs, String(answer.status));
        families.received.of(method, host).observe(answer.bytes.length);
        return answer;
      } catch (error) {
        countRequest(host, beganMs, noResponseCode);
        const isMissingSan = error instanceof ConnectionError && error.code === legacyNameCode;
        if (isMissingSan) families.missingSan.add(1);
        throw error;
      }
    },
    countRetry: (host, status) => families.retries.of(String(status), method, host).add(1),
  };
}

function createFamilies(registry: MetricRegistry) {
  const define = (name: string, help: string, labels: readonly string[]) =>
    ({ name: `rest_client_${name}`, help, labels, stability: 'ALPHA' }) as const;
  const labels = ['verb', 'host'];
  return {
    total: registry.counter(
      define('requests_total', 'Number of HTTP requests sent by this server.', [
        'code',
        'method',
        'host',
      ]),
    ),
    retries: registry.counter(
      define('request_retries_total', 'Number of retries of HTTP requests sent by this server.', [
        'code',
        ...labels,
      ]),
    ),
    missingSan: registry
      .counter({
        name: 'apiserver_webhooks_x509_missing_san_total',
        help: 'Number of connections to webhooks that failed because the certificate has no subject alternative names.',
        labels: [],
        stability: 'ALPHA',
      })
      .of(),
    duration: registry.histogram({
      ...define(
        'request_duration_seconds',
        'Duration of HTTP requests sent by this server.',
        labels,
      ),
      buckets: durationBuckets,
    }),
    sent: registry.histogram({
      ...define(
        'request_size_bytes',
        'Size of the bodies of HTTP requests sent by this server.',
        labels,
      ),
      buckets: sizeBuckets,
    }),
    received: registry.histogram({
      ...define(
        'response_size_bytes',
        'Size of the responses to HTTP requests sent by this server.',
        labels,
      ),
      buckets: sizeBuckets,
    }),
  };
}
