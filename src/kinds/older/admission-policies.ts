import type { OlderKind } from './contract.ts';

/** Versions of the policies that the current release still has, for who switches them on. */
export function olderAdmissionPolicies(): readonly OlderKind[] {
  const facts = 'admissionregistration';
  const older = ['v1beta1', 'v1alpha1'].map((version) => ({ facts, version }));
  return [
    { facts, kind: 'ValidatingAdmissionPolicy', older },
    { facts, kind: 'ValidatingAdmissionPolicyBinding', older },
  ];
}
