import http2 from 'node:http2';
import { abuse } from './abuse.ts';
import { thingDefinition } from './objects.ts';
import { type FuzzRequest, fuzzNamespaces, fuzzRequest } from './requests.ts';

export interface FuzzReport {
  /** Number of answers by status; 0 stands for streams that were cut off without one. */
  readonly statuses: ReadonlyMap<number, number>;
  /** Observed failures, one text per request, up to a small number. */
  readonly faults: readonly string[];
  readonly seconds: number;
}

interface Outcome {
  readonly status: number;
  readonly text: string;
}

const faultsMax = 20;
const patienceMs = 60_000;
const inFlight = 32;
/** Each repetition opens a connection that another request without a credential may close. */
const repeatsMax = 10;
const abusedEach = 100;
const preparedEach = 500;

/**
 * Sends the requests numbered `from` to `to` of a seed. A fault is an answer of 500 or an unknown
 * 5xx, a failure without a Status, or no answer: any error must be the client's.
 */
export async function driveFuzz(options: {
  readonly url: string;
  readonly token: string;
  readonly seed: number;
  readonly from: number;
  readonly to: number;
  readonly onProgress?: (done: number) => void;
}): Promise<FuzzReport> {
  const { url, token, seed } = options;
  const sessions = new Sessions(url);
  const statuses = new Map<number, number>();
  const faults: string[] = [];
  const began = performance.now();
  await prepare(sessions, token);
  let next = options.from;
  const worker = async () => {
    while (next < options.to && faults.length < faultsMax) {
      const number = next++;
      const request = fuzzRequest(seed, number, token);
      const outcome = await sessions.send(request);
      statuses.set(outcome.status, (statuses.get(outcome.status) ?? 0) + 1);
      const fault = faultOf(request, outcome);
      if (fault !== undefined) faults.push(`#${number} ${describe(request)}: ${fault}`);
      if (number % abusedEach === 0) await abuse(url, seed ^ number);
      if (number % preparedEach === 0) await prepare(sessions, token);
      if ((number + 1) % 10_000 === 0) options.onProgress?.(number + 1 - options.from);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  sessions.close();
  return { statuses, faults, seconds: (performance.now() - began) / 1000 };
}

/** Recreates what requests may have deleted. */
async function prepare(sessions: Sessions, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = (path: string, body: object) =>
    sessions.send({
      method: 'POST',
      path,
      headers,
      body: Buffer.from(JSON.stringify(body)),
      abandons: false,
    });
  for (const name of fuzzNamespaces) await post('/api/v1/namespaces', { metadata: { name } });
  await post('/apis/apiextensions.svc.io/v1/customresourcedefinitions', thingDefinition);
}

function faultOf(request: FuzzRequest, { status, text }: Outcome): string | undefined {
  if (request.abandons) return undefined;
  if (status === 0) return `no answer: ${text}`;
  // 504 answers a resourceVersion that is not reached, and 503 a definition that is taking effect.
  if (status >= 500 && status !== 504 && status !== 503) return `${status} ${text.slice(0, 500)}`;
  const isHidden = request.method === 'HEAD' || request.path.startsWith('/readyz');
  if (status < 400 || isHidden || text.includes('Status')) return undefined;
  return `${status} without a Status: ${text.slice(0, 200)}`;
}

function describe({ method, path, headers, body }: FuzzRequest): string {
  const type = headers['content-type'] ?? '';
  const shown =
    body === undefined ? '' : ` ${JSON.stringify(body.toString('latin1').slice(0, 400))}`;
  return `${method} ${path.slice(0, 300)} [${type}; ${headers.accept}]${shown}`;
}

/** One connection at a time; opens a new one when the server has closed it. */
class Sessions {
  readonly #url: string;
  #session: http2.ClientHttp2Session | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  /** Repeats a request that a closing connection did not take, as clients do. */
  async send(request: FuzzRequest): Promise<Outcome> {
    for (let repeats = 0; ; repeats += 1) {
      const outcome = await this.#attempt(request);
      const isTaken = !outcome.text.includes('NGHTTP2_REFUSED_STREAM');
      if (outcome.status !== 0 || isTaken || repeats === repeatsMax) return outcome;
    }
  }

  #attempt(request: FuzzRequest): Promise<Outcome> {
    const { method, path, headers, body, abandons } = request;
    const session = this.#current();
    return new Promise((resolve) => {
      let stream: http2.ClientHttp2Stream;
      try {
        stream = session.request(
          { ':method': method, ':path': path, ...headers },
          { endStream: body === undefined },
        );
      } catch (error) {
        // Node refuses to send an invalid header.
        resolve({ status: 499, text: `Status: not sent: ${String(error)}` });
        return;
      }
      let status = 0;
      let text = '';
      let why = '';
      stream.setTimeout(patienceMs, () => {
        why = `silent for ${patienceMs} ms`;
        stream.close(http2.constants.NGHTTP2_CANCEL);
      });
      stream.on('response', (answer) => {
        status = Number(answer[':status']);
      });
      stream.setEncoding('utf8');
      stream.on('data', (chunk: string) => {
        if (text.length < 10_000_000) text += chunk;
      });
      stream.on('error', (error) => {
        why ||= String(error);
      });
      const finish = () => resolve({ status, text: status === 0 ? why : text });
      // Node never closes the stream of a large body that the server did not read to its end.
      stream.on('end', () => status !== 0 && finish());
      stream.on('close', finish);
      if (abandons) {
        if (body !== undefined) stream.write(body.subarray(0, body.length / 2));
        setImmediate(() => stream.close(http2.constants.NGHTTP2_CANCEL));
      } else if (body !== undefined) stream.end(body);
    });
  }

  #current(): http2.ClientHttp2Session {
    const held = this.#session;
    if (held !== undefined && !held.closed && !held.destroyed) return held;
    const made = http2.connect(this.#url, { rejectUnauthorized: false });
    made.on('error', () => {});
    this.#session = made;
    return made;
  }

  close(): void {
    this.#session?.close();
  }
}
