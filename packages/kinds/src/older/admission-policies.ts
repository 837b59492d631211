import { fillMissingAction } from '../admissionregistration/policy-binding.ts';
import type { OlderKind } from './contract.ts';

/** Versions of the policies that the current release still has, for who switches them on. */
export function olderAdmissionPolicies(): readonly OlderKind[] {
  const facts = 'admissionregistration';
  const versions = [
    { facts, version: 'v1beta1' },
    { facts, version: 'v1alpha1' },
  ] as const;
  const [beta, alpha] = versions;
  const bindings = [beta, { ...alpha, defaults: fillMissingAction }];
  return [
    { facts, kind: 'ValidatingAdmissionPolicy', older: versions },
    { facts, kind: 'ValidatingAdmissionPolicyBinding', older: bindings },
  ];
}
