import type { AdmissionPlugin } from '../chain.ts';
import type { AdmissionTools } from '../tools.ts';
import { policyPhase } from './hooks.ts';

/**
 * The plugin of MutatingAdmissionPolicies (ADM-3); active if its gate is on and `--runtime-config`
 * serves the kinds.
 */
export function mutatingPolicies(tools: AdmissionTools): AdmissionPlugin {
  const name = 'MutatingAdmissionPolicy';
  const policies = 'mutatingadmissionpolicies';
  const isThere = tools.builtin('admissionregistration', policies) !== undefined;
  if (!isThere || !tools.isOn('MutatingAdmissionPolicy')) return { name };
  return {
    name,
    mutate: policyPhase(tools, {
      policies,
      bindings: 'mutatingadmissionpolicybindings',
      load: async () => (await import('./mutating.ts')).mutatingEvaluator(tools),
    }),
  };
}

/** The plugin of ValidatingAdmissionPolicies (ADM-3). */
export function validatingPolicies(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'ValidatingAdmissionPolicy',
    validate: policyPhase(tools, {
      policies: 'validatingadmissionpolicies',
      bindings: 'validatingadmissionpolicybindings',
      load: async () => (await import('./validating.ts')).validatingEvaluator(tools),
    }),
  };
}
