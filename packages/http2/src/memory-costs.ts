/** What clients are charged for, in bytes: estimates from measurements, rounded up. */

/** An open connection: TLS state, parser, buffers. */
export const connectionBytes = 64 * 1024;

/** A request from its head to the end of its answer, in a queue or as a watch. */
export function exchangeBytes(url: string): number {
  return 8 * 1024 + 4 * url.length;
}

/** What decoding, defaulting and storing a body takes besides the body, as a multiple of it. */
export const decodedPart = 6;

/** Below this a queue of unread bytes is part of what its request or connection is charged for. */
export const queueBytesMin = 64 * 1024;
