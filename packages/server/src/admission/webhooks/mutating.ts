import { answerLimits, decodeJsonInSlices, encodeJson } from '@wheelhouse/codec';
import {
  type ApiObject,
  type Clock,
  cloneJsonSteps,
  errorText,
  internalError,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqualSteps,
  runInSlices,
  Slices,
  timedOut,
  WorkExceeded,
} from '@wheelhouse/machinery';
import { DecodeError, decodeTypedSteps } from '@wheelhouse/schema';
import { jsonPatchWork, PatchError, parseJsonPatch } from '@wheelhouse/structured-merge';
import type { AdmissionCall } from '../../registry/contract.ts';
import {
  convertTo,
  redecodedSteps,
  replaceContent,
  schemaFor,
  withType,
} from '../matching/versioned.ts';
import { Reinvocable } from '../reinvocation.ts';
import type { AdmissionTools } from '../tools.ts';
import {
  type CallContext,
  callHook,
  HookFailure,
  type Invocation,
  invocationOf,
  measured,
  recordFailOpen,
  rejectionOf,
} from './call.ts';
import type { Dispatch, Hook } from './hooks.ts';
import { type HookMetrics, hookMetrics } from './metrics.ts';
import type { Verdict } from './review.ts';

interface Run extends CallContext {
  readonly call: AdmissionCall;
  readonly metrics: HookMetrics;
  readonly reinvocable: Reinvocable;
}

const pluginName = 'MutatingAdmissionWebhook';

/** Calls mutating hooks one after the other, each with the object that the previous one left. */
export function mutatingDispatch(tools: AdmissionTools): Dispatch {
  const metrics = hookMetrics(tools.metrics, 'admit');
  return async (call, hooks) => {
    const reinvocable = Reinvocable.of(call, pluginName);
    const run: Run = { tools, phase: 'mutating', call, metrics, reinvocable };
    const slices = new Slices(tools.clock);
    for (const [index, hook] of hooks.entries()) {
      if (slices.over) await slices.pause();
      await callOne(hook, run, index);
    }
    reinvocable.leave(call.object);
  };
}

/** Calls one hook, if it matches. */
async function callOne(hook: Hook, run: Run, index: number): Promise<void> {
  const { call, tools, reinvocable } = run;
  const invocation = await invocationOf(hook, run);
  if (invocation === undefined) return;
  // A hook that was skipped in the first run is not called in the second.
  if (!reinvocable.isDue(hook.uid)) return;
  const startMs = tools.clock.monotonic();
  let changed = false;
  let failure: unknown;
  try {
    changed = await change(invocation, run, index);
  } catch (error) {
    failure = error;
  }
  annotate(run, { hook, index, what: 'mutation', more: { mutated: changed } });
  const isIgnored = hook.failurePolicy === 'Ignore';
  const durationMs = tools.clock.monotonic() - startMs;
  call.context.request?.askedOthers(durationMs);
  const { operation } = invocation.convertedCall.facts;
  run.metrics.called(hook.name, measured(failure, { operation, durationMs, isIgnored }));
  if (changed) reinvocable.objectChanged();
  if (hook.isReinvocable) reinvocable.recordCall(hook.uid);
  if (failure === undefined) return;
  const rejection = rejectionOf(failure, hook);
  if (rejection !== undefined) throw rejection;
  const key = ['failed-open.mutation', `round_${reinvocable.round}_index_${index}`] as const;
  recordFailOpen(failure, { ...run, hook, key });
  if (call.context.expired()) throw timedOut('write');
}

async function change(invocation: Invocation, run: Run, index: number): Promise<boolean> {
  const { call, tools } = run;
  const verdict = await callHook(invocation, run);
  const patched = await patchedBy(verdict, invocation, tools.clock);
  if (patched === undefined || call.object === undefined) return false;
  const { hook } = invocation;
  const more = { patch: patched.operations, patchType: verdict.patchType };
  annotate(run, { hook, index, what: 'patch', more });
  if (!patched.isChanged) return false;
  const { target } = call;
  const isOwn =
    invocation.served.version === target.version && invocation.served.def === target.def;
  const content = isOwn ? patched.object : convertTo(patched.object, target, tools);
  replaceContent(call.object, content instanceof Promise ? await content : content);
  return true;
}

