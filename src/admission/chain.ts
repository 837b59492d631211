import type { ResourceDef } from '../catalogue/resource-def.ts';
import type { AdmissionCall, AdmissionPort } from '../registry/contract.ts';

/** One admission plugin: either phase may be absent. Throws StatusError to refuse. */
export interface AdmissionPlugin {
  readonly name: string;
  /** Whether writes of a kind are any business of it; absent: all are. */
  readonly concerns?: (def: ResourceDef) => boolean;
  readonly mutate?: (call: AdmissionCall) => Promise<void> | undefined;
  readonly validate?: (call: AdmissionCall) => Promise<void> | undefined;
}

/**
 * Runs plugins in order; a phase without plugins costs nothing. Where a plugin has asked for it, all
 * mutating ones run a second time, once (ADM-2).
 */
export function admissionChain(plugins: readonly AdmissionPlugin[]): AdmissionPort {
  const chains = new WeakMap<ResourceDef, Chain>();
  const chainOf = ({ target: { def } }: AdmissionCall): Chain => {
    const known = chains.get(def);
    if (known !== undefined) return known;
    const chain = chainFor(
      plugins.filter(({ concerns }) => concerns === undefined || concerns(def)),
    );
    chains.set(def, chain);
    return chain;
  };
  return {
    mutate(call) {
      const { mutating } = chainOf(call);
      const pending = runAll(mutating, call);
      if (pending === undefined) return undefined;
      return pending.then(() => (call.again?.wanted === true ? again(mutating, call) : undefined));
    },
    validate: (call) => runAll(chainOf(call).validating, call),
  };
}

/** What runs for the writes of one kind. */
interface Chain {
  readonly mutating: readonly Phase[];
  readonly validating: readonly Phase[];
}

function chainFor(plugins: readonly AdmissionPlugin[]): Chain {
  return {
    mutating: plugins.flatMap((plugin) => plugin.mutate ?? []),
    validating: plugins.flatMap((plugin) => plugin.validate ?? []),
  };
}

type Phase = (call: AdmissionCall) => Promise<void> | undefined;

/** Only what waits for somebody outside asks for this, so the first run has ended by itself. */
async function again(phases: readonly Phase[], call: AdmissionCall): Promise<void> {
  if (call.again === undefined) return;
  call.again.isSecond = true;
  await runAll(phases, call);
}

function runAll(phases: readonly Phase[], call: AdmissionCall): Promise<void> | undefined {
  for (let index = 0; index < phases.length; index += 1) {
    const pending = phases[index]?.(call);
    if (pending !== undefined) return finish({ pending, phases, call, next: index + 1 });
  }
  return undefined;
}

/** Waits for a phase only when it asks for that: most do not, and every turn waited is a cost. */
async function finish(rest: {
  pending: Promise<void>;
  phases: readonly Phase[];
  call: AdmissionCall;
  next: number;
}): Promise<void> {
  const { phases, call } = rest;
  await rest.pending;
  for (let index = rest.next; index < phases.length; index += 1) {
    const pending = phases[index]?.(call);
    if (pending !== undefined) await pending;
  }
}
