import type { ApiObject } from '@wheelhouse/machinery';
import { objectAt } from '../rules/fill.ts';
import type { OlderKind, OlderVersion } from './contract.ts';

function rename(object: ApiObject, { from, to }: { from: string; to: string }): ApiObject {
  const spec = objectAt(object, 'spec');
  if (spec === undefined || spec[from] === undefined) return object;
  spec[to] = spec[from];
  delete spec[from];
  return object;
}

/** Reviews of `v1beta1` named the groups `group`. */
export function olderAuthorization(): readonly OlderKind[] {
  const facts = 'authorization';
  const plain: OlderVersion = { facts, version: 'v1beta1' };
  const grouped: OlderVersion = {
    ...plain,
    toStorage: (object) => rename(object, { from: 'group', to: 'groups' }),
    fromStorage: (object) => rename(object, { from: 'groups', to: 'group' }),
  };
  return [
    { facts, kind: 'SubjectAccessReview', older: [grouped] },
    { facts, kind: 'LocalSubjectAccessReview', older: [grouped] },
    { facts, kind: 'SelfSubjectAccessReview', older: [plain] },
    { facts, kind: 'SelfSubjectRulesReview', older: [plain] },
  ];
}
