import type { MetricRegistry } from '@wheelhouse/machinery';

/** What counts handshakes that fail. */
export function handshakeCounter(registry: MetricRegistry): () => void {
  const counter = registry
    .counter({
      name: 'apiserver_tls_handshake_errors_total',
      help: 'Connections on which client and server could not agree how to speak TLS.',
      stability: 'ALPHA',
      labels: [],
    })
    .of();
  return () => counter.add(1);
}

/** What counts connections that are closed to keep the limit on open ones (TRUST-4). */
export function closedConnectionCounter(registry: MetricRegistry): () => void {
  const counter = registry
    .counter({
      name: 'wheelhouse_connections_closed_total',
      help: 'Connections that were closed to keep the limit on open connections.',
      stability: 'ALPHA',
      labels: [],
    })
    .of();
  return () => counter.add(1);
}

const day = 86_400;
const lifetimeBuckets = [
  0,
  1800,
  3600,
  7200,
  21_600,
  43_200,
  day,
  2 * day,
  4 * day,
  7 * day,
  30 * day,
  90 * day,
  180 * day,
  360 * day,
];

/** What is told how many seconds are left of a certificate that somebody has shown. */
export function certificateLifetimes(registry: MetricRegistry): (seconds: number) => void {
  const histogram = registry
    .histogram({
      name: 'apiserver_client_certificate_expiration_seconds',
      help: 'How long the certificates will be valid yet by which requests were recognised.',
      stability: 'ALPHA',
      labels: [],
      buckets: lifetimeBuckets,
    })
    .of();
  return (seconds) => histogram.observe(seconds);
}
