import { isObject } from '../base/json.ts';
import { ConnectionError } from '../client/http-client.ts';
import { decodeJson } from '../codec/json.ts';
import { StatusError } from '../meta/status.ts';

/** What upstream says of a connection that failed, by Node's code of it. */
const untrusted =
  'tls: failed to verify certificate: x509: certificate signed by unknown authority';
const expired =
  'tls: failed to verify certificate: x509: certificate has expired or is not yet valid';
const wordings: Readonly<Record<string, string>> = {
  ECONNRESET: 'EOF',
  EPIPE: 'write: broken pipe',
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  CERT_HAS_EXPIRED: expired,
  CERT_NOT_YET_VALID: expired,
  ERR_TLS_CERT_ALTNAME_INVALID:
    'tls: failed to verify certificate: x509: certificate is not valid for that name',
};

/** A failure of the network in the words clients know from upstream. */
export function goNetworkError(error: unknown): string {
  if (error instanceof StatusError) return error.message;
  const code = error instanceof ConnectionError ? error.code : codeOf(error);
  const host = error instanceof ConnectionError ? error.host : '';
  if (code === 'ECONNREFUSED') return `dial tcp ${host}: connect: connection refused`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return `dial tcp: lookup ${host.replace(/:\d+$/, '')}: no such host`;
  }
  if (Object.hasOwn(wordings, code)) return wordings[code] ?? code;
  if (code.startsWith('HPE_')) return 'net/http: HTTP/1.x transport connection broken';
  if (code.startsWith('ERR_OSSL_PEM') || code === 'ERR_OSSL_ASN1_NOT_ENOUGH_DATA') {
    return 'unable to load root certificates: unable to parse bytes as PEM block';
  }
  return code === '' ? 'the connection failed' : `the connection failed (${code})`;
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

const byStatus: Readonly<Record<number, string>> = {
  400: 'the server rejected our request for an unknown reason',
  401: 'the server has asked for the client to provide credentials',
  404: 'the server could not find the requested resource',
  405: 'the server does not allow this method on the requested resource',
  409: 'the server reported a conflict',
  415: 'the server was unable to process the request due to unsupported media type',
  422: 'the server rejected our request due to an error in our request',
  429: 'the server has received too many requests and has asked us to try again later',
  503: 'the server is currently unable to handle the request',
  504: 'the server was unable to return a response in the time allotted, but may still be processing the request',
};

/** What upstream makes of an answer that is no success: its Status, or words for its code. */
export function serverResponseError(status: number, text: string, body: Buffer): string {
  const told = statusMessage(body);
  if (told !== undefined) return told;
  if (Object.hasOwn(byStatus, status)) return byStatus[status] ?? '';
  if (status === 403) return text === '' ? 'unknown' : text;
  if (status >= 500) {
    const why = JSON.stringify(text === '' ? 'unknown' : text.slice(0, 2048));
    return `an error on the server (${why}) has prevented the request from succeeding`;
  }
  return `the server responded with the status code ${status} but did not return more information`;
}

function statusMessage(body: Buffer): string | undefined {
  try {
    const { value } = decodeJson(body);
    if (!isObject(value) || value['kind'] !== 'Status' || value['status'] !== 'Failure') {
      return undefined;
    }
    const { message } = value;
    return typeof message === 'string' && message !== '' ? message : undefined;
  } catch {
    return undefined;
  }
}