/** Records a hook's effect in the audit log, under kube-apiserver's keys. */
function annotate(
  { tools, reinvocable, call }: Run,
  at: {
    readonly hook: Hook;
    readonly index: number;
    readonly what: 'mutation' | 'patch';
    readonly more: JsonObject;
  },
): void {
  const { request } = call.context;
  if (request === undefined) return;
  const { configuration, name: webhook } = at.hook;
  const key = `round_${reinvocable.round}_index_${at.index}`;
  const domain = `${at.what}.webhook.${tools.dialect.group('admission')}`;
  const json = encodeJson({ configuration, webhook, ...at.more }).toString('utf8');
  request.annotate(`${domain}/${key}`, json, at.what === 'patch' ? 'Request' : 'Metadata');
}

interface Patched {
  readonly object: ApiObject;
  readonly operations: JsonValue;
  /** Whether the patch changes the object before defaults are set. */
  readonly isChanged: boolean;
}

/**
 * The object after a webhook's patch, decoded and defaulted in the version that the webhook
 * received; undefined if the patch is empty. Throws HookFailure for a patch of another type, and
 * 500 for one that is unreadable or does not apply to the object.
 */
async function patchedBy(
  verdict: Verdict,
  { hook, convertedCall, served }: Invocation,
  clock: Pick<Clock, 'monotonic'>,
): Promise<Patched | undefined> {
  if (verdict.patch.length === 0) return undefined;
  const { value, operations } = await readPatch(verdict.patch, clock);
  if (operations.length === 0) return undefined;
  const { object } = convertedCall;
  if (object === undefined) {
    const name = JSON.stringify(hook.name);
    const why = 'attempted to modify the object, which is not supported for this operation';
    throw internalError(`admission webhook ${name} ${why}`);
  }
  if (verdict.patchType !== 'JSONPatch') {
    const why = `unsupported patch type ${JSON.stringify(verdict.patchType)}`;
    throw new HookFailure(hook.name, { why, code: 400 });
  }
  try {
    const at = { served, kind: convertedCall.kind };
    const patch = function* () {
      const copy = yield* cloneJsonSteps<JsonValue>(object);
      const patched = yield* jsonPatchWork(copy, operations, { rules: 'lenient' });
      if (!isObject(patched)) throw new DecodeError('the patched object is not an object');
      return withType(patched, at);
    };
    const work = function* (): Generator<void, Patched> {
      const result = yield* redecodedSteps(yield* patch(), at);
      // Defaults may restore what the patch removed.
      const isChanged =
        !(yield* jsonEqualSteps(result, object)) || (yield* differs(yield* patch(), object, at));
      return { object: result, operations: value, isChanged };
    };
    return await runInSlices(work(), clock);
  } catch (error) {
    const isRefused = error instanceof PatchError || error instanceof WorkExceeded;
    if (isRefused || error instanceof DecodeError) throw internalError(error.message, error);
    throw error;
  }
}

/** Whether two objects differ before defaults are set, as kube-apiserver decodes them. */
function* differs(
  patched: JsonObject,
  object: JsonObject,
  at: Parameters<typeof schemaFor>[0],
): Generator<void, boolean> {
  if (at.served.def.behavior.bodies === 'unstructured') {
    return !(yield* jsonEqualSteps(patched, object));
  }
  const schema = schemaFor(at);
  const before = yield* decodeTypedSteps(schema, yield* cloneJsonSteps(object));
  return !(yield* jsonEqualSteps(yield* decodeTypedSteps(schema, patched), before));
}

async function readPatch(
  patch: Buffer,
  clock: Pick<Clock, 'monotonic'>,
): Promise<{ value: JsonValue; operations: ReturnType<typeof parseJsonPatch> }> {
  try {
    const { value } = await decodeJsonInSlices(patch, { clock, limits: answerLimits });
    return { value, operations: parseJsonPatch(value) };
  } catch (error) {
    throw internalError(errorText(error), error);
  }
}
