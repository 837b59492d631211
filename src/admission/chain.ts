import type { AdmissionCall, AdmissionPort } from '../registry/contract.ts';

/** One admission plugin: either phase may be absent. Throws StatusError to refuse. */
export interface AdmissionPlugin {
  readonly name: string;
  readonly mutate?: (call: AdmissionCall) => Promise<void> | undefined;
  readonly validate?: (call: AdmissionCall) => Promise<void> | undefined;
}

/** Runs plugins in order; a phase without plugins costs nothing. */
export function admissionChain(plugins: readonly AdmissionPlugin[]): AdmissionPort {
  const mutating = plugins.flatMap((plugin) => plugin.mutate ?? []);
  const validating = plugins.flatMap((plugin) => plugin.validate ?? []);
  return {
    mutate: (call) => runAll(mutating, call),
    validate: (call) => runAll(validating, call),
  };
}

type Phase = (call: AdmissionCall) => Promise<void> | undefined;

function runAll(phases: readonly Phase[], call: AdmissionCall): Promise<void> | undefined {
  for (let index = 0; index < phases.length; index += 1) {
    const pending = phases[index]?.(call);
    if (pending !== undefined) return finish({ pending, phases, call, next: index + 1 });
  }
  return undefined;
}

async function finish(rest: {
  pending: Promise<void>;
  phases: readonly Phase[];
  call: AdmissionCall;
  next: number;
}): Promise<void> {
  await rest.pending;
  for (const phase of rest.phases.slice(rest.next)) await phase(rest.call);
}
