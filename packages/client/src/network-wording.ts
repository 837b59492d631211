import {
  goQuoted,
  ipVersion,
  legacyNameCode,
  StatusError,
  type StatusReason,
} from '@wheelhouse/machinery';
import { unsupportedProxyCode } from './connections.ts';
import { ConnectionError } from './http-client.ts';

/** The codes of errors for connections that are not established in time. */
export const dialTimeoutCode = 'DIAL_TIMEOUT';
/** The code of errors for TLS handshakes that are not completed in time. */
export const handshakeTimeoutCode = 'TLS_HANDSHAKE_TIMEOUT';

const untrusted =
  'tls: failed to verify certificate: x509: certificate signed by unknown authority';
const expired =
  'tls: failed to verify certificate: x509: certificate has expired or is not yet valid';
/** client-go's wording of errors on a connection, by Node's error code. */
const wordings: Readonly<Record<string, string>> = {
  ECONNRESET: 'EOF',
  EPIPE: 'write: broken pipe',
  EPROTO: 'tls: first record does not look like a TLS handshake',
  ERR_SSL_WRONG_VERSION_NUMBER: 'tls: first record does not look like a TLS handshake',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'tls: first record does not look like a TLS handshake',
  HPE_HEADER_OVERFLOW: 'net/http: server response headers exceeded the limit; aborted',
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  CERT_HAS_EXPIRED: expired,
  CERT_NOT_YET_VALID: expired,
  INVALID_PURPOSE:
    'tls: failed to verify certificate: x509: certificate specifies an incompatible key usage',
  [handshakeTimeoutCode]: 'net/http: TLS handshake timeout',
  [unsupportedProxyCode]: 'the proxy is not an http or https URL',
  [legacyNameCode]:
    'tls: failed to verify certificate: x509: certificate relies on legacy Common Name field, use SANs instead',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'tls: failed to verify certificate: x509: certificate is not valid for that name',
};

/** The wording of a failed connection attempt, by its error code. */
const dialErrors: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect: connection refused',
  ETIMEDOUT: 'connect: connection timed out',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  [dialTimeoutCode]: 'i/o timeout',
};

/** Words a network error like client-go. */
export function goNetworkError(error: unknown): string {
  if (error instanceof StatusError) return error.message;
  const code = error instanceof ConnectionError ? error.code : codeOf(error);
  const address = error instanceof ConnectionError ? error.address : '';
  if (Object.hasOwn(dialErrors, code)) return `dial tcp ${address}: ${dialErrors[code] ?? ''}`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return `dial tcp: lookup ${address.replace(/:\d+$/, '')}: no such host`;
  }
  if (code === 'ERR_HTTP2_STREAM_ERROR' && error instanceof Error) return error.message;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' && error instanceof Error) {
    return nameProblem(error.message) ?? wordings[code] ?? code;
  }
  if (Object.hasOwn(wordings, code)) return wordings[code] ?? code;
  if (code.startsWith('HPE_')) return 'net/http: HTTP/1.x transport connection broken';
  if (code.startsWith('ERR_OSSL_PEM') || code === 'ERR_OSSL_ASN1_NOT_ENOUGH_DATA') {
    return 'unable to load root certificates: unable to parse bytes as PEM block';
  }
  return code === '' ? 'the connection failed' : `the connection failed (${code})`;
}

/** Words Node's message about a certificate that is valid only for other names or addresses. */
function nameProblem(message: string): string | undefined {
  const { host, listed } =
    /(?:Host|IP): (?<host>\S+?)\.? is not in the cert's (?:altnames|list): (?<listed>.*)$/.exec(
      message,
    )?.groups ?? {};
  if (host === undefined || listed === undefined) return undefined;
  const kind = ipVersion(host) === 0 ? 'DNS:' : 'IP Address:';
  const names = listed
    .split(', ')
    .filter((name) => name.startsWith(kind))
    .map((name) => name.slice(kind.length));
  const valid =
    names.length === 0
      ? `not valid for any names, but wanted to match ${host}`
      : `valid for ${names.join(', ')}, not ${host}`;
  return `tls: failed to verify certificate: x509: certificate is ${valid}`;
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

/**
 * client-go's reasons and messages for error responses without a Status; without a message, the
 * text of the response takes its place.
 */
const statusErrors: Readonly<Record<number, readonly [StatusReason, string?]>> = {
  400: ['BadRequest', 'the server rejected our request for an unknown reason'],
  401: ['Unauthorized', 'the server has asked for the client to provide credentials'],
  403: ['Forbidden'],
  404: ['NotFound', 'the server could not find the requested resource'],
  405: ['MethodNotAllowed', 'the server does not allow this method on the requested resource'],
  406: ['NotAcceptable'],
  409: ['Conflict', 'the server reported a conflict'],
  415: ['UnsupportedMediaType'],
  422: ['Invalid', 'the server rejected our request due to an error in our request'],
  429: [
    'TooManyRequests',
    'the server has received too many requests and has asked us to try again later',
  ],
  503: ['ServiceUnavailable', 'the server is currently unable to handle the request'],
  504: [
    'Timeout',
    'the server was unable to return a response in the time allotted, but may still be processing the request',
  ],
};

/** Words an error response that has a text instead of a Status like client-go. */
export function goResponseError(
  code: number,
  text: string,
): { readonly reason: StatusReason | ''; readonly message: string } {
  const [reason, message = text] = statusErrors[code] ?? [];
  if (reason === 'NotAcceptable' && (text === '' || text === 'unknown')) {
    const why = 'the server was unable to respond with a content type that the client supports';
    return { reason, message: why };
  }
  if (reason !== undefined) return { reason, message };
  if (code >= 500) {
    const why = `an error on the server (${goQuoted(text)}) has prevented the request from succeeding`;
    return { reason: 'InternalError', message: why };
  }
  const why = `the server responded with the status code ${code} but did not return more information`;
  return { reason: '', message: why };
}
