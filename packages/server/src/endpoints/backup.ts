import { methodNotAllowedOnPath, type ResponseStream } from '@wheelhouse/machinery';
import { answerHeaders } from '../answer/respond.ts';
import type { AuthorizedCall } from './call.ts';

/** The path of an online backup (STORE-5). */
export const backupPath = '/backup';

/**
 * Streams a backup of the whole store as fast as its reader takes it. Only POST, so that a
 * permission to `get` any path does not expose every Secret. An answer that cannot be finished is
 * aborted, which its reader detects by the missing end. Throws 405, and the errors of the
 * store.
 */
export async function backupEndpoint(call: AuthorizedCall): Promise<void> {
  const { context, exchange, info, baseHeaders } = call;
  if (info.verb !== 'post') throw methodNotAllowedOnPath();
  const pieces = await context.backup();
  const type = 'application/octet-stream';
  const headers = answerHeaders({ baseHeaders }, type);
  const stream = exchange.stream({ status: 200, headers });
  try {
    if (await writeAll(call, { stream, pieces })) stream.end();
    else stream.destroy();
  } catch (error) {
    const auditId = baseHeaders['audit-id'];
    context.logger.error('a backup was interrupted', { auditId, error: String(error) });
    stream.destroy();
  }
}

/**
 * Returns whether everything was written: the client stayed, and each pause was shorter than the
 * timeout.
 */
async function writeAll(
  { context, exchange }: AuthorizedCall,
  answer: { readonly stream: ResponseStream; readonly pieces: AsyncIterable<Buffer> },
): Promise<boolean> {
  const { stream, pieces } = answer;
  let wake: (isTaken: boolean) => void = () => {};
  stream.onDrain(() => wake(true));
  exchange.onAbort(() => wake(false));
  for await (const piece of pieces) {
    if (exchange.aborted) return false;
    if (stream.write(piece)) continue;
    const taken = new Promise<boolean>((resolve) => {
      wake = resolve;
    });
    const timer = context.clock.after(context.limits.requestTimeoutMs, () => wake(false));
    const isTaken = await taken;
    timer.stop();
    if (!isTaken) return false;
  }
  return !exchange.aborted;
}
