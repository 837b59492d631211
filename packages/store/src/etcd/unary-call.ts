import type { Clock } from '@wheelhouse/machinery';
import { CallError, statusCode, wasNotSent } from './errors.ts';
import type { Call, GrpcChannel } from './grpc-channel.ts';
import type { Method } from './protocol.ts';

/** How long to wait before a call that could not be sent is tried again. */
const retryMs = 100;

/**
 * Calls a method that takes one message and gives one. A call that no server has seen is repeated
 * until its time is up.
 * @throws CallError when the server refuses the call, or does not answer within `timeoutMs`
 */
export function callUnary<Request, Response>(
  channel: GrpcChannel,
  call: {
    readonly method: Method<Request, Response>;
    readonly request: Partial<Request>;
    readonly timeoutMs: number;
    readonly clock: Clock;
  },
): Promise<Response> {
  const { method, clock, timeoutMs } = call;
  const request = { message: method.request.encode(call.request), more: 'none' as const };
  return new Promise((resolve, reject) => {
    let running: Call | undefined;
    let lastFailure: CallError | undefined;
    let isOver = false;
    const fail = (error: unknown) => {
      isOver = true;
      limit.stop();
      reject(error);
    };
    const limit = clock.after(timeoutMs, () => {
      running?.cancel();
      const code = statusCode.deadlineExceeded;
      fail(lastFailure ?? new CallError({ code, details: 'context deadline exceeded' }));
    });
    const settle = (answer: Buffer | undefined) => {
      try {
        if (answer === undefined) throw new Error('an empty answer');
        resolve(method.response.decode(answer));
        limit.stop();
      } catch (error) {
        fail(new CallError({ code: statusCode.internal, details: String(error) }));
      }
    };
    const send = () => {
      if (isOver) return;
      let answer: Buffer | undefined;
      running = channel.call(method.path, request, {
        onMessage: (bytes) => {
          answer = bytes;
        },
        onEnd(error) {
          if (error === undefined) settle(answer);
          else if (!wasNotSent(error)) fail(error);
          else {
            lastFailure = error;
            clock.after(retryMs, send);
          }
        },
      });
    };
    send();
  });
}
