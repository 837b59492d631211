import { type Clock, pause } from '@wheelhouse/machinery';
import type { HttpAnswer, HttpStream } from './http-client.ts';

/** As client-go. */
const retriesMax = 10;

/** What is known of an answer that may come otherwise. */
export type Retriable = Pick<HttpAnswer, 'status' | 'headers'> & {
  readonly body: HttpAnswer['body'] | HttpStream['body'];
};

/**
 * Asks until the answer is one that will not pass, or ten times again; `heard` is told each answer,
 * and when it was asked for. Rejects with the signal's reason when that aborts a wait.
 */
export async function askPatiently<A extends Retriable>(
  ask: () => Promise<A>,
  options: {
    readonly clock: Clock;
    readonly signal: AbortSignal | undefined;
    readonly heard: (answer: A, startMs: number) => void;
  },
): Promise<A> {
  const { clock, signal, heard } = options;
  for (let retries = 0; ; retries += 1) {
    const startMs = performance.now();
    const answer = await ask();
    heard(answer, startMs);
    const waitMs = retryAfterMs(answer);
    if (waitMs === undefined || retries === retriesMax) return answer;
    if (!Buffer.isBuffer(answer.body)) answer.body.resume();
    await pause(clock, { ms: waitMs, signal, where: 'client' });
  }
}

/** The delay before a retry that the server requests, in milliseconds; undefined without one. */
function retryAfterMs({ status, headers }: Retriable): number | undefined {
  const retryAfter = headers['retry-after'] ?? '';
  const mayPass = status === 429 || status >= 500;
  return mayPass && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) * 1000 : undefined;
}
