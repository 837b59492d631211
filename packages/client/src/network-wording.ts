import { ipVersion, legacyNameCode, StatusError } from '@wheelhouse/machinery';
import { ConnectionError } from './http-client.ts';

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
  [legacyNameCode]:
    'tls: failed to verify certificate: x509: certificate relies on legacy Common Name field, use SANs instead',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'tls: failed to verify certificate: x509: certificate is not valid for that name',
};

/** The wording of a failed connection attempt, by Node's error code. */
const dialErrors: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ETIMEDOUT: 'connection timed out',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
};

/** Words a network error like client-go. */
export function goNetworkError(error: unknown): string {
  if (error instanceof StatusError) return error.message;
  const code = error instanceof ConnectionError ? error.code : codeOf(error);
  const host = error instanceof ConnectionError ? error.host : '';
  if (Object.hasOwn(dialErrors, code))
    return `dial tcp ${host}: connect: ${dialErrors[code] ?? ''}`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return `dial tcp: lookup ${host.replace(/:\d+$/, '')}: no such host`;
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
