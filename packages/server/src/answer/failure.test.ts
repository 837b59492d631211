import { type Exchange, silentLogger } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import type { EndpointContext } from '../endpoints/call.ts';
import { answerFailure } from './failure.ts';

test('a failure that cannot be a Status is answered without a body, never left open', async () => {
  const sent: number[] = [];
  const exchange = {
    aborted: false,
    header: () => {
      throw new Error('nothing can be negotiated');
    },
    send: ({ status }: { status: number }) => void sent.push(status),
  } as unknown as Exchange;
  const context = { logger: silentLogger } as unknown as EndpointContext;
  await answerFailure({ context, exchange, baseHeaders: {}, error: new Error('unforeseen') });
  expect(sent).toEqual([500]);
});
