/** Bounds on what one client may cost. Times are milliseconds, sizes bytes. */
export interface HttpLimits {
  /** Request line and headers together, HTTP/1.1 and HTTP/2. */
  readonly headerBytesMax: number;
  /** Path and query; a longer one is answered 414. */
  readonly urlBytesMax: number;
  /** From the first byte of a request to the end of its headers (HTTP/1.1). */
  readonly headersTimeoutMs: number;
  readonly tlsHandshakeTimeoutMs: number;
  /** From asking for a body to having all of it. */
  readonly bodyTimeoutMs: number;
  /** How long a plain answer may make no progress before it is cut off. Streams are not bound. */
  readonly writeTimeoutMs: number;
  /** How long a connection without a request in flight is kept. */
  readonly idleTimeoutMs: number;
  /** How often the bounds above are looked at; they hold to this precision. */
  readonly sweepPeriodMs: number;
  /**
   * Concurrent HTTP/2 streams of one connection. Clients share one connection for all their watches
   * and requests, so it is well above what they use; a stream over it is refused, to be tried again.
   */
  readonly streamsPerConnectionMax: number;
  /** Open connections; a new one above takes the place of an idle one. */
  readonly connectionsMax: number;
  /** Once answered with 413, how much more of the body is read so that the client sees the answer. */
  readonly discardBytesMax: number;
  readonly discardTimeoutMs: number;
}

/** Upstream's figures where it has one (headers 32 s, idle 90 s); ours elsewhere. */
export const defaultHttpLimits: HttpLimits = {
  headerBytesMax: 128 * 1024,
  urlBytesMax: 64 * 1024,
  headersTimeoutMs: 32_000,
  tlsHandshakeTimeoutMs: 10_000,
  bodyTimeoutMs: 60_000,
  writeTimeoutMs: 60_000,
  idleTimeoutMs: 90_000,
  sweepPeriodMs: 5_000,
  streamsPerConnectionMax: 1000,
  connectionsMax: Number.POSITIVE_INFINITY,
  discardBytesMax: 64 * 1024 * 1024,
  discardTimeoutMs: 2_000,
};
