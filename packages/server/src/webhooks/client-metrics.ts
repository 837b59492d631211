import { ConnectionError } from '@wheelhouse/client';
import { type Clock, legacyNameCode, type MetricRegistry } from '@wheelhouse/machinery';

/** Measures outgoing requests under kube-apiserver's names (OPS-1). */
export interface ClientMeter {
  /** Runs one POST to `host` and passes on its rejection. */
  measured<Answer extends { readonly status: number; readonly bytes: Buffer }>(
    call: { readonly host: string; readonly body: string },
    run: () => Promise<Answer>,
  ): Promise<Answer>;
  /** Counts a retry caused by a response status. */
  retried(host: string, status: number): void;
}

const durationBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
const sizeBuckets = [64, 256, 512, ...Array.from({ length: 8 }, (_, step) => 1024 * 4 ** step)];
const method = 'POST';
/** The code of requests without a response. */
const unanswered = '<error>';

const meters = new WeakMap<MetricRegistry, ClientMeter>();

/** The meter of a registry; the first call registers its metrics, later calls reuse them. */
export function clientMeter(registry: MetricRegistry, clock: Clock): ClientMeter {
  const found = meters.get(registry);
  if (found !== undefined) return found;
  const made = createMeter(registry, clock);
  meters.set(registry, made);
  return made;
}

function createMeter(registry: MetricRegistry, clock: Clock): ClientMeter {
  const families = createFamilies(registry);
  const over = (host: string, beganMs: number, code: string) => {
    families.total.of(code, method, host).add(1);
    families.duration.of(method, host).observe((clock.monotonic() - beganMs) / 1000);
  };
  return {
    async measured({ host, body }, run) {
      const beganMs = clock.monotonic();
      families.sent.of(method, host).observe(Buffer.byteLength(body));
      try {
        const answer = await run();
        over(host, beganMs, String(answer.status));
        families.received.of(method, host).observe(answer.bytes.length);
        return answer;
      } catch (error) {
        over(host, beganMs, unanswered);
        const isUnnamed = error instanceof ConnectionError && error.code === legacyNameCode;
        if (isUnnamed) families.unnamed.add(1);
        throw error;
      }
    },
    retried: (host, status) => families.retries.of(String(status), method, host).add(1),
  };
}

function createFamilies(registry: MetricRegistry) {
  const of = (name: string, help: string, labels: readonly string[]) =>
    ({ name: `rest_client_${name}`, help, labels, stability: 'ALPHA' }) as const;
  const labels = ['verb', 'host'];
  return {
    total: registry.counter(
      of('requests_total', 'Requests of this server to others, by how they were answered.', [
        'code',
        'method',
        'host',
      ]),
    ),
    retries: registry.counter(
      of('request_retries_total', 'Requests of this server that were made again.', [
        'code',
        ...labels,
      ]),
    ),
    unnamed: registry
      .counter({
        name: 'apiserver_webhooks_x509_missing_san_total',
        help: 'Connections to webhooks refused because the certificate has the server name only in its common name.',
        labels: [],
        stability: 'ALPHA',
      })
      .of(),
    duration: registry.histogram({
      ...of('request_duration_seconds', 'How long others took to answer this server.', labels),
      buckets: durationBuckets,
    }),
    sent: registry.histogram({
      ...of('request_size_bytes', 'Bytes in the bodies that this server sent to others.', labels),
      buckets: sizeBuckets,
    }),
    received: registry.histogram({
      ...of('response_size_bytes', 'Bytes in the answers of others to this server.', labels),
      buckets: sizeBuckets,
    }),
  };
}
