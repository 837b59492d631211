import type { AuthorizedCall } from '../endpoints/call.ts';

/** Answers with a line of plain text, as kube-apiserver reports proxy errors. */
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
