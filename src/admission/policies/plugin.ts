import type { AdmissionPlugin } from '../chain.ts';
import type { AdmissionTools } from '../tools.ts';
import { judgingByPolicies } from './hooks.ts';

/** The plugin that judges by ValidatingAdmissionPolicies (ADM-3). */
export function validatingPolicies(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'ValidatingAdmissionPolicy',
    validate: judgingByPolicies(tools, {
      policies: 'validatingadmissionpolicies',
      bindings: 'validatingadmissionpolicybindings',
      load: async () => (await import('./validating.ts')).validatingJudge(tools),
    }),
  };
}
