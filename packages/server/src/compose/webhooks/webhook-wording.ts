import { decodeJson } from '@wheelhouse/codec';
import { isObject } from '@wheelhouse/machinery';

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

/** Upstream's message for an error response: that of its Status, or text for its code. */
export function serverResponseError(status: number, text: string, body: Buffer): string {
  const message = statusMessage(body);
  if (message !== undefined) return message;
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
