import type { AuthorizedCall } from '../endpoints/call.ts';

/** Answers a line of plain text, as upstream tells what went wrong on the way to another server. */
export function answerText(
  { exchange, baseHeaders }: Pick<AuthorizedCall, 'exchange' | 'baseHeaders'>,
  { status, text }: { readonly status: number; readonly text: string },
): void {
  if (exchange.aborted) return;
  const headers = {
    ...baseHeaders,
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
  };
  exchange.send({ status, headers, body: Buffer.from(`${text}\n`) });
}
