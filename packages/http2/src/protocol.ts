/** Frame types of RFC 9113, section 6. */
export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

/** Flags; `ack` and `endStream` are one bit in different frames. */
export const flag = {
  endStream: 0x1,
  ack: 0x1,
  endHeaders: 0x4,
  padded: 0x8,
  priority: 0x20,
} as const;

/** Identifiers of settings, RFC 9113, section 6.5.2. */
export const setting = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

/** Error codes of RFC 9113, section 7. */
export const errorCode = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  connectError: 10,
  enhanceYourCalm: 11,
} as const;

/** Size of the head that precedes the payload of each frame. */
export const frameHeadBytes = 9;
/** Initial flow-control window of both sides. */
export const defaultWindowBytes = 65_535;
/** Maximum of a flow-control window; a window update beyond it is an error. */
export const windowBytesMax = 0x7fffffff;
/**
 * The largest identifier of a stream. GOAWAY with it announces a shutdown and rejects nothing yet.
 */
export const streamIdMax = 0x7fffffff;
/** Maximum size of a received frame, which is the minimum that the protocol requires. */
export const frameBytesMax = 16_384;

/** The connection preface of a client. */
export const preface: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** An error that ends the whole connection with GOAWAY. */
export class ConnectionError extends Error {
  readonly code: number;

  constructor(code: number, why: string) {
    super(why);
    this.code = code;
  }
}
