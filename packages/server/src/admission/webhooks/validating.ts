import { runInSlices, Slices, timedOut } from '@wheelhouse/machinery';
import type { AdmissionTools } from '../tools.ts';
import {
  callHook,
  type Invocation,
  invocationOf,
  measured,
  recordFailOpen,
  rejectionOf,
} from './call.ts';
import type { Dispatch } from './hooks.ts';
import { type HookMetrics, hookMetrics } from './metrics.ts';

/** Calls validating hooks concurrently; reports the first refusal in their order. */
export function validatingDispatch(tools: AdmissionTools): Dispatch {
  const metrics = hookMetrics(tools.metrics, 'validating');
  return async (call, hooks) => {
    const invocations: Invocation[] = [];
    const conversions: NonNullable<Parameters<typeof invocationOf>[1]['conversions']> = new Map();
    const slices = new Slices(tools.clock);
    for (const hook of hooks) {
      if (slices.over) await slices.pause();
      const invocation = await invocationOf(hook, { call, tools, metrics, conversions });
      if (invocation !== undefined) invocations.push(invocation);
    }
    if (invocations.length === 0) return;
    if (call.context.expired()) throw timedOut('write');
    const startMs = tools.clock.monotonic();
    // Each call copies the review, so the calls begin in steps.
    const begun: Promise<Error | undefined>[] = [];
    function* begin(): Generator<void, void> {
      for (const [index, invocation] of invocations.entries()) {
        begun.push(callOne(invocation, { tools, metrics, index }));
        yield;
      }
    }
    await runInSlices(begin(), tools.clock);
    const outcomes = await Promise.all(begun);
    call.context.request?.askedOthers(tools.clock.monotonic() - startMs);
    const refusal = outcomes.find((outcome) => outcome !== undefined);
    if (refusal !== undefined) throw refusal;
  };
}

/**
 * Calls one hook.
 * @returns the error that rejects the request, if any
 */
async function callOne(
  invocation: Invocation,
  at: { readonly tools: AdmissionTools; readonly metrics: HookMetrics; readonly index: number },
): Promise<Error | undefined> {
  const { tools, metrics, index } = at;
  const { hook, convertedCall } = invocation;
  const startMs = tools.clock.monotonic();
  let failure: unknown;
  try {
    await callHook(invocation, { tools, phase: 'validating' });
  } catch (error) {
    failure = error;
  }
  const isIgnored = hook.failurePolicy === 'Ignore';
  const durationMs = tools.clock.monotonic() - startMs;
  const { operation } = convertedCall.facts;
  metrics.called(hook.name, measured(failure, { operation, durationMs, isIgnored }));
  if (failure === undefined) return undefined;
  const rejection = rejectionOf(failure, hook);
  if (rejection !== undefined) return rejection;
  const key = ['failed-open.validating', `round_0_index_${index}`] as const;
  recordFailOpen(failure, { hook, call: convertedCall.call, tools, metrics, key });
  return undefined;
}
