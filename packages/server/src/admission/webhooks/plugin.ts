import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { isExempt } from '../matching/rules.ts';
import { type Followed, followed } from '../objects.ts';
import type { AdmissionTools } from '../tools.ts';
import { type Dispatch, type Hook, hooksOf } from './hooks.ts';

/**
 * The plugin that calls mutating webhooks (ADM-2). Configurations are followed from the first write
 * on; the caller is loaded with the first configuration.
 */
export function mutatingWebhooks(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'MutatingAdmissionWebhook',
    mutate: asking(tools, {
      resource: 'mutatingwebhookconfigurations',
      load: async () => (await import('./mutating.ts')).mutatingDispatch(tools),
    }),
  };
}

/** The plugin that calls validating webhooks concurrently (ADM-2). */
export function validatingWebhooks(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'ValidatingAdmissionWebhook',
    validate: asking(tools, {
      resource: 'validatingwebhookconfigurations',
      load: async () => (await import('./validating.ts')).validatingDispatch(tools),
    }),
  };
}

function asking(
  tools: AdmissionTools,
  kind: { readonly resource: string; readonly load: () => Promise<Dispatch> },
): (call: AdmissionCall) => Promise<void> | undefined {
  let hooks: Followed<Hook> | undefined;
  let dispatch: Promise<Dispatch> | undefined;
  const ask = async (call: AdmissionCall, source: Followed<Hook>): Promise<void> => {
    if (!source.isReady) {
      await source.ready.catch((error: unknown) => {
        // The next call starts over.
        if (hooks === source) hooks = undefined;
        throw error;
      });
    }
    const current = await source.current();
    if (current.length === 0) return;
    dispatch ??= kind.load();
    await (await dispatch)(call, current);
  };
  return (call) => {
    if (isExempt(call, { from: 'webhooks', dialect: tools.dialect })) return undefined;
    hooks ??= followedHooks(tools, kind.resource);
    const current = hooks.isReady ? hooks.current() : hooks.ready;
    if (!(current instanceof Promise) && current.length === 0) return undefined;
    return ask(call, hooks);
  };
}

function followedHooks(tools: AdmissionTools, resource: string): Followed<Hook> {
  const def = tools.builtin('admissionregistration', resource);
  if (def === undefined) throw new Error(`the catalogue has no ${resource}`);
  const { caches, clock } = tools;
  return followed({ caches, clock, def, read: hooksOf });
}
