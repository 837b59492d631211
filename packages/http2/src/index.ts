/** HTTP/2 over a socket (RFC 9113, RFC 7541): the server side, and a client for calls. */

export type { AnswerReceiver, ClientStream } from './client-connection.ts';
export { ClientConnection, type ClientConnectionHost, requestHead } from './client-connection.ts';
export { Http2Connection } from './http2-connection.ts';
export type { ResponseHead } from './message-heads.ts';
export { queueBytesMin } from './output.ts';
export { PacedReading } from './paced-reading.ts';
export { type ConnectionHost, PeerConnection } from './peer-connection.ts';
export { errorCode } from './protocol.ts';
export type { BodySink, BodySource } from './stream.ts';
export { Http2Stream, type StreamOwner } from './stream.ts';
